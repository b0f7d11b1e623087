"""Every field that a model answers is declared: a judgement, a checked reference or a text.

A fact among them would be a limit that a model can talk away.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import BaseModel

from contracts.memory import MemoryDraft
from contracts.research import PlanDraft, QuantDraft, ResearchDraft
from contracts.risk import ReviewDraft
from contracts.sentiment import SentimentDraft
from contracts.strategy import StrategyDraft
from contracts.strategy_result import AssessmentDraft
from contracts.trader import PicksDraft

PAGE = Path(__file__).parents[3] / "docs" / "risk.md"
DRAFTS: dict[str, type[BaseModel]] = {
    "sentiment": SentimentDraft,
    "plan": PlanDraft,
    "quant": QuantDraft,
    "research": ResearchDraft,
    "picks": PicksDraft,
    "review": ReviewDraft,
    "memory": MemoryDraft,
    "assessment": AssessmentDraft,
    "design": StrategyDraft,
}
DECLARED = {
    "sentiment": "score confidence market_mood ticker notes fact beside speaks why",
    "plan": "expected_outputs timeframes assets objective quant_question max_positions "
    "max_allocation_pct max_sector_pct max_risk_score exclude_tickers "
    "exclude_sectors no_buys remarks",
    "quant": "signal confidence ticker answer fact beside speaks why",
    "research": "fundamental_score technical_score risk_score ticker catalyst sector_peers "
    "research_notes fact beside speaks why",
    "picks": "allocation_pct confidence horizon_sessions stop_atr ticker review_event answer fact "
    "beside speaks why",
    "review": "allocation_pct confidence ticker vetoed_tickers notes fact beside speaks why",
    "memory": "short_term_summary active_hypotheses next_steps",
    "assessment": "verdict strengths weaknesses suggestions",
    "design": "name hypothesis universe indicator parameters horizon_bars return_pct_min kind "
    "hidden activation l2 learning_rate batch_rows epochs c trees depth leaf_rows_min of above "
    "below bars_ago hold_bars_max stop_loss_pct take_profit_pct position_pct",
}
"""What a model may answer. docs/risk.md says of each what it is."""


def leaves(model: type[BaseModel]) -> Iterator[str]:
    """The names of a draft's fields, those of its parts included."""
    for name, field in model.model_fields.items():
        parts = list(_parts(field.annotation))
        yield from (leaf for part in parts for leaf in leaves(part)) if parts else (name,)


def _parts(kind: Any) -> Iterator[type[BaseModel]]:
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        yield kind
    for each in get_args(kind):
        yield from _parts(each)


@pytest.mark.parametrize("name", DRAFTS)
def test_every_field_that_a_model_answers_is_declared(name: str) -> None:
    assert set(leaves(DRAFTS[name])) == set(DECLARED[name].split())


@pytest.mark.parametrize("name", DRAFTS)
def test_the_page_says_of_each_what_it_is(name: str) -> None:
    lines = PAGE.read_text().splitlines()
    place = next(n for n, line in enumerate(lines) if line.startswith(f"| {name} |"))
    more = [lines[place + 1]] if lines[place + 1].startswith("| |") else []
    cells = " ".join([lines[place], *more]).rsplit("|", 2)[0].replace("the three scores", SCORES)
    for field in DECLARED[name].split():
        assert field in cells, field


SCORES = "fundamental_score technical_score risk_score"
