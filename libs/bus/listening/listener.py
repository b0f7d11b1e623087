"""Programs that hear events: each event of some types once, in the desk's order, none missed.

FastStream hears live events, as it is. They only say that there is news: what a handler gets is
read behind its position by `events_since`. So a live message that is lost, late or repeated changes
nothing. Where events cannot be had any more the log says so (`listening.gap`).
"""

import asyncio
import contextlib
import inspect
import signal
import typing
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import nats.errors
import structlog
from faststream import FastStream
from faststream.nats import NatsBroker, NatsNKey, NatsSecurity
from faststream.specification import AsyncAPI

from contracts.audit import BACK_MAX, Event, EventAt, EventsPage, EventsSince, EventType
from contracts.event_data import EVENT_DATA, EventOf
from contracts.position import position_of
from contracts.subjects.events import EVENTS, EVENTS_SINCE
from contracts.subjects.subject import PREFIX
from libs.bus.client import Client
from libs.bus.codec import MessageInvalid, decode
from libs.bus.connection import BusLost, BusNotReachable, connect, options, within
from libs.bus.listening.positions import SavedPosition
from libs.keys import tls
from libs.runtime.background import event_within
from libs.runtime.errors import DeskError, Unavailable
from libs.telemetry.logging import configure_logging

POLL_S = 5.0
"""How late an event comes at most whose live message was lost."""
GRACE_S = 5.0
"""How long the event in hand may take when the program stops."""
CONNECT_S = 10.0
RETRY_AFTER_S, RETRY_AFTER_S_MAX = 0.2, 5.0
"""The wait between two tries during an outage doubles up to the second."""
CYCLE = "{cycle_id}"
"""The last token of an event's subject, as FastStream and the AsyncAPI document write it."""

E = TypeVar("E", bound=Event)
Handler = Callable[[E], Awaitable[None]]

log = structlog.get_logger()


class HandlerInvalid(DeskError):
    """A handler is not a coroutine, or its first parameter cannot take its events."""

    code = "handler_invalid"


class _Stopped(Exception):
    """The program stops while an outage is waited for; the event comes again."""


@dataclass
class _Hearer:
    """One handler and its place in the order of events."""

    name: str
    types: Sequence[EventType]
    model: type[Event]
    handle: Callable[[Any], Awaitable[None]]
    position: SavedPosition
    news: asyncio.Event = field(default_factory=asyncio.Event)
    caught_up: asyncio.Event = field(default_factory=asyncio.Event)


