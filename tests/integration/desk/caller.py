"""A program at the desk with nothing but nats-py, a key, and JSON: no contract is imported here."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import nats
import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg

ANSWER_S = 30.0
ASKED_MAX = 2
"""Generous, and asked again as the desk's own clients do: desks of many processes, each of which
the kernel gives as much as this one's, may run beside it."""
EVENT_S = 90.0
"""Generous: a cycle of nine pipelines shares its cores with the other tests."""

Json = dict[str, Any]


@dataclass
class Events:
    """The events heard so far, and a way to wait for the next."""

    heard: list[Json] = field(default_factory=list)
    _news: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def take(self, message: Msg) -> None:
        async with self._news:
            self.heard.append(json.loads(message.data))
            self._news.notify_all()

    def of(self, cycle_id: str) -> list[Json]:
        return [event for event in self.heard if event["cycle_id"] == cycle_id]

    async def first(self, within_s: float = EVENT_S, **fields: object) -> Json:
        """The first event, already heard or not, that has these fields."""

        def found() -> Json | None:
            fit = (e for e in self.heard if fields.items() <= e.items())
            return next(fit, None)

        async with asyncio.timeout(within_s), self._news:
            await self._news.wait_for(lambda: found() is not None)
            return found() or {}


@dataclass
class Caller:
    """One connection under one identity. `refused` gathers what the server said against it."""

    identity: str
    nats: Client
    refused: list[str]
    was_refused: asyncio.Event
    closed: asyncio.Event
    events: Events = field(default_factory=Events)

    async def ask(
        self, body: Mapping[str, Any] | bytes, what: str = "cycle", owner: str = "orchestrator"
    ) -> Json:
        """The desk's answer to a request."""
        return await self._request(f"desk.v1.req.{owner}.{what}.{self.identity}", body)

    async def query(
        self, what: str, owner: str = "console", within_s: float = ANSWER_S, **fields: object
    ) -> Json:
        """The desk's answer to a question."""
        subject = f"desk.v1.qry.{owner}.{what}.{self.identity}"
        return await self._request(subject, fields, within_s)

    async def _request(
        self, subject: str, body: Mapping[str, Any] | bytes, within_s: float = ANSWER_S
    ) -> Json:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        for left in reversed(range(ASKED_MAX)):
            try:
                answer = await self.nats.request(subject, data, timeout=within_s)
                break
            except nats.errors.TimeoutError:
                if not left:
                    raise
        said: Json = json.loads(answer.data)
        return said

    async def accepted(self, body: Mapping[str, Any]) -> str:
        """Ask for a cycle; its id."""
        answer = await self.ask(body)
        assert answer["outcome"] == "accepted", answer
        return str(answer["cycle_id"])

    async def ended(self, cycle_id: str, within_s: float = EVENT_S) -> Json:
        """How the cycle ended: `status` and `reason`."""
        event = await self.events.first(within_s, cycle_id=cycle_id, type="cycle_ended")
        said: Json = event["data"]
        return said

    async def run(self, body: Mapping[str, Any]) -> Json:
        """Ask for a cycle and wait for its end; the cycle with all its contracts."""
        cycle_id = await self.accepted(body)
        await self.ended(cycle_id)
        return await self.query("cycle", cycle_id=cycle_id)


def wish(**fields: object) -> Json:
    """A request's body that nobody has sent before, for an account that nobody has used."""
    mark = uuid4().hex[:12]
    return {
        "idempotency_key": mark,
        "as_of": "2012-06-29",
        "pipelines": [{"name": "rules", "account": f"a{mark}"}],
        **fields,
    }


def account_of(body: Mapping[str, Any]) -> str:
    """The account that the request's first pipeline trades."""
    return str(body["pipelines"][0]["account"])


@asynccontextmanager
async def calling(url: str, secrets_dir: Path, identity: str) -> AsyncIterator[Caller]:
    """A connection that hears all events where its identity may."""
    refused: list[str] = []
    was_refused, closed = asyncio.Event(), asyncio.Event()

    async def on_closed() -> None:
        closed.set()

    async def on_error(error: Exception) -> None:
        refused.append(str(error).lower())
        was_refused.set()

    client = await nats.connect(
        url,
        nkeys_seed=str(secrets_dir / f"{identity}.nk"),
        inbox_prefix=f"_INBOX_{identity}".encode(),
        error_cb=on_error,
        closed_cb=on_closed,
        allow_reconnect=False,
    )
    caller = Caller(identity, client, refused, was_refused, closed)
    if identity in {"user", "cli", "console"}:
        await client.subscribe("desk.v1.evt.>", cb=caller.events.take)
        await client.flush()
    try:
        yield caller
    finally:
        if not client.is_closed:
            await client.close()


def picked(view: Mapping[str, Any], contract: str, pipeline: int = 0) -> Json:
    """One contract of a cycle's view."""
    found: Json = view["pipelines"][pipeline]["contracts"][contract]
    return found


def operation_of(nodes: Sequence[Mapping[str, Any]], step: str) -> UUID:
    """The id of the operation of that step in a cycle's tree."""
    return UUID(next(node["op_id"] for node in nodes if node["name"] == step))
