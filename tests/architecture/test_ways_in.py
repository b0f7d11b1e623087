"""The table of bounds in docs/security.md says what the code does."""

import re
from importlib import import_module
from pathlib import Path

import pytest

ROW = re.compile(r"^\|.*\| ([0-9,]+) \| `([a-z_.]+)\.([A-Z_]+)` \|$", re.MULTILINE)
PAGE = Path(__file__).parents[2] / "docs/security.md"
ROWS = ROW.findall(PAGE.read_text(encoding="utf-8"))


def test_the_table_is_found() -> None:
    assert len(ROWS) > 25


@pytest.mark.parametrize(("value", "module", "name"), ROWS)
def test_a_bound_in_the_table_is_the_bound_in_the_code(value: str, module: str, name: str) -> None:
    assert getattr(import_module(module), name) == int(value.replace(",", ""))
