"""Streams and consumers, derived from the subject table; the provisioner owns them.

A consumer that exists ignores a new configuration without a word, and a wiped store has none: so
one process compares and repairs, and everyone else only binds.

The same process stores a word every STORED_EVERY_S, and takes it away again: commands are published
without an acknowledgement, so nobody else would hear that NATS has ceased to store them.
"""

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import nats.errors
import orjson
import structlog
from nats.aio.client import Client
from nats.js.api import (
    AckPolicy,
    ConsumerConfig,
    DeliverPolicy,
    DiscardPolicy,
    RetentionPolicy,
    StorageType,
    StoreCompression,
    StreamConfig,
)
from nats.js.errors import APIError, NoStreamResponseError, NotFoundError

from contracts.audit import DECISION_EVENTS
from contracts.message import MESSAGE_BYTES_MAX
from contracts.subjects.notices import durable_of
from contracts.subjects.subject import PREFIX, AnySubject, Class
from libs.runtime.errors import DeskError
from libs.telemetry import metrics

COMMAND_STREAM = "COMMANDS"
DECISION_STREAM = "DECISIONS"
NOTICE_STREAM = "NOTICES"
DEAD_LETTER_STREAM = "DEAD_LETTERS"

GIB = 1024**3
COMMAND_AGE_S_MAX = 24 * 3600
DECISION_AGE_S_MAX = 30 * 24 * 3600
NOTICE_AGE_S_MAX = 7 * 24 * 3600
DEAD_LETTER_AGE_S_MAX = 90 * 24 * 3600
LETTERS_KEPT_MAX = 100
"""Dead letters of one subject, which is of one sender and kind: then its own oldest go, and nobody
else's. All the shares together fit into the stream."""
LETTER_BYTES_MAX = MESSAGE_BYTES_MAX + 16 * 1024
"""A dead letter with its headers."""
# At most the sweep's age: a command that is sent again must not be swallowed as a duplicate.
DUPLICATE_WINDOW_S = 1.0
ACK_WAIT_S = 20.0
DELIVERIES_MAX = 10
ACKS_PENDING_MAX = 1_000
NOTICES_PENDING_MAX = 100_000
"""Notices of one channel that may wait for the end of quiet hours, a digest or another try. Later
ones are not delivered meanwhile."""
CHANNEL_IDLE_S_MAX = 8 * 24 * 3600
"""By then NATS forgets the consumer of a channel that was removed, and has none of its notices."""
REPAIR_EVERY_S = 1.0
STORED_EVERY_S = 2.0
STORED_TIMEOUT_S = 1.4
STORED_AGE_S_MAX = 2 * (STORED_EVERY_S + STORED_TIMEOUT_S)
"""Where the newest word in the stream is older, NATS stores nothing, or nobody tries."""
NOTICE_SUBJECTS = f"{PREFIX}.{Class.NOTICE}.>"
STORED_POLL_S = 0.1
STORED_BYTES = 16_384
"""More than a full disk has left in the last page of a file."""
STORED = f"{PREFIX}.stored.commands"
"""The provisioner's own subject of the commands' stream: no command, and no consumer takes it."""
COMMAND_INFO = f"STREAM.INFO.{COMMAND_STREAM}"
NOT_STORED = (nats.errors.Error, APIError, NoStreamResponseError, TimeoutError)
TODO = "check whether its disk is full; it continues when there is space again, or after a restart"

log = structlog.get_logger()


class NotProvisioned(DeskError):
    """NATS has no stream for a channel's notices, or does not answer."""

    code = "channel_not_provisioned"


class StreamsNotMade(DeskError):
    """NATS did not create the streams: it is still starting, or not set up for them."""

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
        _stream(COMMAND_STREAM, [f"{PREFIX}.cmd.>", STORED], COMMAND_AGE_S_MAX, GIB, replicas),
        _stream(DECISION_STREAM, decisions, DECISION_AGE_S_MAX, GIB, replicas),
        _stream(NOTICE_STREAM, [NOTICE_SUBJECTS], NOTICE_AGE_S_MAX, GIB, replicas),
        replace(
            _stream(DEAD_LETTER_STREAM, dead, DEAD_LETTER_AGE_S_MAX, GIB, replicas),
            max_msgs_per_subject=LETTERS_KEPT_MAX,
            max_msg_size=LETTER_BYTES_MAX,
        ),
    ]


