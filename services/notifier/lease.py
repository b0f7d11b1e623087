"""The lease: who works, and until when; and questions that are asked until they are answered."""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

import structlog

from contracts.notice import (
    KeepNotices,
    LeaseNotifier,
    NextNotices,
    NoticesKept,
    NoticesNext,
    NotifierLease,
)
from libs.runtime.errors import DeskError

RETRY_S, RETRY_S_MAX = 0.2, 2.0
"""Between two tries of a question that nobody answers."""
GRACE_S = 5.0
"""How long what is under way may take to end when the service stops."""
AT_WORK = 0.1
"""The part of the desk's time that hearing takes at most, and that all channels take together."""
REST_S_MAX = 1.0
"""How long one piece of work may be paid for at most: a slow answer is no work."""

Answered = TypeVar("Answered")

log = structlog.get_logger()


class Orchestrator(Protocol):
    """Who remembers what is due and what was sent. Each raises DeskError where nobody answers."""

    async def lease(self, asked: LeaseNotifier) -> NotifierLease:
        """Ask for the lease, or give it back."""
        ...

    async def keep(self, asked: KeepNotices) -> NoticesKept:
        """Have notices kept."""
        ...

    async def next(self, asked: NextNotices) -> NoticesNext:
        """Say what became of notices, and hear what is due next."""
        ...


class LeaseLost(Exception):
    """Another notifier works now."""


@dataclass
class Lease:
    """The lease, and until when by the steady clock something may be begun under it. `ending` is
    set once nothing more is to be begun."""

    epoch: int
    fresh_until: float
    ending: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def is_fresh(self) -> bool:
        """Whether no other notifier can have it by now."""
        return time.monotonic() < self.fresh_until


async def until_answered(
    ask: Callable[[], Awaitable[Answered]], ending: asyncio.Event | None
) -> Answered:
    """The answer, over any outage. With `ending` set it is asked for as long as a stop may take."""
    wait_s, until = RETRY_S, None
    while True:
        try:
            return await ask()
        except DeskError as error:
            log.warning("notifier.waits", why=error.message)
            if ending is not None and ending.is_set():
                until = until or time.monotonic() + GRACE_S
                if time.monotonic() > until:
                    raise
        await asyncio.sleep(wait_s)
        wait_s = min(2 * wait_s, RETRY_S_MAX)


class Pace:
    """Keeps what shares it to AT_WORK of the time, whoever does it.

    Where thousands are due at once they are sent somewhat later, and nothing that trades waits for
    them. After a single one the pause is some milliseconds.
    """

    def __init__(self) -> None:
        self._paid_at = 0.0

    async def rest(self, worked_s: float, ending: asyncio.Event | None = None) -> None:
        """Pause until so much work is paid for, and what others did before it. An end cuts it
        short."""
        now = time.monotonic()
        pause_s = min(worked_s * (1 / AT_WORK - 1), REST_S_MAX)
        self._paid_at = max(self._paid_at, now) + pause_s
        await within(ending or asyncio.Event(), self._paid_at - now)


async def within(event: asyncio.Event, timeout_s: float) -> bool:
    """Wait for the event, at most so long; whether it came."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(timeout_s):
            await event.wait()
    return event.is_set()
