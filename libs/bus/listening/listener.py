"""Hear a desk's events: `hears` for whoever was told of a type, `pulls` for a durable consumer."""

import asyncio
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import nats.errors
import structlog
from faststream import FastStream
from faststream.specification import AsyncAPI

from contracts.audit import BACK_MAX, Event, EventsPage, EventsSince, EventType
from contracts.subjects.events import EVENTS_SINCE
from libs.bus.client import Client
from libs.bus.connection import BusLost, BusNotReachable, Connection, flush
from libs.bus.listening.broker import DeskBroker
from libs.bus.listening.heard import HandlerInvalid, Reading, subject_of
from libs.bus.listening.lane import Lane
from libs.bus.listening.positions import SavedPosition
from libs.bus.listening.pulled import Delivered, Delivery, pulled, settled
from libs.bus.listening.telemetry import Watched
from libs.telemetry.logging import configure_logging

PENDING_MAX, PENDING_BYTES_MAX = 16_384, 32 * 1024 * 1024
"""Live events of one handler that may wait in memory; where more come they are asked for again."""
AT_ONCE_MAX = 32
"""Events of a durable consumer that are handled at the same time."""
FLUSH_S = 5.0

E = TypeVar("E", bound=Event)
Hears = Callable[[E], Awaitable[None]]
Takes = Callable[[E, Delivery], Awaitable[None]]

log = structlog.get_logger()


