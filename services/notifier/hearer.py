"""From events to kept notices: in their order, and acknowledged once they are kept."""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog

from contracts.audit import Event
from contracts.notice import KEEP_MAX, KeptNotice
from contracts.subjects.notices import NOTICE_DURABLE
from libs.bus.streams import NOTICE_STREAM, NOTICES_AT_ONCE_MAX
from libs.runtime.notify_settings import Notify
from services.notifier import logic
from services.notifier.lease import Pace

if TYPE_CHECKING:  # FastStream is loaded by those only that have somebody to tell
    from libs.bus.listening.listener import Listener
    from libs.bus.listening.pulled import Delivery

GAP_S_MAX = 20.0
"""How long a number that is missing is waited for: more than it takes to be delivered again."""
GAP_LOOK_S = 0.5

log = structlog.get_logger()


@dataclass(frozen=True)
class _Heard:
    """An event, and what is done once all that is due of it is kept."""

    event: Event
    kept: "asyncio.Future[None]"


class Hearer:
    """Has events kept in the order of their numbers, together those that come together.

    A number that is missing is on its way: a server or a notifier died with it in hand, and it is
    delivered again. Until it is there, those behind it are held; they are few, as no more are in
    the hands of all notifiers together than one of them handles at a time.
    """

    def __init__(
        self,
        keep: Callable[[Sequence[KeptNotice]], Awaitable[None]],
        notify: Notify,
        pace: Pace,
    ) -> None:
        self._keep = keep
        self._notify = notify
        self._pace = pace
        self._next = 0
        self._gap_since: float | None = None
        self._held: dict[int, list[_Heard]] = {}
        # As many as are handled at a time may wait here.
        self._waiting: asyncio.Queue[_Heard] = asyncio.Queue()

    def begin(self, number: int) -> None:
        """Before hearing: the first number that nobody has acknowledged."""
        self._next = number

    async def take(self, event: Event, number: int) -> None:
        """Returns once all that is due of the event is kept."""
        heard = _Heard(event, asyncio.get_running_loop().create_future())
        if number > self._next:
            self._held.setdefault(number, []).append(heard)
            self._gap_since = self._gap_since or time.monotonic()
        else:
            self._waiting.put_nowait(heard)
            if number == self._next:
                self._go_on(number + 1)
        await heard.kept

    def skip(self, number: int) -> None:
        """The number holds no event that this version knows: nobody waits for it."""
        if number > self._next:
            self._held.setdefault(number, [])
            self._gap_since = self._gap_since or time.monotonic()
        elif number == self._next:
            self._go_on(number + 1)

    async def run(self) -> None:
        """Keep until cancelled. Raises what `keep` raises."""
        while True:
            batch = [await self._first()]
            began = time.monotonic()
            while len(batch) < KEEP_MAX and not self._waiting.empty():
                batch.append(self._waiting.get_nowait())
            due = [logic.kept(heard.event, self._notify) for heard in batch]
            wanted = [notice for notice in due if notice is not None]
            if wanted:
                await self._keep(wanted)
            for heard in batch:
                if not heard.kept.done():
                    heard.kept.set_result(None)
            await self._pace.rest(time.monotonic() - began)

    async def _first(self) -> _Heard:
        """The next event whose turn it is."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(GAP_LOOK_S):
                    return await self._waiting.get()
            if self._gap_since and time.monotonic() - self._gap_since > GAP_S_MAX:
                # The stream has dropped it, or was made anew.
                log.error("notifier.gap", expected=self._next, heard=min(self._held))
                self._go_on(min(self._held))

    def _go_on(self, number: int) -> None:
        """All before the number has had its turn."""
        self._next = number
        while self._next in self._held:
            for heard in self._held.pop(self._next):
                self._waiting.put_nowait(heard)
            self._next += 1
        self._gap_since = time.monotonic() if self._held else None


def hears(listener: "Listener", hearer: Hearer) -> None:
    """Have the hearer hear the stream of notable events, each acknowledged once it is kept."""

    def skipped(delivery: "Delivery") -> None:
        hearer.skip(delivery.sequence)

    @listener.pulls(NOTICE_STREAM, NOTICE_DURABLE, at_once_max=NOTICES_AT_ONCE_MAX, skipped=skipped)
    async def on_notable(event: Event, delivery: "Delivery") -> None:
        await hearer.take(event, delivery.sequence)
        await delivery.ack()
