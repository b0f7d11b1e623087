"""Services that can be found: `$SRV.PING`, `$SRV.INFO` and `$SRV.STATS`, as NATS' own tools ask.

Each identity answers for itself alone: its permissions let it hear no other's name.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any
from uuid import uuid4

import orjson
import structlog
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.micro.service import (
    EndpointInfo,
    EndpointStats,
    ServiceInfo,
    ServicePing,
    ServiceStats,
)

from contracts.subjects.subject import AnySubject
from libs.bus.client import FLUSH_TIMEOUT_S, discovered_as
from libs.bus.connection import flush
from libs.bus.dropped import drop_message, replies_to
from libs.bus.permissions import DISCOVERY, LOOKERS
from libs.telemetry import metrics

log = structlog.get_logger()
BAD_ENDS = ("refused", "failed", "unanswered", "unreadable")


@dataclass(frozen=True)
class BusEndpoint:
    """A subject that a service hears; commands are pulled, questions shared by a queue group."""

    name: str
    subject: str
    group: str
    is_command: bool = False

    @classmethod
    def of_command(cls, row: AnySubject) -> "BusEndpoint":
        """A command's row of the subject table."""
        return cls(row.what, row.address, row.durable, is_command=True)


async def discoverable(client: Client, identity: str, endpoints: Sequence[BusEndpoint]) -> None:
    """Answer whoever looks for services, until the client is closed.

    Returns once NATS has all subscriptions of the client, these and earlier ones: from then on
    questions reach the service. A server that is frozen has them once it goes on.
    """
    service = _Service(identity, endpoints)
    answers: Mapping[str, Callable[[], dict[str, Any]]] = {
        "PING": service.ping,
        "INFO": service.info,
        "STATS": service.stats,
    }
    for verb in DISCOVERY:
        for subject in (f"$SRV.{verb}", *(f"$SRV.{verb}.{name}" for name in service.names)):
            await client.subscribe(subject, cb=_answering(answers[verb]))
    try:
        await flush(client, FLUSH_TIMEOUT_S)
    except TimeoutError as error:
        log.warning("bus.subscriptions_not_confirmed", identity=identity, why=str(error))


def _answering(answer: Callable[[], dict[str, Any]]) -> Any:
    async def on_message(message: Msg) -> None:
        if not message.reply:
            return
        if not replies_to(message.reply, LOOKERS):
            drop_message("foreign_inbox", "", message.subject)
            return
        await message.respond(orjson.dumps(answer()))

    return on_message


class _Service:
    def __init__(self, identity: str, endpoints: Sequence[BusEndpoint]) -> None:
        self._name = discovered_as(identity)
        self._id = uuid4().hex
        # NATS wants a semantic version: 0.2.0.dev0 is 0.2.0-dev.0 there.
        self._version = version("deskbus").replace(".dev", "-dev.")
        self._started = datetime.now(UTC)
        self._endpoints = endpoints

    @property
    def names(self) -> Sequence[str]:
        """The names that address it, beyond all services at once."""
        return self._name, f"{self._name}.{self._id}"

    def ping(self) -> dict[str, Any]:
        """The answer to a PING."""
        return ServicePing(self._id, self._name, self._version).to_dict()

    def info(self) -> dict[str, Any]:
        """The answer to an INFO: its endpoints."""
        endpoints = [
            EndpointInfo(
                endpoint.name,
                endpoint.subject,
                endpoint.group,
                {"command": str(endpoint.is_command)},
            )
            for endpoint in self._endpoints
        ]
        return ServiceInfo(self._name, self._id, self._version, "", endpoints).to_dict()

    def stats(self) -> dict[str, Any]:
        """The answer to a STATS: this process's requests, errors and time, as the metrics count."""
        counted = [_stats(endpoint) for endpoint in self._endpoints]
        return ServiceStats(self._id, self._name, self._version, self._started, counted).to_dict()


def _stats(endpoint: BusEndpoint) -> EndpointStats:
    count = metrics.COMMANDS if endpoint.is_command else metrics.QUESTIONS
    took = metrics.COMMAND_SECONDS if endpoint.is_command else metrics.QUESTION_SECONDS
    requests = int(count.sum_of(subject=endpoint.subject))
    failed = sum(
        int(count.sum_of(subject=endpoint.subject, outcome=outcome)) for outcome in BAD_ENDS
    )
    took_ns = int(took.sum_of(subject=endpoint.subject) * 1e9)
    return EndpointStats(
        name=endpoint.name,
        subject=endpoint.subject,
        queue_group=endpoint.group,
        num_requests=requests,
        num_errors=failed,
        processing_time=took_ns,
        average_processing_time=took_ns // requests if requests else 0,
    )
