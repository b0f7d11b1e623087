"""docs/operations.md names the test of each fault: there are such tests."""

import re
from pathlib import Path

import pytest

from tests.architecture.sources import source

ROOT = Path(__file__).parents[2]
TABLE = "| fault | you see | what happens | tested by |"


def faults() -> dict[str, list[str]]:
    """The tests that the table names, by fault."""
    lines = (ROOT / "docs/operations.md").read_text().splitlines()
    rows = []
    for line in lines[lines.index(TABLE) + 2 :]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return {fault: re.findall(r"`(test_\w+)`", tested) for fault, *_, tested in rows}


@pytest.mark.slow
def test_each_fault_names_a_test_that_there_is() -> None:
    paths = (ROOT / "tests").rglob("test_*.py")
    there = {name for path in paths for name in source(path).given}
    named = faults()
    assert len(named) > 5
    assert [fault for fault, tests in named.items() if not tests] == []
    assert {test for tests in named.values() for test in tests} - there == set()
