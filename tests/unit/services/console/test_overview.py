"""The overview's lists: what did nothing is folded, what failed alike is one line, what is near."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from contracts.cycle import CycleStatus
from contracts.exit_signal import ExitDistances, ExitTrigger, PositionExits
from contracts.query import CycleView
from contracts.types import Money
from services.console.pages.overview import lines
from services.console.pages.overview.lines import Quiet, by_reason, folded
from services.console.pages.overview.near_exits import nearest
from services.console.pages.overview.page import FAILED_MAX, Counts

NOW = datetime(2026, 11, 25, 12, tzinfo=UTC)


@pytest.fixture(autouse=True)
def plain_decisions(monkeypatch: pytest.MonkeyPatch) -> None:
    """A decision as its row: what is looked at here is which are folded."""
    monkeypatch.setattr(lines.logic, "decision_view", lambda row: row["decision"])


def row(number: int, kind: str, decision: str | None) -> dict[str, Any]:
    at = NOW - timedelta(minutes=number)
    return {"kind": kind, "decision": decision, "finished_at": at}


def test_checks_that_did_nothing_are_one_line_and_what_did_something_keeps_its_place() -> None:
    rows = [
        *(row(n, "exit", None) for n in range(12)),
        row(12, "decision", "bought"),
        row(13, "exit", None),
        row(14, "decision", None),
        row(15, "exit", "sold"),
    ]
    first, bought, between, sold = folded(rows, 6)
    assert isinstance(first, Quiet)
    assert isinstance(between, Quiet)
    assert (first.words, first.at) == ("12 checks, nothing to do", NOW)
    assert between.words == "1 check and 1 decision, nothing to do"
    assert (bought, sold) == ("bought", "sold")


def test_no_more_lines_are_made_than_are_shown() -> None:
    rows = [row(n, "exit", None if n % 2 else f"sold {n}") for n in range(40)]
    assert len(folded(rows, 5)) == 5
    assert folded([], 5) == []


def test_no_decision_is_read_that_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []
    monkeypatch.setattr(lines.logic, "decision_view", lambda row: shown.append(row["decision"]))

    folded([row(0, "exit", None), *(row(n, "decision", f"bought {n}") for n in range(1, 80))], 5)

    assert shown == ["bought 1", "bought 2", "bought 3", "bought 4"]


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
