"""The tail's clients, over events in memory: each gets every event once, in order, come what may.

The statements that find them in the tables are tested in tests/integration/console.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, cast
from uuid import UUID

import pytest

from contracts.audit import Gap
from contracts.position import BEGINNING, Order, Position
from libs.postgres.events import Ranks
from libs.postgres.pool import DatabaseUnavailable, Pool, PoolConnection
from libs.runtime.background import Background
from libs.web.problem import HttpProblem
from services.console.live.event_log import END, EventLog
from services.console.live.frames import Batch, EventFilter, EventLine, behind
from services.console.live.tail import Tail, TailPace
from tests.fakes.event_stream import Frame, Reader
from tests.fakes.log_lines import log_lines
from tests.unit.services.console.live.test_frames import line

SOON = TailPace(
    tick_s=0.001, queue_max=3, heartbeat_s=0.05, retry_after_s=0.001, failed_wait_s=0.001
)

pytestmark = pytest.mark.timeout(20)


class Held:
    """The reader's connection to nothing."""


@dataclass(frozen=True)
class Kept(EventLog):
    """Events in memory; `lost` while the database is away, `gone` where it is another one, `faults`
    are what the reader begins with."""

    lines: list[EventLine] = field(default_factory=list)
    lost: asyncio.Event = field(default_factory=asyncio.Event)
    gone: list[Gap] = field(default_factory=list)
    faults: list[Exception] = field(default_factory=list)

    def add(self, count: int, kind: str = "state_entered") -> None:
        for _ in range(count):
            self.lines.append(line(len(self.lines) + 1, kind))

    async def back(self, db: Any, count: int, cycle_id: UUID | None) -> Position:
        await self._answered()
        if isinstance(db, Held) and self.faults:
            raise self.faults.pop()
        place = len(self.lines) - 1 - count
        return behind(self.lines[place].row) if place >= 0 else BEGINNING

    async def since(
        self,
        db: Pool | PoolConnection,
        position: Position,
        ranks: Ranks,
        upto: Order = END,
        cycle_id: UUID | None = None,
    ) -> Batch:
        await self._answered()
        found = [each for each in self.lines if position.order < each.order <= upto]
        found = found[: self.read_max]
        return Batch(found, behind(found[-1].row) if found else position)

    async def _answered(self) -> None:
        await asyncio.sleep(0)
        if self.lost.is_set():
            raise DatabaseUnavailable("it is away")

    async def _gone(self, db: Any, position: Position) -> Gap | None:
        await self._answered()
        return self.gone.pop() if self.gone else None


class NoPool:
    """Connections to nothing."""

    @asynccontextmanager
    async def acquire(self) -> AsyncIterator[Held]:
        yield Held()


@pytest.fixture
def events() -> Kept:
    return Kept(read_max=7)


@asynccontextmanager
async def running(events: Kept) -> AsyncIterator[Tail]:
    made = Tail(cast("Pool", NoPool()), 2, events, SOON)
    async with Background(made.run()):
        yield made


@pytest.fixture
async def tail(events: Kept) -> AsyncIterator[Tail]:
    async with running(events) as made:
        yield made


class Client:
    """A client with a seat; `numbers` is what it has been sent."""

    def __init__(self, stream: AsyncGenerator[bytes, None]) -> None:
        self._stream = stream
        self._reader = Reader()
        self.frames: list[Frame] = []

    async def step(self) -> bool:
        """Take one chunk; False where there is none any more."""
        async for chunk in self._stream:
            self.frames += self._reader.feed(chunk)
            return True
        return False

    async def told(self) -> Frame:
        """The first frame: from where on."""
        while not self.frames:
            assert await self.step()
        return self.frames[0]

    async def until(self, count: int) -> list[int]:
        """The numbers of all events so far, once there are so many."""
        while len(self.numbers) < count:
            assert await self.step()
        return self.numbers

    async def gap(self) -> str:
        """The reason of the first gap."""
        while not (found := [each for each in self.frames if each.kind == "gap"]):
            assert await self.step()
        return str(found[0].data["reason"])

    @property
    def numbers(self) -> list[int]:
        return [each["sequence"] for frame in self.frames for each in frame.data if frame.names]


@asynccontextmanager
async def client(tail: Tail, start: Position | int = 0, **wanted: Any) -> AsyncIterator[Client]:
    with tail.seat():
        async with aclosing(tail.follow(start, EventFilter(**wanted))) as stream:
            yield Client(stream)


async def test_a_new_client_is_told_from_where_and_then_what_comes(
    tail: Tail, events: Kept
) -> None:
    events.add(5)
    async with client(tail) as one:
        first = await one.told()
        assert (first.data, first.id) == ([], str(behind(events.lines[4].row)))
        events.add(3)
        assert await one.until(3) == [6, 7, 8]


async def test_a_client_may_begin_some_events_before_now(tail: Tail, events: Kept) -> None:
    events.add(30)
    async with client(tail, 20) as one:
        assert await one.until(20) == list(range(11, 31))
        events.add(1)
        assert await one.until(21) == list(range(11, 32))


