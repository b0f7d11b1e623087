"""One channel: its notices come from a durable consumer of its own and go out in one message.

A notice is acknowledged once it is on record that it was sent or given up; before, it comes again.
So each is sent at least once: twice only where the notifier dies between sending it and recording
that. What waits for quiet hours, a digest or another try is given back to NATS with a delay, and
does not stand in the way of what comes after it.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Protocol, TypeVar
from uuid import UUID

import structlog

from contracts.audit import Event
from contracts.notice import (
    NOTICES_MAX,
    EndedNotices,
    KeepNotices,
    KeptNotice,
    Notice,
    SettleNotices,
    Severity,
)
from contracts.subjects.notices import durable_of
from libs.bus.codec import MessageInvalid, decode
from libs.bus.connection import Client
from libs.bus.pull import Pull, Streamed
from libs.bus.streams import NOTICE_STREAM, channel_since
from libs.channels.channel import REFUSALS, Channel, ChannelMessage, SendOutcome
from libs.report.notify import messages, notices
from libs.runtime.background import event_within
from libs.runtime.errors import DeskError
from libs.runtime.notify_settings import Notify
from libs.telemetry import metrics
from services.notifier import logic

GATHER_S = 0.25
"""What comes within it goes in one message."""
UNREADABLE_S = 60.0
"""How long a notice that this version cannot read rests before it is delivered again."""
GRACE_S = 5.0
"""How long a message under way may take when the service stops."""
HELD_S_MAX = 3_600.0
"""How long a notice is given back to NATS at once: then the rules are asked again."""
REFUSALS_MAX = 2
"""So many refusals in a row are the channel's, not the messages'."""
REFUSED_S = 600.0
"""The wait of a notice that was refused while the channel took others."""
RETRY_S, RETRY_S_MAX = 0.2, 5.0
"""Between two tries of a question to the orchestrator."""

Answered = TypeVar("Answered")

log = structlog.get_logger()


class NoticeRecord(Protocol):
    """The orchestrator's record. Each call raises DeskError where it does not answer."""

    async def keep(self, query: KeepNotices) -> EndedNotices:
        """Put notices on record before they are sent."""
        ...

    async def settle(self, query: SettleNotices) -> EndedNotices:
        """Record a try."""
        ...


@dataclass
class Taken:
    """A notice in hand. `outcome` is None where it has ended, else in how many seconds it comes
    again."""

    notice: Notice
    due_at: datetime
    outcome: "asyncio.Future[float | None]" = field(repr=False)

    def ended(self) -> None:
        """It does not come again."""
        self._settled(None)

    def again(self, delay_s: float) -> None:
        """It comes again after the delay."""
        self._settled(delay_s)

    def _settled(self, outcome: float | None) -> None:
        if not self.outcome.done():
            self.outcome.set_result(outcome)


