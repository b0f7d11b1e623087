"""One handler's lane over a console in memory: what is missed, repeated, late, or goes wrong."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from contracts.audit import Event, EventAt, EventsPage, EventsSince, EventType
from contracts.position import position_of
from libs.bus.listening.heard import CaughtUp, Heard, Reading
from libs.bus.listening.lane import Lane
from libs.bus.listening.positions import SavedPosition
from libs.runtime.errors import Unavailable
from tests.fakes.events import Console, step

SOON_S = 10.0
LANE = "libs.bus.listening.lane"


class Held(Console):
    """A console whose next answer, once made, waits until it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.answered = asyncio.Event()
        self.go_on = asyncio.Event()
        self.go_on.set()

    async def ask(self, question: EventsSince) -> EventsPage:
        page = await super().ask(question)
        self.answered.set()
        await self.go_on.wait()
        return page


class Run:
    """A lane with its handler, fed as FastStream feeds it."""

    def __init__(self, console: Console, path: Path | None = None, **options: Any) -> None:
        self.heard: list[int] = []
        self.errors: list[Exception] = []
        self.failed = asyncio.Event()
        self._news = asyncio.Event()

        async def on_step(event: Event) -> None:
            if self.errors:
                raise self.errors.pop(0)
            self.heard.append(event.sequence)
            self._news.set()

        reading = Reading([EventType.OPERATION_STARTED], on_step)
        position = SavedPosition(path)
        self.lane = Lane(
            "on_step", reading, on_step, position, console.ask, self.failed.set, **options
        )

    async def feed(self, message: CaughtUp) -> None:
        placed = EventAt(
            position=message.headers["Desk-Position"],
            event=Event.model_validate_json(message.data),
        )
        await self.lane.live(_heard(placed, caught_up=True))

    async def live(self, *events: EventAt) -> None:
        for placed in events:
            await self.lane.live(_heard(placed, caught_up=False))

    async def until(self, number: int) -> list[int]:
        async with asyncio.timeout(SOON_S):
            while number not in self.heard:
                self._news.clear()
                await self._news.wait()
        return self.heard


def _heard(placed: EventAt, *, caught_up: bool) -> Heard:
    return Heard(placed.event, position_of(placed.position), caught_up)


@pytest.fixture
async def tasks() -> AsyncIterator[list["asyncio.Task[None]"]]:
    """Tasks that end with the test."""
    running: list[asyncio.Task[None]] = []
    yield running
    for task in running:
        task.cancel()


async def caught_up(run: Run, tasks: list["asyncio.Task[None]"]) -> Run:
    run.lane.missed()
    tasks.append(asyncio.create_task(run.lane.keep(run.feed)))
    async with asyncio.timeout(SOON_S):
        await run.lane.caught_up()
    return run


async def test_what_is_missed_while_an_answer_is_on_its_way_is_asked_for_again(tasks: Any) -> None:
    console = Held()
    run = Run(console)
    console.go_on.clear()
    run.lane.missed()
    tasks.append(asyncio.create_task(run.lane.keep(run.feed)))
    await console.answered.wait()
    console.record.append(step(1))  # told after the answer was made, before the connection is back
    run.lane.missed()
    console.go_on.set()
    assert await run.until(1) == [1]
    assert len(console.asked) == 2


async def test_an_event_that_was_lost_unnoticed_comes_late(
    tasks: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{LANE}.CHECK_EVERY_EVENTS", 3)
    monkeypatch.setattr(f"{LANE}.SAVE_EVERY_S", 0.01)
    console = Console()
    run = await caught_up(Run(console), tasks)
    events = [step(number) for number in range(1, 5)]
    console.record += events
    await run.live(events[0], events[2], events[3])
    assert await run.until(2) == [1, 3, 4, 2]
    await run.live(*events)
    assert run.heard == [1, 3, 4, 2]


async def test_a_check_that_finds_nothing_holds_nothing_up(
    tasks: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{LANE}.CHECK_EVERY_S", 0.0)
    monkeypatch.setattr(f"{LANE}.SAVE_EVERY_S", 0.001)
    console = Console(limit=2)
    run = await caught_up(Run(console), tasks)
    for number in range(1, 8):
        console.record.append(step(number))
        await run.live(console.record[-1])
    console.away = True
    await console.was_asked(len(console.asked) + 2, SOON_S)
    console.record.append(step(8))
    await run.live(console.record[-1])
    assert run.heard == [1, 2, 3, 4, 5, 6, 7, 8]


async def test_repeats_are_known_however_many_there_were(
    tasks: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{LANE}.RECENT_MAX", 2)
    console = Console()
    run = await caught_up(Run(console), tasks)
    console.record += [step(number) for number in range(1, 6)]
    await run.live(*console.record)
    await run.live(console.record[0])
    await run.live(console.record[1])
    console.record.append(step(6))
    await run.live(console.record[-1])
    assert run.heard == [1, 2, 3, 4, 5, 6]


async def test_a_lane_that_failed_takes_no_later_event_and_keeps_its_place(
    tasks: Any, tmp_path: Path
) -> None:
    console, path = Console(), tmp_path / "place"
    run = await caught_up(Run(console, path), tasks)
    console.record += [step(1), step(2), step(3)]
    await run.live(console.record[0])
    run.errors = [ZeroDivisionError()]
    with pytest.raises(ZeroDivisionError):
        await run.live(console.record[1])
    await run.live(console.record[2])
    run.lane.save()
    assert run.failed.is_set()
    again = await caught_up(Run(console, path), tasks)
    assert (run.heard, again.heard) == ([1], [2, 3])


async def test_a_lane_that_is_closed_during_a_handlers_outage_has_not_dealt_with_the_event(
    tasks: Any, tmp_path: Path
) -> None:
    console, path = Console(), tmp_path / "place"
    run = await caught_up(Run(console, path), tasks)
    console.record.append(step(1))
    run.errors = [Unavailable("away")]
    working = asyncio.create_task(run.live(console.record[0]))
    async with asyncio.timeout(SOON_S):
        while run.errors:  # noqa: ASYNC110 - the handler tells nobody
            await asyncio.sleep(0)
    run.lane.close()
    await working
    run.lane.save()
    again = await caught_up(Run(console, path), tasks)
    assert (run.heard, again.heard) == ([], [1])


async def test_a_position_that_cannot_be_read_or_written_loses_nothing(
    tasks: Any, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("7-x")
    console = Console(record=[step(1)])
    run = await caught_up(Run(console, tmp_path / "file", back=1), tasks)
    assert run.heard == [1]
    below = Run(console, tmp_path / "file" / "below")
    await below.live(console.record[0])
    below.lane.save()
    assert below.heard == [1]
