"""The state of the bus: its streams, each consumer's backlog, who answers. Reads only."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import nats.errors
import orjson
from nats.aio.client import Client
from nats.js.errors import APIError

from contracts.http import ConsumerView, ServiceView, StreamView
from libs.bus.client import instances
from libs.bus.connection import ATTEMPT_TIMEOUT_S, connect
from libs.bus.streams import moment, not_stored, not_stored_now, streams

API_TIMEOUT_S = 5.0

BUS_AWAY = nats.errors.Error
"""What reading the bus raises where NATS, or a stream, does not answer."""


class BusHealth:
    """The streams and their consumers, read with the console's rights."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._names = [stream.name or "" for stream in streams()]

    async def streams(self) -> Sequence[StreamView]:
        """Every stream of the desk. Raises BUS_AWAY."""
        infos = await asyncio.gather(
            *(self._call_api(f"STREAM.INFO.{name}") for name in self._names)
        )
        return [*map(_stream, infos)]

    async def not_stored(self) -> str:
        """The reason why NATS does not store commands; empty where it does. Raises BUS_AWAY."""
        return await not_stored(self._client)

    async def not_stored_now(self) -> str:
        """The same, by a message that was to be stored after the question. Raises BUS_AWAY."""
        return await not_stored_now(self._client)

    async def consumers(self) -> Sequence[ConsumerView]:
        """Every consumer, the one with the most that waits first. Raises BUS_AWAY."""
        pages = await asyncio.gather(
            *(self._call_api(f"CONSUMER.LIST.{name}") for name in self._names)
        )
        every = [_consumer(consumer) for page in pages for consumer in page["consumers"] or ()]
        return sorted(
            every, key=lambda consumer: (-consumer.pending, -consumer.ack_pending, consumer.name)
        )

    async def services(self) -> Sequence[ServiceView]:
        """Every service of the desk, with how many of its processes answer. Raises BUS_AWAY."""
        there = await instances(self._client)
        return [ServiceView(name=name, instances=count) for name, count in there.items()]

    async def _call_api(self, call: str) -> Mapping[str, Any]:
        """The server's answer: nats-py's reading of it leaves out when messages came."""
        answer = await self._client.request(f"$JS.API.{call}", timeout=API_TIMEOUT_S)
        reply: Mapping[str, Any] = orjson.loads(answer.data)
        if "error" in reply:
            APIError.from_error(reply["error"])  # raises
        return reply


def _stream(info: Mapping[str, Any]) -> StreamView:
    config, state = info["config"], info["state"]
    has_messages = state["messages"] > 0
    return StreamView(
        name=config["name"],
        messages=state["messages"],
        bytes=state["bytes"],
        bytes_max=config["max_bytes"],
        age_s_max=config["max_age"] / 1e9,
        first_sequence=state["first_seq"],
        last_sequence=state["last_seq"],
        first_at=moment(state["first_ts"]) if has_messages else None,
        last_at=moment(state["last_ts"]) if has_messages else None,
    )


def _consumer(info: Mapping[str, Any]) -> ConsumerView:
    name = info["name"]
    return ConsumerView(
        name=name,
        stream=info["stream_name"],
        service=name.partition("-")[0],
        pending=info["num_pending"],
        ack_pending=info["num_ack_pending"],
        redelivered=info["num_redelivered"],
        delivered=info["delivered"]["consumer_seq"],
    )


@asynccontextmanager
async def open_health(url: str, identity: str, secrets_dir: Path) -> AsyncIterator[BusHealth]:
    """The bus's health while the block runs, read as `identity`. Raises `BusNotReachable`."""
    client = await connect(url, identity, secrets_dir, timeout_s=ATTEMPT_TIMEOUT_S)
    try:
        yield BusHealth(client)
    finally:
        await client.close()
