"""The notifier's logic over FastStream's broker in memory, with a desk that remembers in memory and
a channel that does as it is told.

The broker carries what is FastStream's: an event's bytes and headers, through its subscriber, the
desk's reader and middlewares, to the handler that the service has. It carries nothing of a
stream's: there is no number (`Hearing` writes the reply subject that JetStream would), nobody hears
an acknowledgement (`Acknowledged` looks whether there was one), nothing comes again, nothing is
pulled. And the notifier's questions to the orchestrator go past FastStream (decision 0003), so
`Memory` answers them. All of that is in tests/integration/notifier, on a real NATS and Postgres.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

from faststream import BaseMiddleware
from faststream.message import StreamMessage
from faststream.nats import NatsBroker, TestNatsBroker

from contracts.audit import Event
from contracts.notice import (
    DueNotice,
    KeepNotices,
    KeptNotice,
    LeaseNotifier,
    NextNotices,
    NoticesKept,
    NoticesNext,
    NotifierLease,
)
from contracts.subjects.notices import NOTICE_DURABLE, NOTIFIER
from contracts.subjects.subject import PREFIX, Class
from libs.bus.headers import headers
from libs.bus.listening.listener import Listener
from libs.bus.streams import NOTICE_STREAM
from libs.channels.channel import Limits, Message, Outcome, Sent
from libs.runtime.errors import Unavailable
from services.notifier.hearer import Hearer, hears

SOON_S = 10.0


@dataclass
class Memory:
    """The orchestrator's part, as services/orchestrator/notices.py has it."""

    holder: str = ""
    epoch: int = 0
    kept: list[KeptNotice] = field(default_factory=list)
    ended: dict[tuple[UUID, str], str] = field(default_factory=dict)
    failures: list[NextNotices] = field(default_factory=list)
    in_a_row: Counter[str] = field(default_factory=Counter)
    failing_since: dict[str, datetime] = field(default_factory=dict)
    next_try_at: dict[str, datetime] = field(default_factory=dict)
    away: bool = False
    now: datetime = datetime(2026, 11, 25, 12, 0, tzinfo=UTC)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def _reached(self) -> None:
        if self.away:
            raise Unavailable("the orchestrator is away")

    async def lease(self, asked: LeaseNotifier) -> NotifierLease:
        self._reached()
        if asked.release:
            if self.holder == asked.instance:
                self.holder = ""
            return NotifierLease(granted=False)
        if self.holder not in {"", asked.instance}:
            return NotifierLease(granted=False)
        self.epoch += self.holder != asked.instance
        self.holder = asked.instance
        return NotifierLease(granted=True, epoch=self.epoch, lease_s=10)

    async def keep(self, asked: KeepNotices) -> NoticesKept:
        self._reached()
        if asked.epoch != self.epoch:
            return NoticesKept(outcome="fenced")
        known = {each.notice.event_id for each in self.kept}
        self.kept += [each for each in asked.notices if each.notice.event_id not in known]
        self._tell()
        return NoticesKept(outcome="ok", kept=len(asked.notices))

    async def next(self, asked: NextNotices) -> NoticesNext:
        self._reached()
        name = asked.channel
        for each in asked.settled:
            self.ended.setdefault((each.event_id, name), each.outcome)
            if each.outcome == "sent":
                self.in_a_row[name] = 0
                self.failing_since.pop(name, None)
        if asked.failed:
            self.failures.append(asked)
            self.in_a_row[name] += 1
            self.failing_since.setdefault(name, self.now)
            self.next_try_at[name] = self.now + timedelta(seconds=asked.again_in_s)
        self._tell()
        waiting = self.waiting(name)
        is_closed = self.next_try_at.get(name, self.now) > self.now
        ready = [] if is_closed else [each for each in waiting if each.due_at <= self.now]
        first = min((each.due_at for each in waiting), default=None)
        wait_s = None if first is None else max((first - self.now).total_seconds(), 0.05)
        return NoticesNext(
            outcome="ok" if asked.epoch == self.epoch else "fenced",
            now=self.now,
            notices=tuple(ready[: asked.limit]),
            wait_s=0.0 if ready else wait_s,
            waiting=len(waiting),
            failures=self.in_a_row[name],
            failing_since=self.failing_since.get(name),
        )

    def waiting(self, channel: str) -> list[DueNotice]:
        return [
            DueNotice(notice=each.notice, due_at=due.due_at, gathered=due.gathered)
            for each in self.kept
            for due in each.due
            if due.channel == channel and (each.notice.event_id, channel) not in self.ended
        ]

    def pass_by(self, seconds: float) -> None:
        """The database's clock goes on."""
        self.now += timedelta(seconds=seconds)

    def _tell(self) -> None:
        self.changed.set()


