"""A study's file as a person writes it: whatever is wrong is told with its place."""

from pathlib import Path

import pytest

from services.cli.shell.problem import CliProblem
from services.cli.studies.file import FILE_BYTES_MAX, read_study

GOOD = """
name: it
dates: {first: 2012-01-03, last: 2012-06-29, count: 5}
universe: [AAPL, IBM]
arms: [{name: rules}]
"""


def test_a_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "it.yaml"
    path.write_text(GOOD)

    study = read_study(path)

    assert (study.name, study.universe, study.dates.count) == ("it", ("AAPL", "IBM"), 5)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (GOOD.replace("[AAPL, IBM]", "[ON, IBM]"), 'quote it: "ON"'),
        (GOOD.replace("[AAPL, IBM]", "[NO, IBM]"), 'quote it: "NO"'),
        (GOOD.replace("[AAPL, IBM]", "[1810, IBM]"), 'quote it: "1810"'),
        (GOOD.replace("[AAPL, IBM]", "5"), "universe"),
        (GOOD.replace("count", "counts"), "counts"),
        (GOOD.replace("[{name: rules}]", "[{name: a-name-of-arms-too-long}]"), "arms"),
        ("name: [open", "not valid YAML"),
        ("- a", "a mapping"),
        ("a: &x [1]\nb: *x", "aliases"),
        ("#" * (FILE_BYTES_MAX + 1), f"{FILE_BYTES_MAX:,} bytes"),
    ],
)
def test_a_file_that_is_no_study_is_refused_with_the_place(
    tmp_path: Path, text: str, why: str
) -> None:
    path = tmp_path / "it.yaml"
    path.write_text(text)

    with pytest.raises(CliProblem, match=why):
        read_study(path)


def test_a_file_that_is_not_there_or_no_text_is_named(tmp_path: Path) -> None:
    with pytest.raises(CliProblem, match="cannot be read"):
        read_study(tmp_path / "none.yaml")
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    with pytest.raises(CliProblem, match="not UTF-8 text"):
        read_study(tmp_path / "binary")
