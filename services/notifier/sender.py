"""One channel's notices: sent in order, given up where they cannot be, remembered either way."""

import asyncio
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

import structlog

from contracts.notice import NextNotices, Notice, NoticesNext, Settled
from libs.channels.channel import Channel, Failed, Message, Outcome, Sent
from libs.report.notify import messages
from libs.runtime.notify_settings import Notify
from libs.telemetry import metrics
from services.notifier import logic
from services.notifier.lease import (
    RETRY_S,
    Lease,
    LeaseLost,
    Orchestrator,
    Pace,
    until_answered,
    within,
)

IDLE_S_MAX = 30.0
"""How long a channel's sender waits without a word that something was kept."""

log = structlog.get_logger()


@dataclass(frozen=True)
class _Try:
    """One message with its notices, and how it fared."""

    notices: Sequence[Notice]
    outcome: Outcome

    @property
    def ids(self) -> tuple[UUID, ...]:
        """The events of its notices."""
        return tuple(notice.event_id for notice in self.notices)


class Sender:
    """Sends to one channel; `channel` is None where it cannot be used as it is set. `news` is set
    when something was kept for it."""

    def __init__(
        self,
        name: str,
        channel: Channel | None,
        orchestrator: Orchestrator,
        notify: Notify,
        pace: Pace,
    ) -> None:
        self.news = asyncio.Event()
        self._name = name
        self._channel = channel
        self._orchestrator = orchestrator
        self._notify = notify
        self._pace = pace
        self._alone = 0
        """How many of the next messages tell one notice each: one of them was refused."""
        metrics.NOTICES.begin(name, "given_up")

    async def run(self, lease: Lease) -> None:
        """Send until the lease ends. Raises LeaseLost."""
        blank = NextNotices(epoch=lease.epoch, channel=self._name)
        report = blank
        while True:
            is_last = lease.ending.is_set()
            if is_last and report == blank:
                return
            self.news.clear()
            asked = report.model_copy(update={"limit": 0}) if is_last else report
            heard_at = time.monotonic()
            answer = await until_answered(lambda: self._orchestrator.next(asked), lease.ending)  # noqa: B023
            if answer.outcome == "fenced":
                raise LeaseLost
            if is_last:
                return
            if report != blank:
                # Only now: what was sent is remembered first.
                await self._pace.rest(time.monotonic() - heard_at, lease.ending)
            step = self._step(answer)
            if step.message and lease.is_fresh:
                attempt = await self._send(step.message, answer)
                report = self._reported(attempt, answer, blank)
                self._measure(attempt, answer, heard_at)
                continue
            report = self._put_off(step, blank)
            if report == blank:
                wait_s = IDLE_S_MAX if answer.wait_s is None else min(answer.wait_s, IDLE_S_MAX)
                # Nothing to wait for: it is due, and the lease is about to be renewed.
                await within(self.news, wait_s or RETRY_S)

    def _step(self, answer: NoticesNext) -> logic.Step:
        settings = self._notify.channels[self._name]
        return logic.step(
            answer.notices,
            answer.now,
            self._name,
            settings,
            self._notify,
            failing_since=answer.failing_since,
            alone=self._alone > 0,
        )

    async def _send(self, due: Sequence[Notice], answer: NoticesNext) -> _Try:
        if self._channel is None:
            return _Try(due, Failed("not_set"))
        message = written(self._channel, due, answer, self._notify)
        outcome = await self._channel.send(message)
        if isinstance(outcome, Failed):
            count = len(message.notices)
            log.warning("notifier.not_sent", channel=self._name, code=outcome.code, notices=count)
        return _Try(message.notices, outcome)

    def _reported(self, attempt: _Try, answer: NoticesNext, blank: NextNotices) -> NextNotices:
        """The report on a try."""
        outcome = attempt.outcome
        if isinstance(outcome, Sent):
            self._alone = max(self._alone - 1, 0)
            settled = tuple(Settled(event_id=event_id, outcome="sent") for event_id in attempt.ids)
            return blank.model_copy(update={"settled": settled})
        if outcome.refused and len(attempt.ids) > 1:
            self._alone = len(attempt.ids)
            return blank
        if outcome.refused:
            self._alone = max(self._alone - 1, 0)
            return self._given_up(attempt.notices, outcome.code, blank)
        chance = random.random()  # noqa: S311 - no secret: channels must not beat in time
        wait_s = logic.backoff_s(answer.failures, outcome.retry_after_s, chance)
        failed = {"failed": outcome.code, "tried": attempt.ids, "again_in_s": wait_s}
        return blank.model_copy(update=failed)

    def _put_off(self, step: logic.Step, blank: NextNotices) -> NextNotices:
        """The report on notices that are given up or held."""
        if step.given_up:
            return self._given_up(step.given_up, "", blank)
        if step.held:
            ids = tuple(notice.event_id for notice in step.held)
            return blank.model_copy(update={"held": ids, "held_until": step.held_until})
        return blank

    def _given_up(self, lost: Sequence[Notice], code: str, blank: NextNotices) -> NextNotices:
        count = len(lost)
        log.error("notifier.given_up", channel=self._name, notices=count, code=code or "too_old")
        metrics.NOTICES.add(self._name, "given_up", by=count)
        settled = tuple(
            Settled(event_id=notice.event_id, outcome="given_up", code=code) for notice in lost
        )
        return blank.model_copy(update={"settled": settled})

    def _measure(self, attempt: _Try, answer: NoticesNext, heard_at: float) -> None:
        is_sent = isinstance(attempt.outcome, Sent)
        metrics.NOTICES.add(self._name, "sent" if is_sent else "failed", by=len(attempt.notices))
        if is_sent:
            since_s = time.monotonic() - heard_at
            for notice in attempt.notices:
                lag_s = (answer.now - notice.at).total_seconds() + since_s
                metrics.NOTICE_SECONDS.observe(max(lag_s, 0.0), self._name)


def written(
    channel: Channel, due: Sequence[Notice], answer: NoticesNext, notify: Notify
) -> Message:
    """The message of as many of the notices as it has room for."""
    limits = channel.limits
    style = messages.Style(
        limits.title_chars_max, limits.body_chars_max, limits.markup, notify.base_url, notify.zone
    )
    text = messages.compose(due[: limits.notices_max], answer.now, style)
    return Message(text.title, text.body, due[: text.count])
