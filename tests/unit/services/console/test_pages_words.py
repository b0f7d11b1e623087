"""Words of single pages, drawn from what they are given."""

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
from fastapi import Request

from contracts.http import CostRow, CostsView
from contracts.types import Usage
from contracts.upkeep import BudgetView
from libs.report import costs, model_costs
from services.console.pages import words
from services.console.pages.show import Show
from services.console.pages.statics import Statics

SHOW = Show(
    Statics(),
    lambda: datetime(2026, 11, 25, tzinfo=UTC),
    has_login=lambda: False,
    is_demo=False,
    first_request="deskbus up",
)


@pytest.mark.parametrize("lost", [0, 46_000])
def test_costs_have_a_column_for_calls_without_a_reply_where_there_are_any(lost: int) -> None:
    day = date(2026, 11, 25)
    usage = Usage(input_tokens=6_800, unsorted_tokens=lost, cost_usd=Decimal("0.37"))
    row = CostRow(day=day, provider="claude", model="m", stage="plan", calls=8, usage=usage)
    asked = Request({"type": "http", "path": "/costs", "headers": [], "query_string": b""})
    limits = dict.fromkeys(
        ("tokens_max", "tokens_left", "operation_tokens_max", "cycle_tokens_max"), 1_000_000
    )
    dollars = dict.fromkeys(
        ("cost_usd_max", "cost_usd_left", "operation_cost_usd_max", "cycle_cost_usd_max"),
        Decimal(10),
    )
    at = datetime(2026, 11, 26, tzinfo=UTC)
    view = CostsView(since=day, rows=(row,), counted=1, cut=False)
    budget = BudgetView.model_validate({"today": day, "resets_at": at, **limits, **dollars})
    answer = SHOW(
        asked,
        "costs.html",
        it=view,
        budget=budget,
        days=7,
        by_day=costs.by_day(budget),
        sums={},
        every=model_costs.listed(view),
    )

    page = bytes(answer.body).decode()
    assert (">No reply</th>" in page) is bool(lost)
    assert (">46.0k</td>" in page) is bool(lost)


@pytest.mark.parametrize(
    ("amount", "is_demo", "said"),
    [
        ("9.67", True, "$9.67 simulated"),
        ("9.67", False, "$9.67"),
        ("0", True, "$0"),
        (None, True, "unknown"),
    ],
)
def test_what_the_demos_script_costs_is_marked(
    amount: str | None, said: str, *, is_demo: bool
) -> None:
    assert words.spent(None if amount is None else Decimal(amount), is_demo=is_demo) == said
