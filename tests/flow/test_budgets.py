"""Budgets of an operation, a cycle and a day: what a cycle says when one of them is used up."""

from datetime import date
from typing import Any

import pytest

from contracts.audit import EventType
from contracts.cycle import Budgets, CycleRequest, CycleStatus
from contracts.message import Pipeline
from contracts.operation import Reserve
from libs.llm.rules.provider import RulesProvider
from services.orchestrator.group.rows import CycleRow
from tests.fakes.in_process_desk import InProcessDesk, broker_of_the_imagination
from tests.fakes.paid_rules import HELD, USED, PaidRules
from tests.flat_settings import settings_with
from tests.flow.conftest import thinking_routes

DAY = date(2012, 6, 29)
PAID = (Pipeline(name="paid", provider="paid"),)
TWO_CALLS = 2 * USED.tokens + HELD.tokens - 1
"""Enough for two calls, and one token short of the third."""


async def paid_desk(monkeypatch: pytest.MonkeyPatch, **settings: Any) -> InProcessDesk:
    """A desk with a provider that costs, beside the rules."""
    providers = {"rules": RulesProvider(), "paid": PaidRules()}
    monkeypatch.setattr("libs.llm.registry.all_providers", lambda _: providers)
    known = settings_with(**settings)
    routes = await thinking_routes(known)
    return InProcessDesk([*routes, *broker_of_the_imagination()], known)


async def ran(desk: InProcessDesk, **fields: Any) -> CycleRow:
    return await desk.run(CycleRequest(idempotency_key="a", as_of=DAY, pipelines=PAID, **fields))


@pytest.mark.parametrize(
    ("settings", "budgets", "failed", "field", "purse"),
    [
        (
            {"budget_operation_tokens_max": USED.tokens + HELD.tokens - 1},
            {},
            "plan",
            "operation_tokens_max",
            "operation",
        ),
        (
            {"budget_operation_cost_usd_max": "0.0179"},
            {},
            "plan",
            "operation_cost_usd_max",
            "operation",
        ),
        ({}, {"tokens": TWO_CALLS}, "quant", "budgets.tokens", "cycle"),
        ({}, {"cost_usd": "0.0259"}, "quant", "budgets.cost_usd", "cycle"),
        ({"budget_day_tokens_max": TWO_CALLS}, {}, "quant", "day_tokens_max", "day"),
        ({"budget_day_cost_usd_max": "0.0259"}, {}, "quant", "day_cost_usd_max", "day"),
    ],
)
async def test_a_budget_that_is_used_up_is_a_failed_operation_that_names_the_limit(
    monkeypatch: pytest.MonkeyPatch,
    settings: dict[str, Any],
    budgets: dict[str, Any],
    failed: str,
    field: str,
    purse: str,
) -> None:
    desk = await paid_desk(monkeypatch, **settings)

    cycle = await ran(desk, budgets=Budgets(**budgets))

    failure = desk.named(failed).failure if failed == "plan" else _first_failure(desk)
    assert failure is not None
    assert (failure.code, failure.field) == ("budget_exhausted", field)
    assert f"the {purse}'s budget is used up" in failure.message
    assert cycle.state.status is CycleStatus.FAILED
    assert "(budget_exhausted)" in cycle.state.reason
    told = [e.data for e in desk.events if e.type is EventType.OPERATION_FAILED]
    assert (told[0]["code"], told[0]["field"]) == ("budget_exhausted", field)
    assert (desk.day.tokens_reserved, desk.day.cost_usd_reserved) == (0, 0)
    assert cycle.purse.tokens_spent <= cycle.purse.tokens_max
    memory = desk.contract("memorize")["short_term_summary"]
    assert memory.startswith("rules: ")
    assert f"the {purse}'s budget is used up" in memory


def _first_failure(desk: InProcessDesk) -> Any:
    return next(each.failure for each in desk.operations.values() if each.failure is not None)


async def test_budgets_that_are_just_enough_let_the_cycle_end_well(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    desk = await paid_desk(monkeypatch)
    whole = (await ran(desk)).purse

    enough = whole.tokens_spent + HELD.tokens - USED.tokens
    desk = await paid_desk(monkeypatch, budget_day_tokens_max=enough)
    cycle = await ran(desk, budgets=Budgets(tokens=enough))

    assert cycle.state.status is CycleStatus.COMPLETED
    assert cycle.purse.tokens_spent == desk.day.tokens_spent == whole.tokens_spent


async def test_what_calls_used_is_told_by_sort_and_adds_up_to_the_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    desk = await paid_desk(monkeypatch)

    cycle = await ran(desk)

    calls = [e.data for e in desk.events if e.type is EventType.LLM_CALLED]
    assert calls
    assert all(data["usage"]["cache_read_tokens"] == USED.cache_read_tokens for data in calls)
    assert all(len(data["prompt_sha256"]) == 64 for data in calls)
    assert cycle.purse.tokens_spent == len(calls) * USED.tokens
    assert cycle.purse.cost_usd_spent == len(calls) * USED.cost_usd


async def test_when_the_day_is_spent_a_new_cycle_is_refused_until_the_next_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    desk = await paid_desk(monkeypatch, budget_day_tokens_max=TWO_CALLS)
    await ran(desk)

    paid = CycleRequest(idempotency_key="b", as_of=DAY, pipelines=PAID)
    refused = desk.ask(paid, needs=HELD)

    assert (refused.outcome, refused.code) == ("rejected", "budget_exhausted")
    assert refused.retry_at is not None
    assert f"{refused.retry_at:%Y-%m-%d %H:%M} UTC" in refused.message
    assert len(desk.cycles) == 1
    # What is free is not refused, and neither is what still fits.
    free = desk.ask(CycleRequest(idempotency_key="c", as_of=DAY), needs=None)
    small = desk.ask(paid.model_copy(update={"idempotency_key": "d"}), needs=Reserve(tokens=1))
    assert (free.outcome, small.outcome) == ("accepted", "accepted")


async def test_a_cycle_that_was_accepted_before_is_told_of_as_it_stands_on_a_spent_day(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    desk = await paid_desk(monkeypatch, budget_day_tokens_max=TWO_CALLS)
    await ran(desk)

    again = desk.ask(CycleRequest(idempotency_key="a", as_of=DAY, pipelines=PAID), needs=HELD)

    assert (again.outcome, again.status) == ("accepted", CycleStatus.FAILED)
