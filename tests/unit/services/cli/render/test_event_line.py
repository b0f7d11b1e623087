"""Events as lines, and which of them count as failures."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from contracts.audit import Event, EventType, fits
from libs.report import events
from services.cli.render import event_line
from services.cli.trading.tail import Sequences

CYCLE_ID = UUID("4332d851-4ebc-510c-b28d-0f5c50338936")


def _event(kind: EventType, sequence: int = 1, **data: Any) -> Event:
    return Event(
        event_id=UUID(int=sequence),
        sequence=sequence,
        type=kind,
        owner=kind.owner,
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
    assert " ".join(f"{first} {' '.join(more)}".split()).endswith(f"failed (market_rests): {words}")


def test_words_that_fit_stay_on_the_line() -> None:
    event = _event(EventType.STATE_ENTERED)

    assert event_line.line(event, _plain, 80) == event_line.line(event, _plain)


def test_a_line_break_in_a_models_text_stays_on_one_line() -> None:
    event = _event(EventType.OPERATION_FAILED, step="plan", code="x", message="a\nb\x1b[2Jc")

    assert "\n" not in event_line.line(event, _plain)
    assert "\x1b" not in event_line.line(event, _plain)


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

    assert all(map(events.is_failure, bad))
    assert not any(map(events.is_failure, good))


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
