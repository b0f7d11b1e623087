"""Wiring of the orchestrator."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from typing import Any

from contracts.subjects import ORCHESTRATOR
from libs.bus.connection import BusLost, Client, connect, watched
from libs.bus.dead_letters import DeadLetters
from libs.bus.discovery import discoverable
from libs.bus.publisher import Publisher
from libs.bus.server import Server
from libs.market.calendar import exchange_calendar
from libs.market.sources import latest_session_of
from libs.postgres.migrate import require_schema
from libs.postgres.pool import ORCHESTRATOR_ROLE, dsn_for, open_pool
from libs.runtime.background import Background
from libs.runtime.settings import Settings
from services.orchestrator.bodies import Bodies
from services.orchestrator.commit import Committer
from services.orchestrator.handler import BusOutbox, Handler
from services.orchestrator.letters import Letters
from services.orchestrator.outlook import Providers
from services.orchestrator.relay import Relay
from services.orchestrator.schedule import Clock, Time
from services.orchestrator.sweep import Sweep
from services.orchestrator.workflow import Workflow
from services.orchestrator.workflows import workflows_of

QUEUE = "orchestrators"
"""The queue group: a question goes to one of the orchestrators that run."""


@asynccontextmanager
async def running(
    settings: Settings, workflows: Sequence[Workflow] | None = None
) -> AsyncIterator[Background]:
    """The orchestrator answers when the block is entered. `workflows` None means the desk's own."""
    known = workflows_of(settings) if workflows is None else workflows
    lost = asyncio.Event()

    async def on_closed() -> None:
        lost.set()

    async def closed() -> None:
        await lost.wait()
        raise BusLost(ORCHESTRATOR)

    client = await connect(
        settings.nats_address, ORCHESTRATOR, settings.secrets_path, on_closed=on_closed
    )
    try:
        async with _orchestrating(client, settings, known, closed) as background:
            with watched(client, ORCHESTRATOR):
                yield background
    finally:
        await client.close()


@asynccontextmanager
async def _orchestrating(
    client: Client,
    settings: Settings,
    workflows: Sequence[Workflow],
    closed: Callable[[], Coroutine[Any, Any, None]],
) -> AsyncIterator[Background]:
    dsn = dsn_for(settings.postgres_address, ORCHESTRATOR_ROLE, settings.secrets_path)
    async with open_pool(dsn, name=ORCHESTRATOR_ROLE) as pool:
        await require_schema(pool)
        publisher = Publisher(client)
        relay = Relay(pool, publisher, settings)
        committer = Committer(pool, workflows, settings, BusOutbox(publisher), relay.wake)
        sweep = Sweep(pool, committer, publisher, settings)
        server = Server(client, QUEUE, settings.inputs_max)
        latest, providers = latest_session_of(settings), Providers(client)
        handler = Handler(committer, publisher, latest, providers)
        time = Time(partial(datetime.now, UTC), exchange_calendar(), latest)
        clock = Clock(pool, handler.cycle, time, settings)
        await handler.serve(server)
        await clock.serve(server)
        await Letters(pool, publisher, DeadLetters(client), settings, relay.wake).serve(server)
        await Bodies(pool).serve(server)
        await discoverable(client, ORCHESTRATOR, server.endpoints)
        parts = (committer.run(), relay.run(), sweep.run(), sweep.run_partitions(), clock.run())
        async with Background(*parts, closed()) as background:
            try:
                yield background
            finally:
                await server.stop()
