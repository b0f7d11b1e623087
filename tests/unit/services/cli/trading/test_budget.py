"""`deskbus budget`: what is left of the day."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from contracts.types import Usage
from contracts.upkeep import BudgetView, DayUsage
from services.cli.trading.budget import screen
from tests.unit.services.cli.screens import lines

TODAY, BEFORE = date(2026, 11, 22), date(2026, 11, 20)
USED = Usage(input_tokens=1_000_000, output_tokens=30_000, cost_usd=Decimal("3.21"))


def told(several: bool = False, **fields: Any) -> str:
    given: dict[str, Any] = {
        "today": TODAY,
        "resets_at": datetime(2026, 11, 23, tzinfo=UTC),
        "tokens_max": 20_000_000,
        "cost_usd_max": Decimal(100),
        "tokens_held": 12_000,
        "cost_usd_held": Decimal("0.4"),
        "tokens_left": 18_958_000,
        "cost_usd_left": Decimal("96.39"),
        "operation_tokens_max": 1_000_000,
        "operation_cost_usd_max": Decimal(5),
        "cycle_tokens_max": 2_000_000,
        "cycle_cost_usd_max": Decimal(10),
        "days": (DayUsage(day=TODAY, usage=USED),),
        **fields,
    }
    return " ".join(lines(screen(BudgetView(**given), several=several)))


def test_it_says_the_limit_what_is_spent_held_back_and_left_and_until_when() -> None:
    text = told()

    assert "budget of Sun 2026-11-22 UTC; the next day begins 2026-11-23 00:00" in text
    assert "limit spent reserved left" in text
    assert "tokens 20,000,000 1,030,000 12,000 18,958,000" in text
    assert "USD 100.0000 3.2100 0.4000 96.3900" in text
    assert "tokens: 1,000,000 in · 30,000 out" in text
    assert "one operation may use 1,000,000 tokens and 5.00 USD" in text
    assert "one cycle 2,000,000 and 10.00" in text


def test_a_day_on_which_nothing_was_paid_has_all_left() -> None:
    text = told(days=(), tokens_held=0, tokens_left=20_000_000)

    assert "tokens 20,000,000 0 0 20,000,000" in text
    assert "in ·" not in text


def test_the_last_days_are_listed_where_they_are_asked_for() -> None:
    days = (DayUsage(day=TODAY, usage=USED), DayUsage(day=BEFORE, usage=Usage(unsorted_tokens=9)))

    assert "Fri 2026-11-20 0 0 0/0 9 0.0000" in told(several=True, days=days)
    assert "2026-11-20" not in told(days=days)
