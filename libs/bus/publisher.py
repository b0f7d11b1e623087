"""The orchestrator's publisher: commands, events, cancels, dead letters."""

import asyncio
from dataclasses import dataclass
from uuid import UUID

import nats.errors
import structlog
from nats.aio.client import Client
from nats.js.api import PubAck
from nats.js.errors import APIError, NoStreamResponseError

from contracts.audit import DECISION_EVENTS, NOTABLE_EVENTS
from contracts.operation import CancelOperation
from contracts.position import Position
from contracts.subjects.subject import PREFIX, Class
from contracts.types import Failure
from libs.bus.codec import encode
from libs.bus.connection import flush
from libs.bus.dead_letters import written
from libs.bus.headers import POSITION_HEADER, headers
from libs.bus.server import UnreadableMessage

PUBLISH_TIMEOUT_S = 5.0
FLUSH_TIMEOUT_S = 5.0

UNPUBLISHED = (nats.errors.Error, APIError, NoStreamResponseError, TimeoutError, OSError)

log = structlog.get_logger()


@dataclass(frozen=True)
class OutgoingEvent:
    """An event as JSON, and what its subject and headers say of it."""

    event_id: UUID
    what: str
    owner: str
    cycle_id: UUID
    node: UUID
    body: bytes
    position: Position


class Publisher:
    """Publishes under the orchestrator's key."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._jetstream = client.jetstream(timeout=PUBLISH_TIMEOUT_S)
        self._unacknowledged: list[asyncio.Future[PubAck]] = []

    async def command(
        self, service: str, step: str, cycle_id: UUID, op_id: UUID, body: bytes, sends: int
    ) -> None:
        """Put a command on its stream. No acknowledgement is waited for: the sweep heals."""
        subject = f"{PREFIX}.cmd.{service}.{step}"
        # Its own id at each sending, or a stream that still knows the first would swallow it.
        about = headers(f"{op_id}/{sends}", f"desk.{step}", cycle_id, op_id, "orchestrator")
        await self._publish(subject, body, about)

    async def cancel(self, service: str, cancel: CancelOperation) -> None:
        """Tell every instance of a service to stop an operation."""
        about = headers(str(cancel.op_id), "desk.cancel", cancel.cycle_id, cancel.op_id, service)
        await self._publish(f"{PREFIX}.ctl.{service}.cancel", encode(cancel), about)

    async def dead_letter(
        self, what: str, refused: UnreadableMessage, failure: Failure, caller: str
    ) -> None:
        """Keep a message that could not be read; it is in the stream when this returns.

        Where the stream cannot be reached the message is lost to us: that is logged, and who sent
        it hears all the same that it was refused.
        """
        stored, why = written(refused.body, failure, caller, refused.size_bytes)
        subject = f"{PREFIX}.dlq.orchestrator.{what}.{caller}"
        try:
            await self._jetstream.publish(subject, stored, headers=why)
        except UNPUBLISHED as error:
            _not_published(subject, error)

    async def event(self, event: OutgoingEvent) -> None:
        """Write an event to the connection, a notable one for the notifier too. `confirmed` waits
        until the server has all.

        Raises one of `UNPUBLISHED`; the event may then have been published.
        """
        subject = f"{PREFIX}.evt.{event.owner}.{event.what}.{event.cycle_id}"
        what = f"desk.{event.what}"
        about = headers(str(event.event_id), what, event.cycle_id, event.node, event.owner)
        about[POSITION_HEADER] = str(event.position)
        if event.what in DECISION_EVENTS:
            # Written to the connection now, in its turn; only the acknowledgement comes later.
            sent = await self._jetstream.publish_async(subject, event.body, headers=about)
            self._unacknowledged.append(sent)
        else:
            await self._client.publish(subject, event.body, headers=about)
        if event.what in NOTABLE_EVENTS:
            subject = f"{PREFIX}.{Class.NOTICE}.{event.owner}.{event.what}.{event.cycle_id}"
            sent = await self._jetstream.publish_async(subject, event.body, headers=about)
            self._unacknowledged.append(sent)

    async def confirmed(self) -> None:
        """Wait until the server has all events: decision events and notices by their stream's
        acknowledgement, the others by a flush. Raises one of `UNPUBLISHED`."""
        sent, self._unacknowledged = self._unacknowledged, []
        await asyncio.wait_for(asyncio.gather(*sent), PUBLISH_TIMEOUT_S)
        await flush(self._client, FLUSH_TIMEOUT_S)

    async def _publish(self, subject: str, body: bytes, about: dict[str, str]) -> None:
        try:
            await self._client.publish(subject, body, headers=about)
        except UNPUBLISHED as error:
            _not_published(subject, error)


def _not_published(subject: str, error: Exception) -> None:
    log.warning("bus.unpublished", subject=subject, error=type(error).__name__)
