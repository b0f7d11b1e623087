"""The live tail: all events to many clients, each from any position on, without loss or repeat.

While anybody follows, one reader reads what is new at every tick and hands it to all. A client that
comes with a position first reads the tables up to where that reader stands, and goes back to them
whenever it was too slow for the live queue: so neither costs it an event (decision 0018).
"""

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, contextmanager
from dataclasses import dataclass

import structlog

from contracts.position import Position
from libs.postgres.events import Ranks
from libs.postgres.pool import Pool, PoolConnection
from libs.runtime.background import event_within
from libs.runtime.errors import Unavailable
from libs.web.problem import unavailable
from services.console.live.event_log import EventLog, Start
from services.console.live.frames import COMMENT, RETRY, Batch, EventFilter, frames, gap_frame

log = structlog.get_logger()


@dataclass(frozen=True)
class TailPace:
    """How the tail goes; tests go by others."""

    tick_s: float = 0.05
    """How often new events are looked for: a frame a tick."""
    queue_max: int = 40
    """Batches that may wait for one client, two seconds' worth; then it is on its own."""
    heartbeat_s: float = 10.0
    """The longest silence: a client that hears nothing for longer has lost the server."""
    retry_after_s: float = 0.2
    """How long to wait for Postgres, and before it is read anew for somebody who has come."""
    failed_wait_s: float = 5.0
    """How long to wait after a fault that nobody foresaw: it may come again."""


class _Feed:
    """The events that wait for one client."""

    def __init__(self, batches_max: int) -> None:
        self._batches: deque[Batch] = deque()
        self._batches_max = batches_max
        self._news = asyncio.Event()
        self.ended = False

    def offer(self, batch: Batch) -> None:
        """Put it behind the others; a client that lets too many wait gets no more."""
        if len(self._batches) >= self._batches_max:
            self.ended = True
        else:
            self._batches.append(batch)
        self._news.set()

    def end(self) -> None:
        """Nothing comes any more."""
        self.ended = True
        self._news.set()

    async def next(self, timeout_s: float) -> Batch | None:
        """The next batch; None where there is none in time or the feed has ended."""
        if not self._batches and not self.ended:
            self._news.clear()
            await event_within(self._news, timeout_s)
        return self._batches.popleft() if self._batches else None


