"""The reviewer by rules: its notes name what the rules in code will cut."""

from decimal import Decimal

import pytest

from contracts.account import Portfolio
from contracts.research import ResearchFinding
from contracts.risk import ReviewedPick
from libs.llm.rules.risk_review import _notes


@pytest.mark.parametrize(
    ("sector", "where"), [("Energy", "in Energy"), ("unknown", "of no known sector")]
)
def test_where_most_of_the_budget_goes_is_a_sector_or_none_that_is_known(
    sector: str, where: str
) -> None:
    pick = ReviewedPick(ticker="XOM", allocation_pct=Decimal(60), confidence=0.5)
    findings = {"XOM": ResearchFinding.model_construct(sector=sector)}
    notes = _notes((pick,), findings, Portfolio.model_construct(positions=()))
    assert notes == f"most of the budget is {where}: the rules in code cut it"