@dataclass
class Told:
    """A channel; `outcomes` are given one after the other, then `judge` says: it takes all."""

    outcomes: list[Outcome] = field(default_factory=list)
    judge: Callable[[Message], Outcome] = lambda _: Sent()
    messages: list[Message] = field(default_factory=list)
    limits: Limits = Limits(250, 8_000)
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    news: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.gate.set()

    async def send(self, message: Message) -> Outcome:
        self.messages.append(message)
        self.news.set()
        await self.gate.wait()
        return self.outcomes.pop(0) if self.outcomes else self.judge(message)

    async def close(self) -> None:
        pass

    @property
    def titles(self) -> list[str]:
        return [notice.title for message in self.messages for notice in message.notices]


class Acknowledged(BaseMiddleware):
    """Keeps the numbers of what was settled: FastStream's message in memory tells nobody."""

    def __init__(self, *args: Any, numbers: list[int], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._numbers = numbers

    async def consume_scope(self, call_next: Any, msg: StreamMessage[Any]) -> Any:
        result = await call_next(msg)
        delivery = (await msg.decode()).delivery
        if delivery.settled:
            self._numbers.append(delivery.sequence)
        return result


class Hearing:
    """Events over FastStream's broker in memory, numbered from 1 as the stream would."""

    def __init__(self) -> None:
        self.lost = asyncio.Event()
        self.begun = asyncio.Event()
        self.number = 0
        self.acknowledged: list[int] = []
        self._broker: NatsBroker | None = None

    @asynccontextmanager
    async def __call__(self, hearer: Hearer) -> AsyncIterator[asyncio.Event]:
        keeps = partial(Acknowledged, numbers=self.acknowledged)
        listener = Listener("nats://in.memory", NOTIFIER, Path("nowhere"), middlewares=[keeps])
        hears(listener, hearer)
        hearer.begin(self.number + 1)
        async with TestNatsBroker(listener.broker, connect_only=False) as self._broker:
            self.begun.set()
            yield self.lost
            self.begun.clear()

    async def say(self, *events: Event) -> None:
        """Returns once all have been handled."""
        first, self.number = self.number + 1, self.number + len(events)
        async with asyncio.timeout(SOON_S):
            await asyncio.gather(
                *(self.deliver(event, number) for number, event in enumerate(events, first))
            )

    async def deliver(self, event: Event, number: int) -> None:
        """One event, until it has been handled."""
        await self.publish(event.model_dump_json().encode(), event, event.type, number)

    async def publish(self, body: bytes, event: Event, kind: str, number: int) -> None:
        """Bytes in an event's place, as of that type."""
        await self.begun.wait()
        assert self._broker is not None
        about = headers(
            str(event.event_id), f"desk.{kind}", event.cycle_id, event.cycle_id, event.owner
        )
        await self._broker.publish(
            body,
            f"{PREFIX}.{Class.NOTICE}.{event.owner}.{kind}.{event.cycle_id}",
            headers=about,
            stream=NOTICE_STREAM,
            reply_to=f"$JS.ACK.{NOTICE_STREAM}.{NOTICE_DURABLE}.1.{number}.{number}.0.0",
        )


async def until(condition: asyncio.Event, what: Callable[[], bool]) -> None:
    """Wait until it is so; `condition` is set at every change."""
    async with asyncio.timeout(SOON_S):
        while not what():
            condition.clear()
            await condition.wait()
