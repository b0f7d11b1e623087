"""Hear events, have kept what is due, send it channel by channel, have remembered what was sent.

One notifier at a time works: it has the lease. It hears in order and keeps in order; a worker a
channel sends in order. What fails is its channel's alone: it waits there, and nobody else does.
"""

import asyncio
import contextlib
import random
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Protocol, TypeVar
from uuid import uuid4

import structlog

from contracts.audit import Event
from contracts.notice import (
    KEEP_MAX,
    ChannelsQuery,
    ChannelsView,
    ChannelTested,
    KeepNotices,
    KeptNotice,
    LeaseNotifier,
    NextNotices,
    Notice,
    NoticesKept,
    NoticesNext,
    NotifierLease,
    Settled,
    TestChannel,
)
from libs.channels.channel import Channel, Failed, Message, Outcome, Sent
from libs.report import messages, notices
from libs.runtime.errors import DeskError, Unavailable
from libs.runtime.nearest import did_you_mean, nearest
from libs.runtime.notify_settings import Notify
from libs.telemetry import metrics
from services.notifier import logic

STANDBY_S = 2.0
"""How often a notifier asks for the lease that another one has."""
RENEWALS_A_LEASE = 4
RETRY_S, RETRY_S_MAX = 0.2, 2.0
"""Between two tries of a question that nobody answers."""
IDLE_S_MAX = 30.0
"""How long a worker waits without a word that something was kept: another's rows count too."""
GAP_S_MAX = 20.0
"""How long a number that is missing is waited for: more than it takes to be delivered again."""
SEND_GRACE_S = 5.0
"""How long what is being sent may take to end when the service stops."""

Answered = TypeVar("Answered")

log = structlog.get_logger()


class Desk(Protocol):
    """Who remembers what is due and what was sent. Each raises Unavailable where nobody answers."""

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
class _Lease:
    """The lease, and until when by the steady clock something may be begun under it."""

    epoch: int
    fresh_until: float
    ending: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def is_fresh(self) -> bool:
        return time.monotonic() < self.fresh_until


