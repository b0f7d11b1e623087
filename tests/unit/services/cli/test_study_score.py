"""A study's report in the terminal: nothing is cut, however narrow it is."""

import io

import pytest
from rich.console import Console

from libs.report.studies.parts import Cell, Column, Section, Span, StudyReport, Table
from services.cli.studies.score import drawn_span, show

LONG = "not resolved: needs 1,205 dates"


def report() -> StudyReport:
    columns = (
        Column("arms"),
        Column("difference", right=True),
        Column("95% interval"),
        Column(""),
        Column("p", right=True, wide=True),
        Column("verdict"),
    )
    span = Span(0.1, 0.3, 0.5, 0.9)
    row = (
        *(Cell("rules less rules-masked", arm="rules"), Cell("-0.03%", arm="rules")),
        *(Cell("-0.07% to +0.01%"), Cell("", span=span), Cell("0.117"), Cell(LONG)),
    )
    section = Section("Paired", "About it.", [Table(columns, [row], "Excess return")])
    return StudyReport("it", ("picks: 2 arms",), (Cell("1 of 1 pair not resolved"),), (section,))


@pytest.mark.parametrize("width", [60, 80, 100, 160])
def test_a_table_gives_way_column_by_column_and_nothing_is_cut(width: int) -> None:
    console = Console(file=io.StringIO(), width=width, highlight=False)
    show(report(), console)
    printed = console.file.getvalue()  # type: ignore[attr-defined]
    assert all(len(line) <= width for line in printed.splitlines())
    assert "…" not in printed
    for text in ("rules less rules-masked", "-0.07% to +0.01%"):
        assert text in printed
    assert " ".join(printed.split()).count("needs 1,205 dates") == 1
    assert ("--o" in printed) == (width == 160)


def test_an_interval_is_drawn_with_its_estimate_and_nothing() -> None:
    assert drawn_span(Span(0.0, 0.5, 0.99, 0.0), 10) == "|----o----"
    assert drawn_span(Span(0.5, 0.7, 0.9, 0.0), 10) == "|    --o--"
