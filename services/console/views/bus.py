"""The bus as people see it: what waits in it, who is there, and whether its servers answer."""

import asyncio
from urllib.parse import urlsplit

from contracts.http import BusView, ServerView
from libs.bus.health import BusHealth
from libs.runtime.settings import Settings
from libs.servers.nats_server import DOES_NOT_ANSWER, nats_problem
from libs.servers.server_record import DataDirError, ServerRecord
from services.console.live.rates import Rates
from services.console.store import Store


async def view(health: BusHealth, rates: Rates, store: Store, settings: Settings) -> BusView:
    """The whole bus. Raises BUS_AWAY."""
    streams, consumers, services, not_stored, servers = await asyncio.gather(
        health.streams(),
        health.consumers(),
        health.services(),
        health.not_stored(),
        _servers(store, settings),
    )
    counts = {
        **{f"stream {stream.name}": stream.last_sequence for stream in streams},
        **{f"consumer {consumer.name}": consumer.delivered for consumer in consumers},
    }
    per_minute, past_s = rates.read(counts)
    return BusView(
        streams=tuple(
            stream.model_copy(update={"per_minute": per_minute.get(f"stream {stream.name}")})
            for stream in streams
        ),
        consumers=tuple(
            consumer.model_copy(update={"per_minute": per_minute.get(f"consumer {consumer.name}")})
            for consumer in consumers
        ),
        services=tuple(services),
        servers=servers,
        not_stored=not_stored,
        rates_s=past_s or None,
    )


async def _servers(store: Store, settings: Settings) -> tuple[ServerView, ...]:
    embedded = _embedded(settings)
    if embedded is None:
        return ()
    problems = {
        "nats": await nats_problem(embedded.ports["nats_monitor"]),
        "postgres": "" if await store.answers() else DOES_NOT_ANSWER,
    }
    marks = embedded.processes
    return tuple(
        ServerView(
            name=name,
            healthy=not problem,
            problem=problem,
            port=embedded.ports[name],
            pid=marks[name].pid if name in marks else None,
        )
        for name, problem in problems.items()
    )


def _embedded(settings: Settings) -> ServerRecord | None:
    """The record of the desk's own servers; None where it uses others."""
    try:
        record = ServerRecord.load(settings.data_dir)
    except DataDirError:
        return None
    used = urlsplit(settings.nats_address).port
    return record if record.ports and record.ports.get("nats") == used else None