class Listener:
    """A program that hears events under one identity. Name the handlers, then `run`, or
    `listening`.

    `positions` is a folder in which each handler's place is kept over restarts; without one it
    begins `back` events before now. `broker` and `program` are FastStream's. `lost` is set where
    the program must end; `failure` says why.
    """

    def __init__(
        self,
        url: str,
        identity: str,
        secrets_dir: Path,
        *,
        positions: Path | None = None,
        back: int = 0,
    ) -> None:
        if not 0 <= back <= BACK_MAX:
            raise ValueError(f"back is 0 to {BACK_MAX}")
        self.broker = _broker(url, identity, secrets_dir)
        self.program = FastStream(
            self.broker, logger=None, specification=AsyncAPI(title=f"Deskbus: {identity}")
        )
        self.lost = asyncio.Event()
        self.failure: BaseException | None = None
        self._way = (url, identity, secrets_dir)
        self._positions = positions
        self._back = back
        self._hearers: list[_Hearer] = []
        self._stopping = asyncio.Event()

    def hears(self, *types: EventType) -> Callable[[Handler[E]], Handler[E]]:
        """Decorate a handler of these types of events: `async def on(event: EventOf[Shape])`.

        It gets what it missed and then what comes, in the desk's order, each event once, one at a
        time. An `Unavailable` that it raises is waited for; any other error ends the program, and
        the event comes again at the next start. Raises `HandlerInvalid`.
        """

        def heard_by(handler: Handler[E]) -> Handler[E]:
            name = handler.__name__
            if any(hearer.name == name for hearer in self._hearers):
                raise HandlerInvalid(f"two handlers have the name {name}: rename one")
            path = self._positions / f"{name}.position" if self._positions else None
            model = _model_of(handler, types)
            hearer = _Hearer(name, types, model, handler, SavedPosition(path))
            self._hearers.append(hearer)

            async def live(event: Any) -> None:  # noqa: ARG001 - FastStream shows it
                hearer.news.set()

            # FastStream describes the program by them.
            live.__name__, live.__annotations__ = name, {"event": model, "return": None}
            description = handler.__doc__
            self.broker.subscriber(
                subject_of(types), no_reply=True, title=name, description=description
            )(live)
            return handler

        return heard_by

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        """Hear while the block runs; then the event in hand may end. Raises `BusNotReachable`."""
        connection = await connect(*self._way, on_closed=self._on_closed)
        tasks: list[asyncio.Task[None]] = []
        try:
            await self._start()
            client = Client(connection, self._way[1], self._stopping)
            tasks += [asyncio.create_task(self._follow(it, client)) for it in self._hearers]
            yield
        finally:
            self._stopping.set()
            for hearer in self._hearers:
                hearer.news.set()
            if tasks:
                await asyncio.wait(tasks, timeout=GRACE_S)
            for task in tasks:
                task.cancel()
            for hearer in self._hearers:
                hearer.position.save(at_once=True)
            with contextlib.suppress(nats.errors.Error, OSError):
                await self.broker.stop()
            await connection.close()

    async def caught_up(self) -> None:
        """Wait until every handler has had what there was when it began."""
        for hearer in self._hearers:
            await hearer.caught_up.wait()

    async def run(self, on_caught_up: Callable[[], None] = lambda: None) -> None:
        """Hear until SIGTERM or SIGINT. Raises what a handler raised, and `BusLost`.

        `on_caught_up` is called once nothing older is missing. Logs go to stderr, unless structlog
        has been set up already.
        """
        if not structlog.is_configured():
            configure_logging()
        loop = asyncio.get_running_loop()
        stop = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)
        async with self.listening():
            ends = [asyncio.create_task(event.wait()) for event in (stop, self.lost)]
            caught_up = asyncio.create_task(self.caught_up())
            await asyncio.wait([*ends, caught_up], return_when=asyncio.FIRST_COMPLETED)
            if caught_up.done():
                on_caught_up()
                await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            for task in (caught_up, *ends):
                task.cancel()
        if self.failure is not None:
            raise self.failure

    async def _start(self) -> None:
        try:
            await within(CONNECT_S, self.broker.start())
        except (OSError, TimeoutError, nats.errors.Error) as error:
            raise BusNotReachable(f"{self._way[1]}: NATS does not answer ({error!r})") from error

    async def _follow(self, hearer: _Hearer, client: Client) -> None:
        """Give the handler what is behind its position, again at each news, until the end."""
        try:
            while not self._stopping.is_set():
                hearer.news.clear()
                if not await self._read(hearer, client):
                    hearer.caught_up.set()
                    await event_within(hearer.news, POLL_S)
        except _Stopped:
            return
        except Exception as error:  # noqa: BLE001 - `run` raises it again
            self.failure = self.failure or error
            self.lost.set()

    async def _read(self, hearer: _Hearer, client: Client) -> bool:
        """Give the handler one page of events; whether there is more."""
        query = EventsSince(back=self._back, types=tuple(map(str, hearer.types)))
        if hearer.position.now is not None:
            query = query.model_copy(update={"back": 0, "after": str(hearer.position.now)})
        page: EventsPage = await self._over_outages(hearer, lambda: client.ask(EVENTS_SINCE, query))
        if page.gap is not None:
            log.warning("listening.gap", handler=hearer.name, reason=page.gap)
        for placed in page.events:
            if self._stopping.is_set():
                return False
            await self._give(hearer, placed)
            hearer.position.move(position_of(placed.position))
            hearer.position.save()
        if not self._stopping.is_set():
            hearer.position.move(position_of(page.position))
            hearer.position.save()
        return page.more

    async def _give(self, hearer: _Hearer, placed: EventAt) -> None:
        event = placed.event
        try:
            typed = decode(hearer.model, event.model_dump_json().encode())
        except MessageInvalid as error:
            # A newer desk may say what this program does not know; the rest is worth hearing.
            log.warning("listening.unreadable", type=event.type, why=error.message)
            return
        await self._over_outages(hearer, lambda: hearer.handle(typed))

    async def _over_outages(self, hearer: _Hearer, work: Callable[[], Awaitable[Any]]) -> Any:
        """The result, over any `Unavailable`. Raises `_Stopped`."""
        wait_s = RETRY_AFTER_S
        while not self._stopping.is_set():
            try:
                return await work()
            except Unavailable as error:
                log.warning("listening.waits", handler=hearer.name, why=error.message)
            await event_within(self._stopping, wait_s)
            wait_s = min(2 * wait_s, RETRY_AFTER_S_MAX)
        raise _Stopped

    async def _on_closed(self) -> None:
        if not self._stopping.is_set():
            self.failure = self.failure or BusLost(self._way[1])
            self.lost.set()


def subject_of(types: Sequence[EventType]) -> str:
    """The narrowest subject on which all of these events are published, in the table's words."""
    rows = [row for row in EVENTS if row.what in types]
    if len(rows) == 1:
        return rows[0].by(CYCLE)
    owners = {row.owner for row in rows}
    owner = owners.pop() if len(owners) == 1 else "*"
    return f"{PREFIX}.evt.{owner}.*.{CYCLE}"


def _broker(url: str, identity: str, secrets_dir: Path) -> NatsBroker:
    """FastStream's broker with the key, the inbox and the TLS of an identity."""
    settings = options(identity, secrets_dir)
    seed = settings.pop("nkeys_seed", None)
    context = tls.client_context(secrets_dir) if "tls://" in url else None
    security: NatsSecurity = (
        NatsNKey.from_file(seed, ssl_context=context)
        if seed is not None
        else NatsSecurity(ssl_context=context)
    )
    return NatsBroker(
        url.split(","),
        security=security,
        apply_types=False,
        logger=None,
        graceful_timeout=GRACE_S,
        **settings,
    )


def _model_of(handler: Callable[..., Any], types: Sequence[EventType]) -> type[Event]:
    """The type of the handler's first parameter: Event, or EventOf the shape of all these types."""
    if not types:
        raise HandlerInvalid("name at least one type of event: `hears(EventType.DECISION)`")
    name = getattr(handler, "__name__", repr(handler))
    if not inspect.iscoroutinefunction(handler):
        raise HandlerInvalid(f"{name} is not a coroutine: write it with `async def`")
    hints = typing.get_type_hints(handler)
    hints.pop("return", None)
    model = next(iter(hints.values()), None)
    shapes: set[Any] = {EVENT_DATA[kind] for kind in types}
    fitting: list[Any] = [Event]
    if len(shapes) == 1:
        fitting.append(EventOf.__class_getitem__(shapes.pop()))
    if model not in fitting:
        able = " or ".join(it.__name__ for it in fitting)
        raise HandlerInvalid(f"{name} is to hear {', '.join(types)}: its first parameter is {able}")
    return typing.cast("type[Event]", model)
