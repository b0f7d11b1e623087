"""A study's report in the terminal: nothing is cut, however narrow it is."""

import io

import pytest
from rich.console import Console

from libs.report.view import Cell, table
from libs.study.report.parts import StudyReport, StudySection, numbers, text
from services.cli.studies.score import show

LONG = "not resolved: needs 1,205 dates"


def report() -> StudyReport:
    columns = (
        *text("Arms"),
        *numbers("Difference"),
        *text("95% interval"),
        *numbers("p", spare=1),
        *text("Verdict"),
    )
    row = ("rules less rules-masked", "-0.03%", "-0.07% to +0.01%", "0.117", LONG)
    section = StudySection("Paired", "About it.", [table(columns, [row], "Excess return")])
    return StudyReport("it", ("picks: 2 arms",), (Cell("1 of 1 pair not resolved"),), (section,))


@pytest.mark.parametrize("width", [60, 80, 100, 160])
def test_a_table_gives_way_column_by_column_and_nothing_is_cut(width: int) -> None:
    console = Console(file=io.StringIO(), width=width, highlight=False)
    show(report(), console, "the next command")
    printed = console.file.getvalue()  # type: ignore[attr-defined]
    assert all(len(line) <= width for line in printed.splitlines())
    assert "…" not in printed
    for words in ("rules less rules-masked", "-0.07% to +0.01%"):
        assert words in printed
    assert " ".join(printed.split()).count("needs 1,205 dates") == 1
    assert "0.117" in printed
