"""Streams and consumers, derived from the subject table; the provisioner owns them.

A consumer that exists ignores a new configuration without a word, and a wiped store has none: so
one process compares and repairs, and everyone else only binds.
"""

import asyncio
from collections.abc import Sequence

import nats.errors
import structlog
from nats.aio.client import Client
from nats.js.api import (
    AckPolicy,
    ConsumerConfig,
    DiscardPolicy,
    RetentionPolicy,
    StorageType,
    StreamConfig,
)
from nats.js.errors import APIError, NotFoundError

from contracts.audit import DECISION_EVENTS
from contracts.subjects import PREFIX, Subject
from libs.runtime.errors import DeskError

COMMAND_STREAM = "COMMANDS"
DECISION_STREAM = "DECISIONS"
DEAD_LETTER_STREAM = "DEAD_LETTERS"

GIB = 1024**3
COMMAND_AGE_S_MAX = 24 * 3600
DECISION_AGE_S_MAX = 30 * 24 * 3600
DEAD_LETTER_AGE_S_MAX = 90 * 24 * 3600
# At most the sweep's age: a command that is sent again must not be swallowed as a duplicate.
DUPLICATE_WINDOW_S = 1.0
ACK_WAIT_S = 20.0
DELIVERIES_MAX = 10
ACKS_PENDING_MAX = 1_000
REPAIR_EVERY_S = 1.0

log = structlog.get_logger()


class StreamsNotMade(DeskError):
    """NATS did not make the streams: it is still starting, or not set up for them."""

    code = "streams_not_made"


def streams(replicas: int = 1) -> Sequence[StreamConfig]:
    """All streams. LIMITS retention: de-duplication survives a restart only under it.

    `replicas`: on how many servers of a cluster each one is kept; its consumers are there too.
    """
    decisions = [f"{PREFIX}.evt.*.{event}.*" for event in DECISION_EVENTS]
    advisories = "$JS.EVENT.ADVISORY.CONSUMER"
    dead = [
        f"{PREFIX}.dlq.>",
        f"{advisories}.MAX_DELIVERIES.{COMMAND_STREAM}.*",
        f"{advisories}.MSG_TERMINATED.{COMMAND_STREAM}.*",
    ]
    return [
        _stream(COMMAND_STREAM, [f"{PREFIX}.cmd.>"], COMMAND_AGE_S_MAX, GIB, replicas),
        _stream(DECISION_STREAM, decisions, DECISION_AGE_S_MAX, GIB, replicas),
        _stream(DEAD_LETTER_STREAM, dead, DEAD_LETTER_AGE_S_MAX, GIB // 4, replicas),
    ]


def consumers(commands: Sequence[Subject]) -> Sequence[ConsumerConfig]:
    """One durable pull consumer a command."""
    return [
        ConsumerConfig(
            name=row.durable,
            durable_name=row.durable,
            filter_subject=row.address,
            ack_policy=AckPolicy.EXPLICIT,
            ack_wait=ACK_WAIT_S,
            max_deliver=DELIVERIES_MAX,
            max_ack_pending=ACKS_PENDING_MAX,
        )
        for row in commands
    ]


class Provisioner:
    """Makes the streams and consumers and keeps them there."""

    def __init__(self, client: Client, commands: Sequence[Subject], replicas: int = 1) -> None:
        self._manager = client.jsm()
        self._commands = commands
        self._streams = streams(replicas)

    async def provision(self) -> None:
        """Create or update everything. Raises `StreamsNotMade`."""
        try:
            for stream in self._streams:
                await self._ensure_stream(stream)
            for consumer in consumers(self._commands):
                await self._manager.add_consumer(COMMAND_STREAM, consumer)
        except (APIError, nats.errors.Error, TimeoutError) as error:
            said = getattr(error, "description", None) or type(error).__name__
            raise StreamsNotMade(
                f"NATS did not make the streams ({said}); DESKBUS_NATS_REPLICAS is "
                f"{self._streams[0].num_replicas}: it takes as many servers in the cluster"
            ) from error

    async def run(self) -> None:
        """Look every REPAIR_EVERY_S and repair what is missing, until cancelled."""
        while True:
            await asyncio.sleep(REPAIR_EVERY_S)
            try:
                if await self._is_missing():
                    await self.provision()
                    log.warning("bus.streams_repaired")
            except (APIError, nats.errors.Error, TimeoutError, StreamsNotMade) as error:
                log.warning("bus.streams_unknown", error=type(error).__name__)

    async def _is_missing(self) -> bool:
        try:
            found = [await self._manager.stream_info(each.name or "") for each in self._streams]
        except NotFoundError:
            return True
        return found[0].state.consumer_count < len(self._commands)

    async def _ensure_stream(self, stream: StreamConfig) -> None:
        try:
            await self._manager.stream_info(stream.name or "")
        except NotFoundError:
            await self._manager.add_stream(stream)
        else:
            await self._manager.update_stream(stream)


def _stream(
    name: str, subjects: list[str], age_s: float, size_bytes: int, replicas: int
) -> StreamConfig:
    return StreamConfig(
        name=name,
        subjects=subjects,
        retention=RetentionPolicy.LIMITS,
        storage=StorageType.FILE,
        discard=DiscardPolicy.OLD,
        max_age=age_s,
        max_bytes=size_bytes,
        duplicate_window=DUPLICATE_WINDOW_S,
        num_replicas=replicas,
    )
