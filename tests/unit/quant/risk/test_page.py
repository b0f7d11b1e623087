"""docs/risk.md says what the code does: three tables are made from it, and the limits have its
defaults."""

from pathlib import Path

import pytest

from contracts.account import AccountLimits
from deploy.reference import risk_page

LIMITS = AccountLimits()


@pytest.fixture
def page() -> str:
    return (Path(__file__).parents[4] / "docs/risk.md").read_text()


def test_the_tables_of_scores_rules_and_constraints_are_the_codes(page: str) -> None:
    assert page == risk_page.rewritten(page), "run `make contracts`"


def test_the_page_has_every_limit_with_its_default_and_no_other(page: str) -> None:
    table = page.partition("| limit | default |")[2].partition("\n\n")[0]
    rows = [line.split(" | ") for line in table.splitlines() if line.startswith("| `")]
    stated = {cells[0].strip("| `"): cells[1] for cells in rows}
    assert stated == {
        name: str(value).lower() if isinstance(value, bool) else f"{value:g}"
        for name, value in LIMITS
    }
