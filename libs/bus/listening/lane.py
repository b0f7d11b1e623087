"""The events of one handler: caught up and then live, in the desk's order, each once.

Live events carry their position. What was missed, because the program or its connection was away or
more came than could wait, is asked for behind the last position; until then what comes live waits.
An event at or before that position is a repeat. And where servers of a cluster lose an event while
nothing tells of it, the record is compared with what was heard, now and then: it comes late then,
but it comes.
"""

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

import structlog

from contracts.audit import Event, EventsPage, EventsSince
from contracts.position import Position, position_of
from libs.bus.listening.heard import CaughtUp, Heard, Reading
from libs.bus.listening.positions import SAVE_EVERY_S, SavedPosition
from libs.runtime.errors import Unavailable

RECENT_MAX = 10_000
"""Events of which it is known that they were dealt with, beside what the position says."""
CHECK_EVERY_S = 30.0
CHECK_EVERY_EVENTS = RECENT_MAX // 2
"""How often the record is compared with what was heard, while it is still known what that was."""
RETRY_AFTER_S, RETRY_AFTER_S_MAX = 0.2, 5.0
"""The wait between two tries during an outage doubles up to the second."""

Handler = Callable[[Any], Awaitable[None]]

log = structlog.get_logger()


class _Closed(Exception):
    """The lane was closed while an outage was waited for; the event comes again."""


class Lane:
    """Gives one handler its events. `live` for each message, `keep` in one task, then `close`.

    `ask` puts the question to the console, `feed` sends a message the way that live ones come, so
    that it ends in `live` as well.
    """

    def __init__(
        self,
        name: str,
        reading: Reading,
        handle: Handler,
        position: SavedPosition,
        ask: Callable[[EventsSince], Awaitable[EventsPage]],
        on_failed: Callable[[], None],
        back: int = 0,
    ) -> None:
        self.name = name
        self.failure: BaseException | None = None
        self._on_failed = on_failed
        self.reading = reading
        self._handle = handle
        self._position = position
        self._ask = ask
        self._back = back
        self._turn = asyncio.Lock()
        self._whole = asyncio.Event()
        self._whole.set()
        self._wake = asyncio.Event()
        self._closed = asyncio.Event()
        self._recent: OrderedDict[UUID, None] = OrderedDict()
        self._misses = 0
        self._whole_up_to = position.now
        self._unchecked = 0

    def missed(self) -> None:
        """Events may have been missed: hold what comes until they have been asked for."""
        self._misses += 1
        self._whole.clear()
        self._wake.set()

    def close(self) -> None:
        """Take nothing more; the event in hand may end."""
        self._closed.set()
        self._whole.set()
        self._wake.set()

    def save(self) -> None:
        """Write down where to go on."""
        self._position.save(at_once=True)

    async def live(self, heard: Heard) -> None:
        """One message, in its turn. What the handler raises ends the lane."""
        if heard.caught_up:
            await self._dealt(heard)
            return
        while not self._closed.is_set():
            await self._whole.wait()
            async with self._turn:
                # While this one waited for its turn a connection may have broken.
                if self._whole.is_set() and not self._closed.is_set():
                    await self._live(heard)
                    return

    async def keep(self, feed: Callable[[CaughtUp], Awaitable[Any]]) -> None:
        """Catch up when something may have been missed, and check now and then; until closed."""
        clock = asyncio.get_running_loop().time
        check_at = clock() + CHECK_EVERY_S
        while not self._closed.is_set():
            self._wake.clear()
            if not self._whole.is_set():
                async with self._turn:
                    await self._catch_up(feed)
            elif clock() >= check_at or self._unchecked >= CHECK_EVERY_EVENTS:
                await self._check()
                check_at = clock() + CHECK_EVERY_S
            self._position.save()
            await _within(self._wake, SAVE_EVERY_S)

    async def caught_up(self) -> None:
        """Wait until nothing is missing, or the lane is closed."""
        await self._whole.wait()

    async def _catch_up(self, feed: Callable[[CaughtUp], Awaitable[Any]]) -> None:
        misses = self._misses
        while (page := await self._page()) is not None:
            if page.gap is not None:
                log.warning("listening.gap", handler=self.name, reason=page.gap)
            for placed in page.events:
                if self._closed.is_set():
                    return
                await feed(CaughtUp.of(placed))
            self._position.move(position_of(page.position))
            if not page.more:
                self._checked(self._position.now)
                # What was missed meanwhile may not be in these answers.
                if misses == self._misses:
                    self._whole.set()
                return

    async def _check(self) -> None:
        """Compare the record with what was heard since the last time; live ones go on meanwhile."""
        after, more = self._whole_up_to, True
        while more and not self._closed.is_set():
            try:
                page = await self._ask(self._question(after))
            except Unavailable:
                return  # it will be asked again
            if page.gap is not None:
                self.missed()
                return
            now = self._position.now
            for placed in page.events:
                position = position_of(placed.position)
                if position is None or now is None or position.order > now.order:
                    return  # still on its way
                if placed.event.event_id not in self._recent:
                    log.warning("listening.missed", handler=self.name)
                    self._position.move(after)
                    self.missed()
                    return
            after, more = position_of(page.position), page.more
        self._checked(after)

    def _checked(self, position: Position | None) -> None:
        """Nothing is missing up to here."""
        self._whole_up_to, self._unchecked = position, 0

    async def _page(self) -> EventsPage | None:
        """The next events, over any outage; None where the lane is closed first."""
        wait_s = RETRY_AFTER_S
        while not self._closed.is_set():
            try:
                return await self._ask(self._question(self._position.now))
            except Unavailable as error:
                log.warning("listening.waits", handler=self.name, why=error.message)
            await _within(self._closed, wait_s)
            wait_s = min(2 * wait_s, RETRY_AFTER_S_MAX)
        return None

    def _question(self, after: Position | None) -> EventsSince:
        types = tuple(map(str, self.reading.types))
        if after is None:
            return EventsSince(back=self._back, types=types)
        return EventsSince(after=str(after), types=types)

    async def _live(self, heard: Heard) -> None:
        last = self._position.now
        if last is not None and heard.position is not None and heard.position.order <= last.order:
            if not self._is_known(heard.event):
                # A late repeat, or tables that were restored: the console knows which.
                self.missed()
            return
        await self._dealt(heard)

    def _is_known(self, event: Event | None) -> bool:
        return event is None or event.event_id in self._recent

    async def _dealt(self, heard: Heard) -> None:
        """Give the event to the handler unless it is known, and remember that."""
        event = heard.event
        if event is not None and not self._is_known(event):
            try:
                await self._handled(event)
            except _Closed:
                return
            except Exception as error:
                self.failure = error
                self._on_failed()
                self.close()
                raise
            self._unchecked += 1
            self._recent[event.event_id] = None
            if len(self._recent) > RECENT_MAX:
                self._recent.popitem(last=False)
        self._position.move(heard.position)

    async def _handled(self, event: Event) -> None:
        """Give the event to the handler, over any outage. Raises `_Closed`."""
        wait_s = RETRY_AFTER_S
        while not self._closed.is_set():
            try:
                await self._handle(event)
            except Unavailable as error:
                log.warning("listening.handler_waits", handler=self.name, why=error.message)
            else:
                return
            await _within(self._closed, wait_s)
            wait_s = min(2 * wait_s, RETRY_AFTER_S_MAX)
        raise _Closed


async def _within(event: asyncio.Event, timeout_s: float) -> None:
    """Wait for the event, at most so long."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(timeout_s):
            await event.wait()
