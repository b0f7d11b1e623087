"""Events written together: each once, as many as were asked for, exact as JSON."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from uuid import UUID

import pytest

from contracts.audit import Event, EventType
from libs.bus.event_types import require_known
from libs.runtime.nearest import UnknownName
from services.cli.trading.tail import TailFilter, _live, _Writer

TYPES = (EventType.STATE_ENTERED, EventType.OPERATION_FAILED, EventType.ORDER_FILLED)


async def _events(*sequences: int) -> AsyncIterator[Event]:
    for number in sequences:
        yield Event(
            event_id=UUID(int=number),
            sequence=number,
            type=TYPES[number % len(TYPES)],
            owner="orchestrator",
            cycle_id=UUID(int=1),
            at=datetime(2026, 11, 22, tzinfo=UTC),
        )
        await asyncio.sleep(0)


async def _written(
    capsys: pytest.CaptureFixture[str],
    events: AsyncIterator[Event],
    *,
    pattern: str = "*",
    errors: bool = False,
    limit: int | None = None,
) -> list[int]:
    wanted = TailFilter(pattern=pattern, errors=errors, limit=limit, json=True)
    await _Writer(wanted).run(events)
    lines = capsys.readouterr().out.splitlines()
    return [Event.model_validate_json(line).sequence for line in lines]


async def test_all_events_are_written_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    assert await _written(capsys, _events(*range(1, 301))) == list(range(1, 301))


async def test_it_ends_after_as_many_as_were_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    async def endless() -> AsyncIterator[Event]:
        number = 0
        while True:
            number += 1
            async for event in _events(number):
                yield event

    async with asyncio.timeout(5):
        assert await _written(capsys, endless(), limit=3) == [1, 2, 3]


async def test_only_failures_are_written_where_asked(capsys: pytest.CaptureFixture[str]) -> None:
    assert await _written(capsys, _events(*range(1, 7)), errors=True) == [1, 4]


async def test_only_what_matches_is_written(capsys: pytest.CaptureFixture[str]) -> None:
    assert await _written(capsys, _events(*range(1, 7)), pattern="order_*") == [2, 5]


async def test_a_repeated_event_is_written_once_and_a_gap_is_told(
    capsys: pytest.CaptureFixture[str],
) -> None:
    live = [event.sequence async for event in _live(_events(1, 2, 2, 1, 5))]

    assert live == [1, 2, 5]
    assert "missed 2 events" in capsys.readouterr().err


async def test_a_failure_while_listening_is_raised_and_not_swallowed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async def breaks() -> AsyncIterator[Event]:
        async for event in _events(1):
            yield event
        raise ConnectionError("gone")

    with pytest.raises(ConnectionError, match="gone"):
        await _written(capsys, breaks())


@pytest.mark.parametrize(
    ("pattern", "near"),
    [
        ("ordr_*", "order_*"),
        ("decison", "decision"),
        ("executon.*", "execution.*"),
        ("zzz", None),
    ],
)
def test_a_pattern_that_no_event_can_fit_is_refused_with_what_comes_near(
    pattern: str, near: str | None
) -> None:
    with pytest.raises(UnknownName) as caught:
        require_known(pattern)
    begin = f"type: unknown event type {pattern!r}; "
    if near is not None:
        assert caught.value.message == f"{begin}did you mean {near}?"
    else:
        assert caught.value.message.startswith(f"{begin}known: answer_checked, ")
        assert caught.value.message.endswith(" more")


@pytest.mark.parametrize("pattern", ["*", "decision", "order_*", "execution.*", "*.cycle_ended"])
def test_a_pattern_that_events_can_fit_is_let_through(pattern: str) -> None:
    require_known(pattern)
