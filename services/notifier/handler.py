"""Hear events, have kept what is due, send it channel by channel, have remembered what was sent.

One notifier at a time works: it has the lease. It hears in order and keeps in order; a sender a
channel sends in order. What fails is its channel's alone: it waits there, and nobody else does.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime
from uuid import uuid4

import structlog

from contracts.notice import (
    ChannelsQuery,
    ChannelsView,
    ChannelTested,
    KeepNotices,
    KeptNotice,
    LeaseNotifier,
    NoticesNext,
    NotifierLease,
    TestChannel,
)
from libs.channels.channel import Channel, Sent
from libs.report.notify import channels, notices
from libs.runtime.errors import DeskError, Unavailable
from libs.runtime.nearest import did_you_mean, nearest
from libs.runtime.notify_settings import Notify
from libs.telemetry import metrics
from services.notifier.hearer import Hearer
from services.notifier.lease import (
    GRACE_S,
    Lease,
    LeaseLost,
    Orchestrator,
    Pace,
    until_answered,
    within,
)
from services.notifier.sender import Sender, written

STANDBY_S = 2.0
"""How often a notifier asks for the lease that another one has."""
RENEWALS_A_LEASE = 4

log = structlog.get_logger()


class Notifier:
    """Tells people. `run` in one task, then `stop`; `tested` and `shown` answer questions.

    `hearing` lets a `Hearer` hear events while its block runs; what it gives is set once that has
    ended. `problems` say why some channels cannot be used.
    """

    def __init__(
        self,
        orchestrator: Orchestrator,
        channels: Mapping[str, Channel],
        problems: Mapping[str, str],
        notify: Notify,
        hearing: Callable[[Hearer], AbstractAsyncContextManager[asyncio.Event]],
    ) -> None:
        self._orchestrator = orchestrator
        self._channels = channels
        self._problems = problems
        self._notify = notify
        self._hearing = hearing
        self._instance = f"notifier/{uuid4()}"
        pace = Pace()
        self._senders = {
            name: Sender(name, channels.get(name), orchestrator, notify, pace)
            for name in notify.channels
        }
        self._stopping = asyncio.Event()
        self._ended = asyncio.Event()
        self._works = False

    async def run(self) -> None:
        """Work whenever the lease is to be had, until `stop`."""
        metrics.NOTIFIER_WORKS.set(0)
        try:
            while not self._stopping.is_set():
                asked_at = time.monotonic()
                answer = await self._ask_lease()
                if answer is None or not answer.granted:
                    await within(self._stopping, STANDBY_S)
                    continue
                await self._work(Lease(answer.epoch, asked_at + answer.lease_s))
        finally:
            self._ended.set()
        await self._stopping.wait()

    async def stop(self) -> None:
        """Take nothing more, let what is being sent end, give the lease back."""
        self._stopping.set()
        await self._ended.wait()
        with contextlib.suppress(DeskError):
            await self._orchestrator.lease(LeaseNotifier(instance=self._instance, release=True))

    async def _ask_lease(self) -> NotifierLease | None:
        """The answer; None where nobody gives one."""
        asked = LeaseNotifier(instance=self._instance, channels=tuple(self._notify.channels))
        try:
            return await self._orchestrator.lease(asked)
        except DeskError as error:
            log.warning("notifier.lease_unanswered", why=error.message)
            return None

    async def _work(self, lease: Lease) -> None:
        """Hear and send until the lease is lost or the service stops."""
        log.info("notifier.works", epoch=lease.epoch)
        self._works = True
        metrics.NOTIFIER_WORKS.set(1)
        try:
            await self._all(lease)
        except LeaseLost:
            log.warning("notifier.lease_lost", epoch=lease.epoch)
        finally:
            self._works = False
            metrics.NOTIFIER_WORKS.set(0)

    async def _all(self, lease: Lease) -> None:
        tasks = [
            asyncio.create_task(self._renew(lease)),
            asyncio.create_task(self._hear(lease)),
            *(asyncio.create_task(sender.run(lease)) for sender in self._senders.values()),
        ]
        stopping = asyncio.create_task(self._stopping.wait())
        try:
            await asyncio.wait([*tasks, stopping], return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopping.cancel()
            lease.ending.set()
            for sender in self._senders.values():
                sender.news.set()
            await asyncio.wait(tasks, timeout=2 * GRACE_S)
            for task in tasks:
                task.cancel()
            ends = await asyncio.gather(*tasks, return_exceptions=True)
        for end in ends:
            if isinstance(end, BaseException) and not isinstance(end, asyncio.CancelledError):
                raise end

    async def _renew(self, lease: Lease) -> None:
        """Renew the lease until it is lost; an outage alone does not lose it."""
        every_s = max(lease.fresh_until - time.monotonic(), 1.0) / RENEWALS_A_LEASE
        while not await within(lease.ending, every_s):
            asked_at = time.monotonic()
            answer = await self._ask_lease()
            if answer is None:
                continue
            if not answer.granted or answer.epoch != lease.epoch:
                raise LeaseLost
            lease.fresh_until = asked_at + answer.lease_s

    async def _hear(self, lease: Lease) -> None:
        """Hear events and have kept what is due of them, in their order."""
        # A pace of its own: an alarm is not heard later because thousands are being sent.
        hearer = Hearer(lambda due: self._keep(due, lease), self._notify, Pace())
        keeping = asyncio.create_task(hearer.run())
        try:
            async with self._hearing(hearer) as lost:
                ends = [asyncio.create_task(event.wait()) for event in (lease.ending, lost)]
                await asyncio.wait([*ends, keeping], return_when=asyncio.FIRST_COMPLETED)
                for end in ends:
                    end.cancel()
                if keeping.done():
                    keeping.result()
        finally:
            keeping.cancel()
        if not lease.ending.is_set():
            raise Unavailable("the notifier hears nothing any more: its connection was lost")

    async def _keep(self, due: Sequence[KeptNotice], lease: Lease) -> None:
        asked = KeepNotices(epoch=lease.epoch, notices=tuple(due))
        answer = await until_answered(lambda: self._orchestrator.keep(asked), None)
        if answer.outcome == "fenced":
            raise LeaseLost
        for name in {entry.channel for notice in due for entry in notice.due}:
            self._senders[name].news.set()

    # --- questions --------------------------------------------------------------------------------

    async def tested(self, _caller: str, asked: TestChannel) -> ChannelTested:
        """Send a test message now."""
        name = asked.channel
        if name not in self._notify.channels:
            near = did_you_mean(nearest(name, self._notify.channels))
            known = ", ".join(self._notify.channels) or "none"
            text = f"there is no channel {name!r}; there are {known}{near}"
            return ChannelTested(sent=False, code="channel_unknown", message=text)
        channel = self._channels.get(name)
        if channel is None:
            return ChannelTested(sent=False, code="not_set", message=self._problems[name])
        now = datetime.now(UTC)
        notice = notices.test(name, uuid4(), now)
        answer = NoticesNext(outcome="ok", now=now)
        outcome = await channel.send(written(channel, [notice], answer, self._notify))
        if isinstance(outcome, Sent):
            return ChannelTested(sent=True, message=f"{name} took the message")
        text = f"{name} did not take it ({outcome.code})"
        return ChannelTested(sent=False, code=outcome.code, message=text)

    async def shown(self, _caller: str, _asked: ChannelsQuery) -> ChannelsView:
        """The channels and rules that it runs with."""
        return channels.of_settings(self._notify, self._problems, working=self._works)