class Listener:
    """One program's ears under one identity. Name the handlers, then `run`, or `listening`.

    `positions` is a folder in which each handler's place is kept over restarts; without one it
    begins `back` events before now. `broker` and `program` are FastStream's.
    """

    def __init__(
        self,
        url: str,
        identity: str,
        secrets_dir: Path,
        *,
        positions: Path | None = None,
        back: int = 0,
        middlewares: Sequence[Any] = (),
    ) -> None:
        if not 0 <= back <= BACK_MAX:
            raise ValueError(f"back is 0 to {BACK_MAX}")
        self.broker = DeskBroker(
            url,
            identity,
            secrets_dir,
            on_closed=self._on_closed,
            on_lost=self._on_lost,
            middlewares=(Watched, *middlewares),
        )
        self.program = FastStream(
            self.broker, logger=None, specification=AsyncAPI(title=f"Deskbus: {identity}")
        )
        self.lost = asyncio.Event()
        self._identity = identity
        self._positions = positions
        self._back = back
        self._lanes: list[tuple[Lane, Any]] = []
        self._error: BaseException | None = None
        self._closed = asyncio.Event()
        self._stopping = False

    def hears(self, *types: EventType) -> Callable[[Hears[E]], Hears[E]]:
        """Decorate a handler of these types of events: `async def on(event: EventOf[Shape])`.

        It gets what it missed and then what comes, in the desk's order, each event once, one at a
        time. An `Unavailable` that it raises is waited for; any other error ends the program, and
        the event comes again at the next start. Raises `HandlerInvalid`.
        """

        def heard_by(handler: Hears[E]) -> Hears[E]:
            name = handler.__name__
            if any(lane.name == name for lane, _ in self._lanes):
                raise HandlerInvalid(f"two handlers are called {name}: give one another name")
            path = self._positions / f"{name}.position" if self._positions else None
            reading = Reading(types, handler)
            lane = Lane(
                name, reading, handler, SavedPosition(path), self._ask, self._on_failed, self._back
            )
            subscriber = self.broker.subscriber(
                subject_of(types),
                pending_msgs_limit=PENDING_MAX,
                pending_bytes_limit=PENDING_BYTES_MAX,
                no_reply=True,
                decoder=reading,
                title=name,
                description=handler.__doc__,
            )
            subscriber(_named(lane.live, name, reading.model))
            self._lanes.append((lane, subscriber))
            return handler

        return heard_by

    def pulls(
        self,
        stream: str,
        durable: str,
        *,
        at_once_max: int = AT_ONCE_MAX,
        skipped: Callable[[Delivery], None] = lambda _: None,
    ) -> Callable[[Takes[E]], Takes[E]]:
        """Decorate the handler of a durable consumer that the provisioner has made.

        Up to `at_once_max` events are handled at a time, begun in the stream's order. The handler
        settles each `Delivery`; what it does not settle, or fails at, comes again. `skipped` is
        called with each that holds no event that this version can read, and that comes no more.
        """

        def heard_by(handler: Takes[E]) -> Takes[E]:
            async def take(delivered: Delivered) -> None:
                await settled(delivered, handler, skipped)

            named = _named(take, handler.__name__, Event)
            pulled(self.broker, stream, durable, at_once_max, named, self._on_pull_ended)
            return handler

        return heard_by

    @property
    def connection(self) -> Connection:
        """The connection to NATS, while it listens."""
        connection: Connection = self.broker.config.connection_state.connection
        return connection

    @property
    def failure(self) -> BaseException | None:
        """The reason why `lost` is set."""
        failures = (lane.failure for lane, _ in self._lanes)
        return next(filter(None, (*failures, self._error)), None)

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        """Hear while the block runs. Then nothing more is taken, what is in hand may end, and the
        rest is left to the next start. Raises `BusNotReachable`."""
        for lane, _ in self._lanes:
            lane.missed()
        keeping: list[asyncio.Task[None]] = []
        try:
            await self._start()
            for lane, subscriber in self._lanes:
                keep = asyncio.create_task(lane.keep(subscriber.process_message))
                keep.add_done_callback(partial(self._on_kept, lane))
                keeping.append(keep)
            yield
        finally:
            self._stopping = True
            for lane, _ in self._lanes:
                lane.close()
            await self.broker.stop()
            for keep in keeping:
                keep.cancel()
            for lane, _ in self._lanes:
                lane.save()

    async def _start(self) -> None:
        try:
            await self.broker.start()
            await flush(self.connection, FLUSH_S)
        except (OSError, TimeoutError, nats.errors.Error) as error:
            raise BusNotReachable(f"{self._identity}: NATS does not answer ({error!r})") from error

    async def caught_up(self) -> None:
        """Wait until no handler misses anything, or the program stops."""
        for lane, _ in self._lanes:
            await lane.caught_up()

    async def run(self, on_caught_up: Callable[[], None] = lambda: None) -> None:
        """Hear until SIGTERM or SIGINT. Raises what a handler raised, and `BusLost`.

        `on_caught_up` is called once nothing is missing that was told before. Logs go to stderr,
        unless structlog has been set up already.
        """
        if not structlog.is_configured():
            configure_logging()
        loop = asyncio.get_running_loop()
        stop = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)
        async with self.listening():
            caught_up = asyncio.create_task(self._tell_caught_up(on_caught_up))
            ends = [asyncio.create_task(event.wait()) for event in (stop, self.lost)]
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            for task in (caught_up, *ends):
                task.cancel()
        if self.failure is not None:
            raise self.failure

    async def _tell_caught_up(self, on_caught_up: Callable[[], None]) -> None:
        await self.caught_up()
        if self.lost.is_set():
            return
        on_caught_up()
        log.info("listening.caught_up", identity=self._identity)

    async def _ask(self, question: EventsSince) -> EventsPage:
        client = Client(self.connection, self._identity, self._closed)
        return await client.ask(EVENTS_SINCE, question)

    async def _on_closed(self) -> None:
        if not self._stopping:
            self._fail(BusLost(self._identity))

    def _on_lost(self) -> None:
        for lane, _ in self._lanes:
            lane.missed()

    def _on_failed(self) -> None:
        self.lost.set()

    def _on_pull_ended(self, error: BaseException) -> None:
        self._fail(error)

    def _on_kept(self, lane: Lane, keeping: "asyncio.Task[None]") -> None:
        if not keeping.cancelled() and (error := keeping.exception()) is not None:
            lane.failure = lane.failure or error
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        self._error = self._error or error
        self.lost.set()


def _named(call: Callable[[Any], Awaitable[None]], name: str, model: type[Event]) -> Any:
    """The function as FastStream describes it: under the handler's name, with its event's type."""

    async def handler(event: Any) -> None:
        await call(event)

    handler.__name__ = name
    handler.__annotations__ = {"event": model, "return": None}
    return handler