class Notifier:
    """Tells people. `run` in one task, then `stop`; `tested` and `shown` answer questions.

    `hearing` lets a `Hearer` hear events while its block runs.
    """

    def __init__(
        self,
        desk: Desk,
        channels: Mapping[str, Channel],
        problems: Mapping[str, str],
        notify: Notify,
        hearing: Callable[["Hearer"], AbstractAsyncContextManager[asyncio.Event]],
    ) -> None:
        self._desk = desk
        self._channels = channels
        self._problems = problems
        self._notify = notify
        self._hearing = hearing
        self._instance = f"notifier/{uuid4()}"
        self._news = {name: asyncio.Event() for name in notify.channels}
        self._stopping = asyncio.Event()
        self._ended = asyncio.Event()
        self._works = False

    # --- the lease --------------------------------------------------------------------------------

    async def run(self) -> None:
        """Work whenever the lease is to be had, until `stop`."""
        try:
            while not self._stopping.is_set():
                granted = await self._ask_lease()
                if granted is None:
                    await _within(self._stopping, STANDBY_S)
                    continue
                answer, asked_at = granted
                lease = _Lease(answer.epoch, asked_at + answer.lease_s)
                log.info("notifier.works", epoch=lease.epoch)
                self._works = True
                metrics.NOTIFIER_WORKS.set(1)
                try:
                    await self._work(lease)
                except LeaseLost:
                    log.warning("notifier.lease_lost", epoch=lease.epoch)
                finally:
                    self._works = False
                    metrics.NOTIFIER_WORKS.set(0)
        finally:
            self._ended.set()
        await self._stopping.wait()

    async def stop(self) -> None:
        """Take nothing more, let what is being sent end, give the lease back."""
        self._stopping.set()
        await self._ended.wait()
        with contextlib.suppress(DeskError):
            await self._desk.lease(LeaseNotifier(instance=self._instance, release=True))

    async def _ask_lease(self) -> tuple[NotifierLease, float] | None:
        """The lease and when it was asked for; None where another has it, or nobody answers."""
        asked_at = time.monotonic()
        asked = LeaseNotifier(instance=self._instance, channels=tuple(self._notify.channels))
        try:
            answer = await self._desk.lease(asked)
        except DeskError as error:
            log.warning("notifier.no_lease", why=error.message)
            return None
        return (answer, asked_at) if answer.granted else None

    async def _renew(self, lease: _Lease) -> None:
        """Renew the lease until it is lost; an outage alone does not lose it."""
        every_s = max(lease.fresh_until - time.monotonic(), 1.0) / RENEWALS_A_LEASE
        while not await _within(lease.ending, every_s):
            asked_at = time.monotonic()
            asked = LeaseNotifier(instance=self._instance, channels=tuple(self._notify.channels))
            try:
                answer = await self._desk.lease(asked)
            except DeskError as error:
                log.warning("notifier.lease_not_renewed", why=error.message)
                continue
            if not answer.granted or answer.epoch != lease.epoch:
                raise LeaseLost
            lease.fresh_until = asked_at + answer.lease_s

    async def _work(self, lease: _Lease) -> None:
        """Hear and send until the service stops. Raises LeaseLost."""
        tasks = [
            asyncio.create_task(self._renew(lease)),
            asyncio.create_task(self._hear(lease)),
            *(asyncio.create_task(self._send_all(name, lease)) for name in self._notify.channels),
        ]
        stopping = asyncio.create_task(self._stopping.wait())
        try:
            await asyncio.wait([*tasks, stopping], return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopping.cancel()
            lease.ending.set()
            for news in self._news.values():
                news.set()
            await asyncio.wait(tasks, timeout=2 * SEND_GRACE_S)
            for task in tasks:
                task.cancel()
            ends = await asyncio.gather(*tasks, return_exceptions=True)
        for end in ends:
            if isinstance(end, BaseException) and not isinstance(end, asyncio.CancelledError):
                raise end

    # --- hearing ----------------------------------------------------------------------------------

    async def _hear(self, lease: _Lease) -> None:
        """Hear events and have kept what is due of them, in their order."""
        keeper = Hearer(lambda due: self._keep(due, lease), self._notify)
        keeping = asyncio.create_task(keeper.run())
        try:
            async with self._hearing(keeper) as lost:
                ends = [asyncio.create_task(each.wait()) for each in (lease.ending, lost)]
                await asyncio.wait([*ends, keeping], return_when=asyncio.FIRST_COMPLETED)
                for each in ends:
                    each.cancel()
                if keeping.done():
                    keeping.result()
        finally:
            keeping.cancel()
        if not lease.ending.is_set():
            raise Unavailable("the notifier hears nothing any more: its connection was lost")

    async def _keep(self, due: Sequence[KeptNotice], lease: _Lease) -> None:
        asked = KeepNotices(epoch=lease.epoch, notices=tuple(due))
        answer = await _until_answered(lambda: self._desk.keep(asked), None)
        if answer.outcome == "fenced":
            raise LeaseLost
        for name in {each.channel for one in due for each in one.due}:
            self._news[name].set()

    # --- sending ----------------------------------------------------------------------------------

    async def _send_all(self, name: str, lease: _Lease) -> None:
        """Send one channel's notices in order, until the lease is lost or the service stops."""
        report = NextNotices(epoch=lease.epoch, channel=name)
        blank = report
        alone = 0
        while True:
            is_last = lease.ending.is_set()
            asked = report.model_copy(update={"limit": 0}) if is_last else report
            if is_last and report == blank:
                return
            self._news[name].clear()
            heard_at = time.monotonic()
            answer = await _until_answered(lambda: self._desk.next(asked), lease.ending)  # noqa: B023
            if answer.outcome == "fenced":
                raise LeaseLost
            if is_last:
                return
            step = logic.step(
                answer.notices,
                answer.now,
                name,
                self._notify.channels[name],
                self._notify,
                alone=alone > 0,
            )
            if step.message and lease.is_fresh:
                sent = await self._send(name, step.message, answer)
                report, alone = self._reported(name, sent, answer, blank, alone)
                if isinstance(sent.outcome, Sent):
                    late_s = time.monotonic() - heard_at
                    for notice in sent.told:
                        lag_s = (answer.now - notice.at).total_seconds() + late_s
                        metrics.NOTICE_SECONDS.observe(max(lag_s, 0.0), name)
                continue
            report = _put_off(name, step, blank)
            if report == blank:
                wait_s = IDLE_S_MAX if answer.wait_s is None else min(answer.wait_s, IDLE_S_MAX)
                # Due, and the lease is about to be renewed: look again soon.
                await _within(self._news[name], wait_s or RETRY_S)

    async def _send(self, name: str, due: Sequence[Notice], answer: NoticesNext) -> "_Told":
        channel = self._channels.get(name)
        if channel is None:
            return _Told(due, Failed("not_set"))
        message, told = self._message(channel, due, answer)
        outcome = await channel.send(message)
        if isinstance(outcome, Failed):
            log.warning("notifier.not_sent", channel=name, code=outcome.code, notices=len(told))
        return _Told(told, outcome)

    def _message(
        self, channel: Channel, due: Sequence[Notice], answer: NoticesNext
    ) -> tuple[Message, Sequence[Notice]]:
        limits = channel.limits
        style = messages.Style(
            limits.title_chars_max,
            limits.body_chars_max,
            limits.markup,
            self._notify.base_url,
            self._notify.zone,
        )
        text = messages.compose(due[: limits.notices_max], answer.now, style)
        told = due[: text.count]
        return Message(text.title, text.body, told), told

    def _reported(
        self, name: str, sent: "_Told", answer: NoticesNext, blank: NextNotices, alone: int
    ) -> tuple[NextNotices, int]:
        """What is said of a try, and how many of the next messages tell one notice each."""
        ids = tuple(notice.event_id for notice in sent.told)
        outcome = sent.outcome
        if isinstance(outcome, Sent):
            metrics.NOTICES.add(name, "sent", by=len(ids))
            settled = tuple(Settled(event_id=each, outcome="sent") for each in ids)
            return blank.model_copy(update={"settled": settled}), max(alone - 1, 0)
        if outcome.refused and len(ids) > 1:
            # One of them is what the channel does not read.
            return blank, len(ids)
        if outcome.refused:
            return _given_up(name, sent.told, outcome.code, blank), max(alone - 1, 0)
        metrics.NOTICES.add(name, "failed", by=len(ids))
        wait_s = logic.backoff_s(answer.failures, outcome.retry_after_s, random.random())  # noqa: S311
        failed = {"failed": outcome.code, "tried": ids, "again_in_s": wait_s}
        return blank.model_copy(update=failed), alone

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
        outcome = await self._test(name, channel)
        if isinstance(outcome, Sent):
            return ChannelTested(sent=True, message=f"{name} took the message")
        return ChannelTested(
            sent=False, code=outcome.code, message=f"{name} did not take it ({outcome.code})"
        )

    async def _test(self, name: str, channel: Channel) -> Outcome:
        at = datetime.now(UTC)
        notice = notices.test(name, uuid4(), at)
        answer = NoticesNext(outcome="ok", now=at)
        message, _ = self._message(channel, [notice], answer)
        return await channel.send(message)

    async def shown(self, _caller: str, _asked: ChannelsQuery) -> ChannelsView:
        """The channels and rules that it runs with."""
        return logic.shown(self._notify, self._problems, working=self._works)


@dataclass(frozen=True)
class _Told:
    """What one message told, and how it fared."""

    told: Sequence[Notice]
    outcome: Outcome


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

    def _is_waited_for(self, number: int) -> bool:
        """Whether what is missing before the number may still come."""
        now = time.monotonic()
        self._gap_since = self._gap_since or now
        if now - self._gap_since < GAP_S_MAX:
            return True
        # The stream has dropped it, or was made anew.
        log.error("notifier.gap", expected=self._next, heard=number)
        return False

    async def run(self) -> None:
        """Keep until cancelled. Raises LeaseLost."""
        while True:
            batch = [await self._waiting.get()]
            while len(batch) < KEEP_MAX and not self._waiting.empty():
                batch.append(self._waiting.get_nowait())
            due = [logic.kept(event, self._notify) for event, _ in batch]
            wanted = [each for each in due if each is not None]
            if wanted:
                await self._keep(wanted)
            for _, done in batch:
                if not done.done():
                    done.set_result(None)


def _put_off(name: str, step: logic.Step, blank: NextNotices) -> NextNotices:
    """What is said of notices that are given up or held."""
    if step.given_up:
        return _given_up(name, step.given_up, "", blank)
    if step.held:
        ids = tuple(notice.event_id for notice in step.held)
        return blank.model_copy(update={"held": ids, "held_until": step.held_until})
    return blank


def _given_up(name: str, given_up: Sequence[Notice], code: str, blank: NextNotices) -> NextNotices:
    log.error("notifier.given_up", channel=name, notices=len(given_up), code=code or "too_old")
    metrics.NOTICES.add(name, "given_up", by=len(given_up))
    settled = tuple(
        Settled(event_id=notice.event_id, outcome="given_up", code=code) for notice in given_up
    )
    return blank.model_copy(update={"settled": settled})


async def _until_answered(
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
                until = until or time.monotonic() + SEND_GRACE_S
                if time.monotonic() > until:
                    raise
        await asyncio.sleep(wait_s)
        wait_s = min(2 * wait_s, RETRY_S_MAX)


async def _within(event: asyncio.Event, timeout_s: float) -> bool:
    """Wait for the event, at most so long; whether it came."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(timeout_s):
            await event.wait()
    return event.is_set()