async def test_a_client_goes_on_right_behind_any_frame_that_it_had(
    tail: Tail, events: Kept
) -> None:
    events.add(10)
    async with client(tail, 100) as one:
        first = await one.until(10)
        position = one.frames[-1].id
    events.add(25)
    xid, number, mark = position.split("-")
    async with client(tail, Position((int(xid), int(number)), mark)) as again:
        later = await again.until(25)
    assert first + later == list(range(1, 36))


async def test_a_client_that_comes_while_events_come_misses_none(tail: Tail, events: Kept) -> None:
    async with client(tail) as busy, client(tail, 1_000) as late:
        await busy.told()
        done = asyncio.Event()

        async def writing() -> None:
            for _ in range(60):
                events.add(4)
                await asyncio.sleep(0.0005)
            done.set()

        async with asyncio.TaskGroup() as group:
            group.create_task(writing())
            await late.until(1)
            first = group.create_task(busy.until(240))
            second = group.create_task(late.until(240))
        assert done.is_set()
        assert first.result() == second.result() == list(range(1, 241))


async def test_a_client_that_is_too_slow_for_the_live_queue_misses_none(
    tail: Tail, events: Kept
) -> None:
    async with client(tail) as slow, client(tail) as quick:
        await slow.told()
        await quick.told()
        events.add(1)
        assert await slow.until(1) == await quick.until(1) == [1]
        for number in range(2, 12):  # more batches than may wait
            events.add(1)
            await quick.until(number)
        assert await slow.until(11) == list(range(1, 12))
        assert {frame.kind for frame in slow.frames} == {"events"}
        events.add(2)
        assert await slow.until(13) == list(range(1, 14)), "live again"


async def test_a_client_far_behind_is_told_of_the_gap_and_gets_the_newest() -> None:
    events = Kept(read_max=7, behind_max=10)
    events.add(10)
    async with running(events) as tail:
        async with client(tail, BEGINNING) as near:
            assert await near.until(10) == list(range(1, 11))
            assert {frame.kind for frame in near.frames} == {"events"}
        events.add(20)
        async with client(tail, BEGINNING) as far:
            assert await far.until(10) == list(range(21, 31))
            assert [frame.kind for frame in far.frames].count("gap") == 1
            assert await far.gap() == "behind"
            assert far.frames[0].id == str(behind(events.lines[19].row))


async def test_a_lost_database_costs_no_event(tail: Tail, events: Kept) -> None:
    async with client(tail) as one:
        await one.told()
        events.add(2)
        assert await one.until(2) == [1, 2]
        events.lost.set()
        events.add(5)
        for _ in range(3):
            assert await one.step(), "the stream stays open"
        assert one.numbers == [1, 2]
        events.lost.clear()
        assert await one.until(7) == list(range(1, 8))
        assert {frame.kind for frame in one.frames} == {"events"}


async def test_a_fault_that_nobody_foresaw_is_logged_and_costs_no_event(
    tail: Tail, events: Kept
) -> None:
    events.faults.extend((KeyError("a fault"), ValueError("another")))
    events.add(2)
    with log_lines() as logged:
        async with client(tail, 2) as one:
            assert await one.until(2) == [1, 2]
            events.add(3)
            assert await one.until(5) == [1, 2, 3, 4, 5]
    assert [each["event"] for each in logged].count("tail.failed") == 2


async def test_tables_that_were_made_anew_while_the_database_was_away_are_a_gap(
    tail: Tail, events: Kept
) -> None:
    async with client(tail) as one:
        await one.told()
        events.add(2)
        assert await one.until(2) == [1, 2]
        events.gone.append("unknown")
        events.lost.set()
        await one.step()
        events.lost.clear()
        assert await one.gap() == "unknown"


async def test_silence_is_broken_by_a_frame_that_moves_the_position(
    tail: Tail, events: Kept
) -> None:
    async with client(tail, pattern="order_*") as one:
        await one.told()
        events.add(9)
        last = str(behind(events.lines[-1].row))
        while one.frames[-1].id != last:
            assert await one.step()
        assert one.numbers == []
        events.add(1, "order_filled")
        assert await one.until(1) == [10]


async def test_seats_are_bounded_and_freed(tail: Tail) -> None:
    with tail.seat():
        with tail.seat(), pytest.raises(HttpProblem) as refused, tail.seat():
            pass
        assert refused.value.problem.status == 503
        assert "DESKBUS_HTTP_STREAMS_MAX" in refused.value.problem.detail
        with tail.seat():
            pass


async def test_closing_ends_every_stream_and_lets_nobody_in(tail: Tail, events: Kept) -> None:
    events.add(1)
    async with client(tail) as fed, client(tail, 5) as past:
        await fed.step()
        await past.until(1)
        tail.close()
        for each in (fed, past):
            while await each.step():
                pass
    with pytest.raises(HttpProblem) as refused, tail.seat():
        pass
    assert refused.value.problem.status == 503


async def test_nothing_is_read_while_nobody_follows(tail: Tail, events: Kept) -> None:
    async with client(tail) as one:
        await one.told()
    events.lost.set()  # a read would log an interruption and try again and again
    await asyncio.sleep(SOON.tick_s * 5)
    assert tail._position is None
