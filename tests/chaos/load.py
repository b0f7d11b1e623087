"""A client of the desk as anyone could write it: asks until it is answered, listens to events."""

import asyncio
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import nats.errors
import orjson
from nats.aio.client import Client
from nats.aio.msg import Msg

from contracts.audit import Event, EventsAfter
from contracts.cycle import CancelCycle, CycleRequest, CycleStatus, RequestAnswer
from contracts.message import Pipeline
from contracts.subjects.events import EVENTS_AFTER
from contracts.subjects.subject import PREFIX, Answered, Subject
from contracts.subjects.subject import Asked as Question
from contracts.subjects.table import REQUESTS
from libs.bus.codec import decode, encode
from libs.bus.connection import connect
from libs.bus.headers import AGAIN_HEADER
from libs.runtime import ids
from libs.runtime.settings import Settings
from tests.fakes.chaos_workflow import PIPELINES

USER = "user"
AS_OF = "2012-06-29"
ASK_TIMEOUT_S = 2.0
ASK_AGAIN_AFTER_S = 0.1
LOOK_AGAIN_AFTER_S = 1.5
CYCLE_TIMEOUT_S = 80_000.0
UNANSWERED = (nats.errors.Error, TimeoutError, OSError)


@dataclass(frozen=True)
class Asked:
    """A cycle that was asked for, and what it is to do."""

    cycle_id: UUID
    label: str


@dataclass
class Heard:
    """All events that arrived: by id, and by cycle in the order of their first arrival."""

    events: dict[UUID, Event] = field(default_factory=dict)
    order: dict[UUID, list[int]] = field(default_factory=lambda: defaultdict(list))
    contradictions: list[tuple[Event, Event]] = field(default_factory=list)
    ended: dict[UUID, asyncio.Event] = field(default_factory=lambda: defaultdict(asyncio.Event))

    def take(self, event: Event) -> None:
        """One arrival; a repeated one must say the same."""
        known = self.events.get(event.event_id)
        if known is not None:
            if known != event:
                self.contradictions.append((known, event))
            return
        self.events[event.event_id] = event
        self.order[event.cycle_id].append(event.sequence)
        if event.type == "cycle_ended":
            self.ended[event.cycle_id].set()


class User:
    """One connection under the identity `user`."""

    def __init__(self, client: Client, run: str) -> None:
        self._client = client
        self.run_name = run
        self.heard = Heard()
        self.requests = 0

    async def on_event(self, message: Msg) -> None:
        """Collect an event."""
        self.heard.take(decode(Event, message.data))

    def request(
        self,
        number: int | str,
        kind: str = "chaos",
        pipelines: tuple[str, ...] = PIPELINES,
        **constraints: str,
    ) -> CycleRequest:
        """The request number `number` of this run: the same at each call."""
        return CycleRequest.model_validate(
            {
                "idempotency_key": f"{self.run_name}-{number}",
                "kind": kind,
                "as_of": AS_OF,
                "pipelines": [Pipeline(name=name, account=name) for name in pipelines],
                "constraints": constraints,
                "timeout_s": CYCLE_TIMEOUT_S,
            }
        )

    def cycle_id(self, request: CycleRequest) -> UUID:
        """The id that the request's cycle will have."""
        return ids.cycle_id(USER, request.idempotency_key)

    async def ask(
        self,
        row: Subject[Question, Answered],
        message: Question,
        timeout_s: float = ASK_TIMEOUT_S,
    ) -> Answered:
        """The answer, however often the question must be put."""
        while True:
            self.requests += 1
            try:
                answer = await self._client.request(
                    row.by(USER), encode(message), timeout=timeout_s
                )
                # What is told of an outage is no answer.
                if AGAIN_HEADER not in (answer.headers or {}):
                    return decode(row.reply, answer.data)
                await asyncio.sleep(ASK_AGAIN_AFTER_S)
            except UNANSWERED:
                await asyncio.sleep(ASK_AGAIN_AFTER_S)

    async def begin(self, request: CycleRequest) -> UUID:
        """Ask for a cycle until it is accepted; returns its id."""
        answer = await self.ask(REQUESTS[0], request)
        if answer.outcome != "accepted" or answer.cycle_id is None:
            raise AssertionError(f"{request.idempotency_key}: {answer!r}")
        return answer.cycle_id

    async def status(self, request: CycleRequest) -> CycleStatus | None:
        """Where the cycle is: the same request again changes nothing and says so."""
        answer = await self.ask(REQUESTS[0], request)
        return answer.status

    async def run(self, request: CycleRequest) -> CycleStatus | None:
        """Ask for a cycle and wait for its end, heard or looked up; returns its status."""
        cycle_id = await self.begin(request)
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(self.heard.ended[cycle_id].wait(), LOOK_AGAIN_AFTER_S)
            status = await self.status(request)
            if status is not CycleStatus.RUNNING:
                return status

    async def cancel(self, cycle_id: UUID) -> RequestAnswer:
        """Ask for a cycle's cancel until it is answered."""
        return await self.ask(REQUESTS[1], CancelCycle(cycle_id=cycle_id))

    async def fill_gaps(self, cycle_id: UUID) -> int:
        """Ask for what was missed of a cycle; returns how many events that were."""
        before = len(self.heard.events)
        after = 0
        while True:
            question = EventsAfter(cycle_id=cycle_id, sequence=after)
            page = await self.ask(EVENTS_AFTER, question)
            for event in page.events:
                self.heard.take(event)
                after = event.sequence
            if not page.more:
                return len(self.heard.events) - before


@asynccontextmanager
async def user_of(settings: Settings, run: str | None = None) -> AsyncIterator[User]:
    """A user who hears everything from now on."""
    client = await connect(settings.nats_address, USER, settings.secrets_path)
    user = User(client, run or f"run{time.time_ns()}")
    await client.subscribe(f"{PREFIX}.evt.>", cb=user.on_event, pending_msgs_limit=-1)
    await client.flush()
    try:
        yield user
    finally:
        await client.close()


def data_of(event: Mapping[str, Any]) -> Any:
    """An event's data as the table holds it."""
    return orjson.loads(event["data"])