def consumers(commands: Sequence[AnySubject]) -> Sequence[ConsumerConfig]:
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


def channel_consumer(channel: str, since: DeliverPolicy) -> ConsumerConfig:
    """The durable pull consumer of a channel of `[notify]`, which all notifiers share."""
    return ConsumerConfig(
        name=durable_of(channel),
        durable_name=durable_of(channel),
        filter_subject=NOTICE_SUBJECTS,
        deliver_policy=since,
        ack_policy=AckPolicy.EXPLICIT,
        ack_wait=ACK_WAIT_S,
        max_deliver=-1,
        max_ack_pending=NOTICES_PENDING_MAX,
        inactive_threshold=CHANNEL_IDLE_S_MAX,
    )


class Provisioner:
    """Makes the streams and consumers and keeps them there."""

    def __init__(
        self,
        client: Client,
        commands: Sequence[AnySubject],
        replicas: int = 1,
        channels: Collection[str] = (),
    ) -> None:
        self._manager = client.jsm()
        self._jetstream = client.jetstream(timeout=STORED_TIMEOUT_S)
        self._commands = commands
        self._channels = channels
        self._streams = streams(replicas)
        self._not_stored = ""
        self._holds_nothing_older = False  # until all channels of a new stream are there
        self._trying = asyncio.Lock()

    async def provision(self) -> None:
        """Create or update everything. Raises `StreamsNotMade`."""
        try:
            for stream in self._streams:
                if await self._ensure_stream(stream) and stream.name == NOTICE_STREAM:
                    self._holds_nothing_older = True
            # A new channel gets what happens from now on. A new stream holds nothing older.
            since = DeliverPolicy.ALL if self._holds_nothing_older else DeliverPolicy.NEW
            for channel in self._channels:
                await self._ensure_channel(channel, since)
            self._holds_nothing_older = False
            for consumer in consumers(self._commands):
                await self._manager.add_consumer(COMMAND_STREAM, consumer)
        except (APIError, nats.errors.Error, TimeoutError) as error:
            description = getattr(error, "description", None) or type(error).__name__
            raise StreamsNotMade(
                f"NATS did not create the streams ({description}); DESKBUS_NATS_REPLICAS is "
                f"{self._streams[0].num_replicas}: it needs as many servers in the cluster"
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

    async def watch_storing(self) -> None:
        """Find out every STORED_EVERY_S whether NATS stores commands, until cancelled."""
        while True:
            await self.not_stored()
            await asyncio.sleep(STORED_EVERY_S)

    async def not_stored(self) -> str:
        """Why a command that is sent now is not stored; empty where it is. It is tried."""
        async with self._trying:
            await self._try_storing()
        return self._not_stored

    async def _try_storing(self) -> None:
        try:
            stored = await self._jetstream.publish(STORED, bytes(STORED_BYTES))
            await self._manager.delete_msg(COMMAND_STREAM, stored.seq)
            why = ""
        except NOT_STORED as error:
            description = getattr(error, "description", None) or type(error).__name__
            why = f"NATS does not store commands ({description}): {TODO}"
        metrics.BUS_STORES.set(float(not why))
        if why and not self._not_stored:
            log.error("bus.not_stored", why=why)
        elif self._not_stored and not why:
            log.warning("bus.stored_again")
        self._not_stored = why

    async def _is_missing(self) -> bool:
        try:
            counts = {
                stream.name: (
                    await self._manager.stream_info(stream.name or "")
                ).state.consumer_count
                for stream in self._streams
            }
            for channel in self._channels:  # by name: that of a channel that went stays a week
                await self._manager.consumer_info(NOTICE_STREAM, durable_of(channel))
        except NotFoundError:
            return True
        return counts[COMMAND_STREAM] < len(self._commands)

    async def _ensure_stream(self, stream: StreamConfig) -> bool:
        """Whether the stream had to be made."""
        try:
            await self._manager.stream_info(stream.name or "")
        except NotFoundError:
            await self._manager.add_stream(stream)
            return True
        await self._manager.update_stream(stream)
        return False

    async def _ensure_channel(self, channel: str, since: DeliverPolicy) -> None:
        try:
            await self._manager.consumer_info(NOTICE_STREAM, durable_of(channel))
        except NotFoundError:
            await self._manager.add_consumer(NOTICE_STREAM, channel_consumer(channel, since))


async def channel_since(client: Client, channel: str) -> datetime:
    """Since when NATS holds the notices of a channel. Raises `NotProvisioned`."""
    try:
        info = await _info(client, f"CONSUMER.INFO.{NOTICE_STREAM}.{durable_of(channel)}")
    except NotFoundError as error:
        raise NotProvisioned(
            f"NATS holds no notices of {channel}: the provisioner needs the same [notify]"
        ) from error
    except NOT_STORED as error:
        raise NotProvisioned(f"NATS does not answer ({type(error).__name__})") from error
    return moment(info["created"])


async def _info(client: Client, what: str) -> dict[str, Any]:
    """The server's words on a stream or a consumer. Raises what nats-py does, and `APIError`."""
    answer = await client.request(f"$JS.API.{what}", timeout=STORED_TIMEOUT_S)
    info: dict[str, Any] = orjson.loads(answer.data)
    if "error" in info:
        APIError.from_error(info["error"])  # raises
    return info


async def _last(client: Client) -> int:
    """The number of the last message that the stream of commands ever had."""
    return int((await _info(client, COMMAND_INFO))["state"]["last_seq"])


async def _stored_age_s(client: Client) -> float:
    """The seconds since NATS last stored a command, by its own clock."""
    info = await _info(client, COMMAND_INFO)
    return (moment(info["ts"]) - moment(info["state"]["last_ts"])).total_seconds()


async def not_stored(client: Client) -> str:
    """Why NATS does not store commands, as whoever may read the stream's state sees it; empty
    where it does. Raises what nats-py does, and `APIError`."""
    age_s = await _stored_age_s(client)
    if age_s <= STORED_AGE_S_MAX:
        return ""
    since = f"for {age_s:.0f} s" if age_s < COMMAND_AGE_S_MAX else "since its store was made"
    return f"NATS has stored nothing {since}, tried every {STORED_EVERY_S:g} s: {TODO}"


async def not_stored_now(client: Client) -> str:
    """The same, where nothing counts that was stored before the question: the answer takes until
    the provisioner's next try, at most STORED_AGE_S_MAX. Raises as `not_stored`."""
    before = await _last(client)
    until = asyncio.get_running_loop().time() + STORED_AGE_S_MAX
    while asyncio.get_running_loop().time() < until:
        await asyncio.sleep(STORED_POLL_S)
        if await _last(client) > before:
            return ""
    return await not_stored(client) or f"NATS stores nothing now: {TODO}"


def moment(timestamp: str) -> datetime:
    """The server's time, which has up to nine places."""
    whole, _, rest = timestamp.removesuffix("Z").partition(".")
    return datetime.fromisoformat(f"{whole}.{rest[:6]:0<6}+00:00")


def _stream(
    name: str, subjects: list[str], age_s: float, size_bytes: int, replicas: int
) -> StreamConfig:
    return StreamConfig(
        name=name,
        subjects=subjects,
        retention=RetentionPolicy.LIMITS,
        storage=StorageType.FILE,
        # Commands of one cycle repeat the same contracts: a seventh of their bytes is left.
        compression=StoreCompression.S2,
        discard=DiscardPolicy.OLD,
        max_age=age_s,
        max_bytes=size_bytes,
        duplicate_window=DUPLICATE_WINDOW_S,
        num_replicas=replicas,
    )
