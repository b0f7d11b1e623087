"""What the bus is doing: its streams, how far each consumer is behind, who answers. Reads only."""

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
from libs.bus.connection import connect
from libs.bus.discovery import instances
from libs.bus.permissions import expected
from libs.bus.streams import moment, not_stored, streams

API_TIMEOUT_S = 5.0

BUS_AWAY = nats.errors.Error
"""What reading the bus raises where NATS, or a stream, does not answer."""


class BusHealth:
    """The streams and their consumers, read with the console's rights."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._names = [each.name or "" for each in streams()]

    async def streams(self) -> Sequence[StreamView]:
        """Every stream of the desk. Raises BUS_AWAY."""
        told = await asyncio.gather(*(self._told(f"STREAM.INFO.{name}") for name in self._names))
        return [*map(_stream, told)]

    async def not_stored(self) -> str:
        """Why NATS does not store commands; empty where it does. Raises BUS_AWAY."""
        return await not_stored(self._client)

    async def consumers(self) -> Sequence[ConsumerView]:
        """Every consumer, the one with the most that waits first. Raises BUS_AWAY."""
        told = await asyncio.gather(*(self._told(f"CONSUMER.LIST.{name}") for name in self._names))
        every = [_consumer(each) for page in told for each in page["consumers"] or ()]
        return sorted(every, key=lambda each: (-each.pending, -each.ack_pending, each.name))

    async def services(self) -> Sequence[ServiceView]:
        """Every service of the desk, with how many of its processes answer. Raises BUS_AWAY."""
        there = await instances(self._client, expected())
        return [ServiceView(name=name, instances=count) for name, count in there.items()]

    async def _told(self, call: str) -> Mapping[str, Any]:
        """The server's answer: nats-py's reading of it leaves out when messages came."""
        answer = await self._client.request(f"$JS.API.{call}", timeout=API_TIMEOUT_S)
        told: Mapping[str, Any] = orjson.loads(answer.data)
        if "error" in told:
            APIError.from_error(told["error"])  # raises
        return told


def _stream(told: Mapping[str, Any]) -> StreamView:
    config, state = told["config"], told["state"]
    held = state["messages"] > 0
    return StreamView(
        name=config["name"],
        messages=state["messages"],
        bytes=state["bytes"],
        bytes_max=config["max_bytes"],
        age_s_max=config["max_age"] / 1e9,
        first_sequence=state["first_seq"],
        last_sequence=state["last_seq"],
        first_at=moment(state["first_ts"]) if held else None,
        last_at=moment(state["last_ts"]) if held else None,
    )


def _consumer(told: Mapping[str, Any]) -> ConsumerView:
    name = told["name"]
    return ConsumerView(
        name=name,
        stream=told["stream_name"],
        service=name.partition("-")[0],
        pending=told["num_pending"],
        ack_pending=told["num_ack_pending"],
        redelivered=told["num_redelivered"],
        delivered=told["delivered"]["consumer_seq"],
    )


@asynccontextmanager
async def open_health(url: str, identity: str, secrets_dir: Path) -> AsyncIterator[BusHealth]:
    """The bus's health while the block runs, read as `identity`. Raises `BusNotReachable`."""
    client = await connect(url, identity, secrets_dir)
    try:
        yield BusHealth(client)
    finally:
        await client.close()
