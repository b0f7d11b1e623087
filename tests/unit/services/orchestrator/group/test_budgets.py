"""The three budgets, each from both sides of its limit."""

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from contracts.operation import Reserve
from libs.runtime.settings import Settings
from services.orchestrator.group.budgets import next_day, refused_call, refused_cycle
from services.orchestrator.group.rows import CallBudget
from tests.unit.services.orchestrator.group.test_leases import lost_operation

D = Decimal
CALL = Reserve(tokens=100, cost_usd=D("0.50"))
ROOMY = CallBudget(1_000_000, D(1_000))
NOW = datetime(2026, 11, 22, 23, 59, 59, 999_999, tzinfo=UTC)


def limits(tokens: int = 1_000_000, cost_usd: str = "1000") -> Settings:
    return Settings(
        budget={"operation_tokens_max": tokens, "operation_cost_usd_max": D(cost_usd)},
    )


@pytest.mark.parametrize(
    ("purse", "short"),
    [
        (CallBudget(100, D("0.50")), None),
        (CallBudget(99, D("0.50")), "tokens"),
        (CallBudget(100, D("0.49999999")), "cost_usd"),
        (CallBudget(150, D(1), tokens_spent=50), None),
        (CallBudget(149, D(1), tokens_spent=50), "tokens"),
        (CallBudget(150, D(1), tokens_reserved=51), "tokens"),
        (CallBudget(500, D(1), cost_usd_spent=D("0.3"), cost_usd_reserved=D("0.2")), None),
        (CallBudget(500, D(1), cost_usd_spent=D("0.3"), cost_usd_reserved=D("0.21")), "cost_usd"),
        (CallBudget(0, D(0)), "tokens"),
    ],
)
def test_a_call_is_begun_where_it_fits_beside_all_that_is_spent_and_held(
    purse: CallBudget, short: str | None
) -> None:
    row, settings = lost_operation(), limits()

    of_cycle = refused_call(CALL, row, purse, ROOMY, settings)
    of_day = refused_call(CALL, row, ROOMY, purse, settings)

    if short is None:
        assert (of_cycle, of_day) == (None, None)
        return
    assert of_cycle is not None
    assert of_day is not None
    assert (of_cycle.outcome, of_day.outcome) == ("budget_exhausted", "budget_exhausted")
    assert (of_cycle.field, of_day.field) == (f"budgets.{short}", f"day_{short}_max")
    assert "the cycle's budget" in of_cycle.message
    assert "the day's budget" in of_day.message


def test_an_unknown_cost_is_bounded_by_tokens_and_begins_while_any_money_is_left() -> None:
    row, settings, unpriced = lost_operation(), limits(), Reserve(tokens=100, cost_usd=None)

    def field_of(purse: CallBudget) -> str | None:
        refused = refused_call(unpriced, row, purse, ROOMY, settings)
        assert refused is None or "100 tokens and an unknown cost" in refused.message
        return refused and refused.field

    assert field_of(CallBudget(100, D("0.01"))) is None
    assert field_of(CallBudget(99, D("0.01"))) == "budgets.tokens"
    assert field_of(CallBudget(100, D("0.01"), cost_usd_spent=D("0.01"))) == "budgets.cost_usd"
    assert field_of(CallBudget(100, D(0))) == "budgets.cost_usd"


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        (limits(300), None),
        (limits(299), "operation_tokens_max"),
        (limits(cost_usd="1.25"), None),
        (limits(cost_usd="1.24"), "operation_cost_usd_max"),
    ],
)
def test_an_operations_own_calls_count_against_its_own_limit(
    settings: Settings, field: str | None
) -> None:
    row = lost_operation()
    row.tokens, row.cost_usd = 200, D("0.75")

    refused = refused_call(CALL, row, ROOMY, None, settings)

    assert (refused and refused.field) == field


def test_the_narrowest_budget_is_named_where_several_are_used_up() -> None:
    empty = CallBudget(0, D(0))

    refused = refused_call(CALL, lost_operation(), empty, empty, limits(0))

    assert refused is not None
    assert refused.field == "operation_tokens_max"


def test_the_refusal_says_what_was_spent_and_what_is_in_flight() -> None:
    purse = CallBudget(1_000, D(5), 700, D("1.25"), 250, D("0.75"))

    refused = refused_call(CALL, lost_operation(), purse, None, limits())

    assert refused is not None
    assert "700 of 1,000 tokens and 1.2500 of 5.00 USD are spent" in refused.message
    assert "250 tokens and 0.7500 USD more are reserved" in refused.message
    assert "100 tokens and 0.5000 USD" in refused.message


@pytest.mark.parametrize(
    ("today", "refused"),
    [
        (CallBudget(1_000, D(5)), False),
        (CallBudget(1_000, D(5), tokens_spent=900), False),
        (CallBudget(1_000, D(5), tokens_spent=901), True),
        (CallBudget(1_000, D(5), cost_usd_spent=D("4.5")), False),
        (CallBudget(1_000, D(5), cost_usd_spent=D("4.50000001")), True),
        (CallBudget(0, D(5)), True),
    ],
)
def test_a_cycle_is_refused_once_not_one_call_fits_into_what_the_day_has_not_spent(
    today: CallBudget, *, refused: bool
) -> None:
    answer = refused_cycle(CALL, today, NOW)

    assert (answer is not None) is refused
    # What is only held back mostly comes back: nobody is sent away for it.
    held = replace(today, tokens_reserved=1_000, cost_usd_reserved=D(5))
    assert (refused_cycle(CALL, held, NOW) is not None) is refused
    assert refused_cycle(None, today, NOW) is None


def test_the_next_day_begins_at_midnight_utc() -> None:
    midnight = datetime(2026, 11, 23, tzinfo=UTC)
    assert next_day(NOW) == midnight
    assert next_day(midnight) == datetime(2026, 11, 24, tzinfo=UTC)
    answer = refused_cycle(CALL, CallBudget(0, D(0)), NOW)
    assert answer is not None
    assert answer.retry_at == midnight