class Tail:
    """Feeds clients. `run` in a task beside the server; `close` before the server stops."""

    def __init__(
        self,
        pool: Pool,
        clients_max: int,
        events: EventLog | None = None,
        pace: TailPace | None = None,
    ) -> None:
        self._pool = pool
        self._clients_max = clients_max
        self._events = events or EventLog()
        self._pace = pace or TailPace()
        self._clients = 0
        self._followed = asyncio.Event()
        self._closed = asyncio.Event()
        self._feeds: set[_Feed] = set()
        self._position: Position | None = None
        self._ready = asyncio.Event()

    @contextmanager
    def seat(self) -> Iterator[None]:
        """One client's place while the block runs. Raises `HttpProblem` where none is free."""
        if self._closed.is_set():
            raise unavailable("this console is stopping")
        if self._clients >= self._clients_max:
            raise unavailable(
                f"{self._clients_max} clients follow the events (DESKBUS_HTTP_STREAMS_MAX); try "
                "again later"
            )
        self._clients += 1
        self._followed.set()
        try:
            yield
        finally:
            self._clients -= 1
            if not self._clients:
                self._followed.clear()

    def close(self) -> None:
        """End all streams; their clients may resume elsewhere, or when the console is back."""
        self._closed.set()
        for feed in self._feeds:
            feed.end()

    async def run(self) -> None:
        """Read what is new while anybody follows; until cancelled."""
        try:
            while not self._closed.is_set():
                await self._followed.wait()
                wait_s = self._pace.retry_after_s
                try:
                    async with self._pool.acquire() as db:
                        await self._live(db)
                except Unavailable as error:
                    log.warning("tail.interrupted", error=type(error).__name__)
                except Exception:
                    # To end with it would end the desk where all services share a process.
                    log.exception("tail.failed")
                    wait_s = self._pace.failed_wait_s
                # Whoever follows looks first whether these are still the tables that it has read.
                self._send_back()
                await event_within(self._closed, wait_s)
        finally:
            self.close()

    async def _live(self, db: PoolConnection) -> None:
        ranks = Ranks()
        position = await self._events.back(db, 0, None)
        while self._followed.is_set():
            self._position = position
            self._ready.set()
            began = time.monotonic()
            batch = await self._events.since(db, position, ranks)
            position = batch.end
            if batch.lines:
                self._hand_out(batch)
            if len(batch.lines) < self._events.read_max:
                await asyncio.sleep(max(self._pace.tick_s - (time.monotonic() - began), 0))

    def _hand_out(self, batch: Batch) -> None:
        self._position = batch.end
        for feed in list(self._feeds):
            feed.offer(batch)
            if feed.ended:
                self._feeds.discard(feed)
                log.info("tail.client_slow")

    def _send_back(self) -> None:
        """All clients to the tables, and there is no reader."""
        self._position = None
        self._ready.clear()
        for feed in self._feeds:
            feed.end()
        self._feeds.clear()

    async def follow(self, start: Start, wanted: EventFilter) -> AsyncGenerator[bytes, None]:
        """Frames from `start` on, until `close`; the caller has a seat.

        The first one says from which position on, or tells of a gap.
        """
        yield RETRY
        while not self._closed.is_set():
            try:
                at, gone = await self._events.entered(self._pool, start, wanted.cycle_id)
                yield b"".join(frames((), at)) if gone is None else gap_frame(gone, at)
                client = _Client(at, wanted)
                start = at
                async with aclosing(self._from_tables(client)) as past:
                    async for frame in past:
                        start = client.at
                        yield frame
                # Nothing was awaited since the reader stood where the client does: nothing is lost.
                async with aclosing(self._fed(client)) as live:
                    async for frame in live:
                        yield frame
                start = client.at
            except Unavailable:
                yield COMMENT
                await event_within(self._closed, self._pace.retry_after_s)

    async def _from_tables(self, client: "_Client") -> AsyncGenerator[bytes, None]:
        """Frames up to where the reader stands."""
        ranks = Ranks()
        while (upto := self._position) is None or client.at.order < upto.order:
            if self._closed.is_set():
                return
            if upto is None:
                await event_within(self._ready, self._pace.retry_after_s)
                yield COMMENT
                continue
            batch = await self._events.since(
                self._pool, client.at, ranks, upto.order, client.wanted.cycle_id
            )
            client.at = batch.end if batch.lines else upto
            yield batch.wanted(client.wanted) or COMMENT

    async def _fed(self, client: "_Client") -> AsyncGenerator[bytes, None]:
        """Live frames until the client is sent back to the tables."""
        feed = _Feed(self._pace.queue_max)
        self._feeds.add(feed)
        said_at = time.monotonic()
        try:
            while not self._closed.is_set():
                left_s = said_at + self._pace.heartbeat_s - time.monotonic()
                batch = await feed.next(max(left_s, 0))
                if batch is None and feed.ended:
                    return
                frame = b"" if batch is None else client.takes(batch)
                now = time.monotonic()
                if not frame and now - said_at >= self._pace.heartbeat_s:
                    frame = b"".join(frames((), client.at))
                if frame:
                    said_at = now
                    yield frame
        finally:
            self._feeds.discard(feed)


@dataclass
class _Client:
    """A client's filter, and the event right behind which it stands."""

    at: Position
    wanted: EventFilter

    def takes(self, batch: Batch) -> bytes:
        """The batch's frames for it; empty where there is nothing for it."""
        # The reader may stand before a client who has come from another console.
        batch = batch.behind(self.at)
        if not batch.lines:
            return b""
        self.at = batch.end
        return batch.wanted(self.wanted)
