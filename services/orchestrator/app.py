"""Wiring of the orchestrator."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Any

import structlog

from contracts.message import Pipeline
from contracts.provider import ProvidersQuery, ProvidersView
from contracts.subjects import ORCHESTRATOR, PROVIDERS
from contracts.types import Failure
from libs.bus.codec import MessageInvalid, decode, encode
from libs.bus.connection import BusLost, Client, connect
from libs.bus.dead_letters import DeadLetters
from libs.bus.operation import UNANSWERED
from libs.bus.publisher import Publisher
from libs.bus.server import Server
from libs.market.sources import latest_session_of
from libs.postgres.migrate import require_schema
from libs.postgres.pool import ORCHESTRATOR_ROLE, dsn_for, open_pool
from libs.runtime.background import Background
from libs.runtime.settings import Settings
from services.orchestrator.commit import Committer
from services.orchestrator.handler import BusOutbox, Handler
from services.orchestrator.letters import Letters
from services.orchestrator.relay import Relay
from services.orchestrator.sweep import Sweep
from services.orchestrator.workflow import Workflow, workflows_of

QUEUE = "orchestrators"
"""The queue group: a question goes to one of the orchestrators that run."""
OFFLINE = "rules"
"""The provider that every desk has: nobody need be asked for it."""
PROVIDERS_TIMEOUT_S = 2.0

log = structlog.get_logger()


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
        await Handler(committer, publisher, latest, providers).serve(server)
        await Letters(pool, publisher, DeadLetters(client), settings, relay.wake).serve(server)
        parts = (committer.run(), relay.run(), sweep.run(), sweep.run_partitions(), closed())
        async with Background(*parts) as background:
            try:
                yield background
            finally:
                await server.stop()


class Providers:
    """Asks the service in which every pipeline begins, and which has the keys: may these begin?"""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def __call__(self, pipelines: Sequence[Pipeline]) -> Failure | None:
        """The first problem; None also where nobody answers: then the work itself will tell."""
        asked = tuple(each for each in pipelines if each.provider != OFFLINE or each.models)
        if not asked:
            return None
        query = encode(ProvidersQuery(pipelines=asked))
        try:
            answer = await self._client.request(
                PROVIDERS.by(ORCHESTRATOR), query, timeout=PROVIDERS_TIMEOUT_S
            )
            found = decode(ProvidersView, answer.data).problems
        except (*UNANSWERED, MessageInvalid) as error:
            log.warning("orchestrator.providers_unknown", error=type(error).__name__)
            return None
        if not found:
            return None
        return Failure(
            code=found[0].code,
            message=f"pipeline {found[0].pipeline}: {found[0].message}",
            field="pipelines",
        )
