"""Events as lines, and which of them count as failures."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from contracts.audit import Event, EventType, fits
from services.cli.render import event_line
from services.cli.trading.tail import Sequences

CYCLE_ID = UUID("4332d851-4ebc-510c-b28d-0f5c50338936")
LETTER = {"sequence": 7, "subject": "desk.v1.dlq.risk.review", "code": "invalid"}


def _event(kind: EventType, sequence: int = 1, **data: Any) -> Event:
    return Event(
        event_id=UUID(int=sequence),
        sequence=sequence,
        type=kind,
        owner="execution" if kind.value.startswith("order") else "orchestrator",
        cycle_id=CYCLE_ID,
        pipeline="rules",
        state="planning",
        at=datetime(2026, 11, 22, 2, 27, 39, 694_000, tzinfo=UTC),
        data=data,
    )


def _plain(text: str, _style: str) -> str:
    return text


def test_every_type_makes_one_line() -> None:
    for kind in EventType:
        line = event_line.line(_event(kind), _plain)

        assert kind.value in line
        assert "4332d851    1" in line
        assert "\n" not in line


@pytest.mark.parametrize("width", [80, 100, 118])
def test_long_words_go_on_below_themselves_and_no_line_is_wider_than_the_terminal(
    width: int,
) -> None:
    words = "the source does not answer at the moment, and will be asked again in a while"
    event = _event(EventType.OPERATION_FAILED, step="plan", code="market_rests", message=words)

    first, *more = event_line.line(event, _plain, width).splitlines()

    assert EventType.OPERATION_FAILED.value in first
    assert more
    assert all(len(line) <= width and line.startswith(" " * 10) for line in more)
    assert " ".join(f"{first} {' '.join(more)}".split()).endswith(f"{words} (market_rests)")


def test_words_that_fit_stay_on_the_line() -> None:
    event = _event(EventType.STATE_ENTERED)

    assert event_line.line(event, _plain, 80) == event_line.line(event, _plain)


def test_a_line_break_in_a_models_text_stays_on_one_line() -> None:
    event = _event(EventType.OPERATION_FAILED, step="plan", code="x", message="a\nb\x1b[2Jc")

    assert "\n" not in event_line.line(event, _plain)
    assert "\x1b" not in event_line.line(event, _plain)


@pytest.mark.parametrize(
    ("event", "said"),
    [
        (
            _event(EventType.LETTER_KEPT).model_copy(update={"data": LETTER}),
            "7 desk.v1.dlq.risk.review (invalid)",
        ),
        (
            _event(
                EventType.OUTAGE_ENDED, since="2026-11-25T02:00:00Z", until="2026-11-25T02:09:00Z"
            ),
            "nothing could be committed from 2026-11-25 02:00:00 UTC to 2026-11-25 02:09:00 UTC",
        ),
        (
            _event(EventType.REPORT_WRITTEN, report={"account": "main", "session": "2012-06-29"}),
            "of main for 2012-06-29",
        ),
        (
            _event(EventType.NOTICES_GIVEN_UP, channel="phone", count=3, code="http_500"),
            "3 messages to phone (http_500)",
        ),
        (
            _event(
                EventType.TOOL_CALLED,
                step="analyst",
                name="get_stock_price",
                arguments={"ticker": "AAPL"},
                error="no_history: AAPL has none",
            ),
            "planning/analyst  get_stock_price(AAPL)  no_history: AAPL has none",
        ),
        (_event(EventType.STATE_ENTERED), "planning"),
        (
            _event(
                EventType.POSITION_UNPRICED,
                account="main",
                ticker="MSFT",
                price={"amount": "29.74", "currency": "USD"},
                priced_on="2012-07-10",
            ),
            "MSFT of main has no price, and counts at 29.74 USD of 2012-07-10",
        ),
        (
            _event(EventType.OPERATION_FAILED, step="plan", code="refused", message="it said no"),
            "planning/plan: it said no (refused)",
        ),
        (
            _event(
                EventType.LLM_CALLED,
                step="plan",
                name="m",
                duration_ms=1500.0,
                usage={"input_tokens": 1000, "output_tokens": 234},
            ),
            "planning/plan  m  1.50 s  1,234 tokens",
        ),
        (
            _event(
                EventType.ORDER_FILLED,
                side="buy",
                quantity="39",
                asset="AAPL",
                status="filled",
                price={"amount": "585.030000", "currency": "USD"},
                session="2012-07-02",
            ),
            "buy 39 AAPL filled at 585.03 USD on 2012-07-02",
        ),
        (
            _event(
                EventType.ORDER_PLACED,
                side="sell",
                quantity="973",
                asset="EEE.L",
                status="working",
                stop_price={"amount": "763.810000", "currency": "GBX"},
            ),
            "sell 973 EEE.L working, stop at 763.81 GBX",
        ),
        (
            _event(
                EventType.DECISION,
                decisions=[{"action": "buy", "quantity": "39", "asset": "AAPL"}],
                vetoed_tickers=["FB"],
            ),
            "buy 39 AAPL; vetoed FB",
        ),
        (_event(EventType.CYCLE_ENDED, status="failed", reason="why"), "failed: why"),
    ],
)
def test_a_line_says_what_matters_of_its_type(event: Event, said: str) -> None:
    assert event_line.detail(event) == said


def test_failures_are_failed_steps_refusals_and_bad_ends() -> None:
    bad = (
        _event(EventType.OPERATION_FAILED),
        _event(EventType.REQUEST_REJECTED),
        _event(EventType.MESSAGE_REFUSED),
        _event(EventType.CYCLE_ENDED, status="failed"),
        _event(EventType.ORDER_PLACED, status="rejected"),
    )
    good = (
        _event(EventType.CYCLE_ENDED, status="completed"),
        _event(EventType.CYCLE_ENDED, status="cancelled"),
        _event(EventType.ORDER_PLACED, status="working"),
        _event(EventType.LLM_CALLED),
    )

    assert all(map(event_line.is_failure, bad))
    assert not any(map(event_line.is_failure, good))


@pytest.mark.parametrize(
    ("pattern", "found"),
    [("*", True), ("order_*", True), ("execution.*", True), ("order_placed", False)],
)
def test_patterns_match_the_type_alone_or_with_its_owner(pattern: str, found: bool) -> None:
    assert fits(pattern, "execution", EventType.ORDER_FILLED) is found


def test_a_repeated_event_is_told_from_a_gap() -> None:
    seen = Sequences()

    gaps = [seen.gap_before(_event(EventType.LLM_CALLED, n)) for n in (5, 6, 6, 5, 9, 10)]

    assert gaps == [0, 0, None, None, 2, 0]
