"""The overview's lists: what failed alike is one line, what is near."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from contracts.cycle import CycleStatus
from contracts.cycle_query import CycleView
from contracts.exit_signal import ExitDistances, ExitTrigger, PositionExits
from contracts.types import Money
from services.console.pages.overview.lines import by_reason
from services.console.pages.overview.near_exits import nearest
from services.console.pages.overview.page import FAILED_MAX, Counts

NOW = datetime(2026, 11, 25, 12, tzinfo=UTC)


def test_failures_that_were_not_counted_to_the_end_say_so() -> None:
    none = {"running": 0, "approvals": 0, "stuck": 0, "halts": 0, "letters": 0}
    assert Counts(failed=12, **none).failed_text == "12"
    assert Counts(failed=FAILED_MAX, **none).failed_text == "1,000+"


def failed(number: int, reason: str, kind: str = "decision") -> CycleView:
    return CycleView(cycle_id=UUID(int=number), kind=kind, status=CycleStatus.FAILED, reason=reason)


def test_failures_of_one_reason_are_one_line_that_leads_to_the_newest() -> None:
    views = [failed(1, "scanning/digest failed: no news"), failed(2, "poison")]
    views.append(failed(3, "scanning/digest failed: no news"))
    away, poison = by_reason(views, 5)
    assert (away.count, away.newest.cycle_id) == (2, UUID(int=1))
    assert away.words == "no news"
    assert (poison.count, poison.newest.reason) == (1, "poison")
    assert len(by_reason(views, 1)) == 1
    assert len(by_reason([failed(1, "no news"), failed(2, "no news", "exit")], 5)) == 2


def position(ticker: str, *triggers: ExitTrigger) -> PositionExits:
    usd = Money(amount=Decimal(100))
    return PositionExits(
        ticker=ticker,
        quantity=Decimal(1),
        price=usd,
        average_cost=usd,
        value=Decimal(100),
        triggers=triggers,
    )


def trigger(rule: str, distance: float | None, **given: Any) -> ExitTrigger:
    return ExitTrigger(rule=rule, unit=given.pop("unit", "price"), distance=distance, **given)


def test_the_position_that_is_nearest_to_a_sale_comes_first_whoever_holds_it() -> None:
    far = position("IBM", trigger("stop_loss", 0.2))
    warned = trigger("regime", 0.0, primary=False, unit="return")
    old = trigger("hold_period", 1, unit="sessions")
    near = position("AAPL", warned, old, trigger("take_profit", 0.04), trigger("stop_loss", 0.1))
    unknown = position("MSFT", trigger("momentum", None, unit="return"))
    day = date(2012, 6, 29)
    found = nearest(
        {
            "main": ExitDistances(account="main", as_of=day, positions=(far, unknown)),
            "mine": ExitDistances(account="mine", as_of=day, positions=(near,)),
            "away": None,
        }
    )
    assert [(it.account, it.position.ticker) for it in found.positions] == [
        ("mine", "AAPL"),
        ("main", "IBM"),
    ]
    assert found.positions[0].trigger.rule == "take_profit"
    # A desk whose exit rules are away is not one with nothing near.
    assert found.silent == ["away"]
