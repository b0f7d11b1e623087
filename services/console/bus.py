"""The bus as people see it: what waits in it, who is there, and whether its servers answer."""

import asyncio
from collections import Counter
from urllib.parse import urlsplit

from contracts.http import BusView, ServerView, ServiceView
from contracts.subjects import AGENTS, USERS
from libs.bus.health import BusHealth
from libs.bus.permissions import permissions
from libs.runtime.nats_server import monitored, nats_is_healthy
from libs.runtime.server_record import DataDirError, ServerRecord
from libs.runtime.settings import Settings
from services.console.store import Store

CONNECTIONS = "connz?limit=1024"
NAMED = "deskbus-"
"""What the names of our connections begin with; the identity follows."""
SERVICES = tuple(name for name in permissions() if name not in {*USERS, *AGENTS})


async def view(health: BusHealth, store: Store, settings: Settings) -> BusView:
    """The whole bus. Raises BUS_AWAY."""
    streams, consumers, services, servers = await asyncio.gather(
        health.streams(), health.consumers(), present(settings), _servers(store, settings)
    )
    return BusView(
        streams=tuple(streams), consumers=tuple(consumers), services=services, servers=servers
    )


async def present(settings: Settings) -> tuple[ServiceView, ...] | None:
    """The desk's services with their connections, as an embedded NATS server counts them; None
    where it is one's own, which this program has no right to ask."""
    embedded = _embedded(settings)
    if embedded is None:
        return None
    try:
        told = await asyncio.to_thread(monitored, embedded.ports["nats_monitor"], CONNECTIONS)
    except (OSError, ValueError):
        return None
    counted = Counter(each.get("name", "").removeprefix(NAMED) for each in told["connections"])
    return tuple(ServiceView(name=name, connections=counted[name]) for name in SERVICES)


async def _servers(store: Store, settings: Settings) -> tuple[ServerView, ...]:
    embedded = _embedded(settings)
    if embedded is None:
        return ()
    healthy = {
        "nats": await nats_is_healthy(embedded.ports["nats_monitor"]),
        "postgres": await store.answers(),
    }
    marks = embedded.processes
    return tuple(
        ServerView(
            name=name,
            healthy=answers,
            port=embedded.ports[name],
            pid=marks[name].pid if name in marks else None,
        )
        for name, answers in healthy.items()
    )


def _embedded(settings: Settings) -> ServerRecord | None:
    """The record of the desk's own servers; None where it uses others."""
    try:
        record = ServerRecord.load(settings.data_dir)
    except DataDirError:
        return None
    used = urlsplit(settings.nats_address).port
    return record if record.ports and record.ports.get("nats") == used else None
