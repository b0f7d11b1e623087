"""From events to kept notices: in their order, and acknowledged once they are kept."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence

import structlog

from contracts.audit import Event
from contracts.notice import KEEP_MAX, KeptNotice
from libs.runtime.notify_settings import Notify
from services.notifier import logic

GAP_S_MAX = 20.0
"""How long a number that is missing is waited for: more than it takes to be delivered again."""

log = structlog.get_logger()


class Hearer:
    """Has events kept in the order of their numbers, together those that come together.

    A number that is missing is on its way: a server or a notifier died with it in hand, and it is
    delivered again. Until it is there, those behind it are not taken.
    """

    def __init__(
        self, keep: Callable[[Sequence[KeptNotice]], Awaitable[None]], notify: Notify
    ) -> None:
        self._keep = keep
        self._notify = notify
        self._next = 0
        self._gap_since: float | None = None
        # As many as are handled at a time may wait here.
        self._waiting: asyncio.Queue[tuple[Event, asyncio.Future[None]]] = asyncio.Queue()

    def begin(self, number: int) -> None:
        """Before hearing: the first number that nobody has acknowledged."""
        self._next = number

    async def take(self, event: Event, number: int) -> bool:
        """True once all that is due of the event is kept; False where it is to come again."""
        if number > self._next and self._is_waited_for(number):
            return False
        if number >= self._next:
            self._next, self._gap_since = number + 1, None
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.put_nowait((event, done))
        await done
        return True

    async def run(self) -> None:
        """Keep until cancelled. Raises what `keep` raises."""
        while True:
            batch = [await self._waiting.get()]
            while len(batch) < KEEP_MAX and not self._waiting.empty():
                batch.append(self._waiting.get_nowait())
            due = [logic.kept(event, self._notify) for event, _ in batch]
            wanted = [notice for notice in due if notice is not None]
            if wanted:
                await self._keep(wanted)
            for _, done in batch:
                if not done.done():
                    done.set_result(None)

    def _is_waited_for(self, number: int) -> bool:
        """Whether what is missing before the number may still come."""
        now = time.monotonic()
        self._gap_since = self._gap_since or now
        if now - self._gap_since < GAP_S_MAX:
            return True
        # The stream has dropped it, or was made anew, or this version cannot read it.
        log.error("notifier.gap", expected=self._next, heard=number)
        return False
