"""The bus as people see it: what waits in it, who is there, and whether its servers answer."""

import asyncio
from urllib.parse import urlsplit

from contracts.http import BusView, ServerView
from libs.bus.health import BusHealth
from libs.runtime.nats_server import nats_is_healthy
from libs.runtime.server_record import DataDirError, ServerRecord
from libs.runtime.settings import Settings
from services.console.store import Store


async def view(health: BusHealth, store: Store, settings: Settings) -> BusView:
    """The whole bus. Raises BUS_AWAY."""
    streams, consumers, services, servers = await asyncio.gather(
        health.streams(), health.consumers(), health.services(), _servers(store, settings)
    )
    return BusView(
        streams=tuple(streams),
        consumers=tuple(consumers),
        services=tuple(services),
        servers=servers,
    )


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