class Sender:
    """Sends to one channel; `channel` is None where it cannot be used as it is set."""

    def __init__(
        self,
        name: str,
        channel: Channel | None,
        record: NoticeRecord,
        notify: Notify,
        client: Client,
    ) -> None:
        self._name = name
        self._channel = channel
        self._record = record
        self._notify = notify
        self._client = client
        self._pull = Pull(
            client,
            NOTICE_STREAM,
            durable_of(name),
            lambda message: self._heard(Streamed(message)),
            NOTICES_MAX,
        )
        self._hand: list[Taken] = []
        self._news = asyncio.Event()
        self._stopping = asyncio.Event()
        self._ended = asyncio.Event()
        self._failures = 0
        self._rests_until = 0.0
        metrics.NOTICES.begin(name, "given_up")

    async def run(self) -> None:
        """Send what comes, until `stop`."""
        stopping = asyncio.create_task(self._stopping.wait())
        work = asyncio.create_task(self._work())
        try:
            await asyncio.wait({work, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if self._stopping.is_set():
                await asyncio.wait({work}, timeout=GRACE_S)
            if work.done():
                work.result()
        finally:
            stopping.cancel()
            work.cancel()
            await asyncio.wait({work})
            for taken in self._hand:
                taken.again(0.0)
            await self._pull.drain(GRACE_S)
            self._ended.set()

    async def stop(self) -> None:
        """Take nothing more; return once the message under way has ended."""
        self._stopping.set()
        self._news.set()
        await self._ended.wait()

    async def send(self, due: Sequence[Notice]) -> SendOutcome:
        """Send one message of these notices now."""
        if self._channel is None:
            return SendOutcome("not_set")
        limits = self._channel.limits
        style = messages.Style(
            limits.title_chars_max,
            limits.body_chars_max,
            limits.markup,
            self._notify.base_url,
            self._notify.zone,
        )
        text = messages.compose(due, datetime.now(UTC), style)
        return await self._channel.send(ChannelMessage(text.title, text.body, due))

    async def _heard(self, delivery: Streamed) -> None:
        """One message of the durable consumer, until it has ended or is given back."""
        try:
            event = decode(Event, delivery.body)
        except MessageInvalid as error:
            # Of a newer desk, in the middle of an upgrade: a notifier of that version can read it.
            log.warning("notifier.unreadable", channel=self._name, why=error.message)
            await delivery.give_back(UNREADABLE_S)
            return
        notice, now = notices.of(event), datetime.now(UTC)
        due_at = logic.due_at(notice, event, self._name, self._notify, now)
        if due_at is None:
            await delivery.acknowledge()
            return
        taken = Taken(notice, due_at, asyncio.get_running_loop().create_future())
        self._hand.append(taken)
        self._news.set()
        async with delivery.in_progress():
            delay_s = await taken.outcome
        if delay_s is None:
            await delivery.acknowledge()
        else:
            await delivery.give_back(delay_s)

    async def _work(self) -> None:
        await self._pull.start()
        pulling = asyncio.create_task(self._pull.run())
        sending = asyncio.create_task(self._send_all())
        try:
            await asyncio.wait({pulling, sending}, return_when=asyncio.FIRST_COMPLETED)
            (pulling if pulling.done() else sending).result()
        finally:
            pulling.cancel()
            sending.cancel()
            await asyncio.wait({pulling, sending})

    async def _send_all(self) -> None:
        while not self._stopping.is_set():
            await self._news.wait()
            await event_within(self._stopping, GATHER_S)
            self._news.clear()
            batch, self._hand = self._hand, []
            try:
                await self._deal(batch)
            finally:
                for taken in batch:  # where the service stops before they were dealt with
                    taken.again(0.0)

    async def _deal(self, batch: Sequence[Taken]) -> None:
        """End or give back each of the batch."""
        if not batch or self._stopping.is_set():
            return
        since = await until_answered(lambda: channel_since(self._client, self._name))
        kept = tuple(KeptNotice(notice=it.notice, due_at=it.due_at) for it in batch)
        query = KeepNotices(channel=self._name, since=since, notices=kept)
        _end(batch, await until_answered(lambda: self._record.keep(query)))
        now = datetime.now(UTC)
        for taken in batch:
            if taken.due_at > now:
                taken.again(min((taken.due_at - now).total_seconds(), HELD_S_MAX))
        due = [taken for taken in batch if not taken.outcome.done()]
        due.sort(key=lambda it: (it.notice.severity is not Severity.ALARM, it.notice.at))
        rest_s = self._rests_until - time.monotonic()
        if rest_s > 0:
            for taken in due:
                taken.again(rest_s)
        elif due:
            await self._deliver(due)

    async def _deliver(self, due: Sequence[Taken]) -> None:
        """Send these in one message. After a failure the channel rests.

        Where that is refused for what it holds they go one by one, until two in a row are refused:
        then it is the channel. What was refused comes again later than the rest, which goes without
        it.
        """
        refused: list[Taken] = []
        alone, sent, in_a_row, code = False, False, 0, ""
        while due and in_a_row < REFUSALS_MAX:
            part = due[:1] if alone else due
            code = (await self._tried(part)).code
            if not code:
                sent, in_a_row = True, 0
            elif code not in REFUSALS:
                break
            elif len(part) > 1:
                alone = True
                continue
            else:
                in_a_row += 1
                refused += part
            due = due[len(part) :]
        self._failures = 0 if sent else self._failures + bool(code)
        chance = random.random()  # noqa: S311 - no secret: channels must not beat in time
        rest_s = logic.backoff_s(self._failures, code, chance) if due or not sent else 0.0
        for taken in due:
            taken.again(rest_s)
        for taken in refused:
            taken.again(max(2 * rest_s, REFUSED_S if sent else 0.0))
        self._rests_until = time.monotonic() + rest_s

    async def _tried(self, part: Sequence[Taken]) -> SendOutcome:
        """Send one message and have it recorded, unless its notices go one by one next."""
        began, now = time.monotonic(), datetime.now(UTC)
        outcome = await self.send([taken.notice for taken in part])
        if outcome.code in REFUSALS and len(part) > 1:
            return outcome
        metrics.NOTICES.add(self._name, "sent" if outcome.sent else "failed", by=len(part))
        if outcome.sent:
            for taken in part:
                lag_s = (now - taken.notice.at).total_seconds() + time.monotonic() - began
                metrics.NOTICE_SECONDS.observe(max(lag_s, 0.0), self._name)
        else:
            log.warning(
                "notifier.not_sent", channel=self._name, code=outcome.code, notices=len(part)
            )
        query = SettleNotices(
            channel=self._name,
            tried=tuple(taken.notice.event_id for taken in part),
            code=outcome.code,
            give_up_after_s=self._notify.channels[self._name].give_up_after_s,
        )
        ended = _end(part, await until_answered(lambda: self._record.settle(query)))
        if ended and not outcome.sent:
            metrics.NOTICES.add(self._name, "given_up", by=ended)
            log.error("notifier.given_up", channel=self._name, code=outcome.code, notices=ended)
        return outcome


def _end(batch: Sequence[Taken], answer: EndedNotices) -> int:
    """End those that have ended on record; how many."""
    ended: set[UUID] = set(answer.ended)
    over = [taken for taken in batch if taken.notice.event_id in ended]
    for taken in over:
        taken.ended()
    return len(over)


async def until_answered(ask: Callable[[], Awaitable[Answered]]) -> Answered:
    """The orchestrator's answer, over any outage."""
    wait_s = RETRY_S
    while True:
        try:
            return await ask()
        except DeskError as error:
            log.warning("notifier.waits", why=error.message)
        await asyncio.sleep(wait_s)
        wait_s = min(2 * wait_s, RETRY_S_MAX)
