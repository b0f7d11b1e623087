"""Wiring of the orchestrator."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from typing import Any

import structlog

from contracts.message import Pipeline
from contracts.operation import Reserve
from contracts.provider import PipelineProblem, ProvidersQuery, ProvidersView
from contracts.subjects import ORCHESTRATOR, PROVIDERS
from contracts.types import Failure
from libs.bus.codec import MessageInvalid, decode, encode
from libs.bus.connection import BusLost, Client, connect, watched
from libs.bus.dead_letters import DeadLetters
from libs.bus.discovery import discoverable
from libs.bus.operation import UNANSWERED
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
from services.orchestrator.handler import BusOutbox, Handler, Outlook
from services.orchestrator.letters import Letters
from services.orchestrator.relay import Relay
from services.orchestrator.schedule import Clock, Time
from services.orchestrator.sweep import Sweep
from services.orchestrator.workflow import Workflow
from services.orchestrator.workflows import workflows_of

QUEUE = "orchestrators"
"""The queue group: a question goes to one of the orchestrators that run."""
OFFLINE = "rules"
"""The provider that every desk has: nobody need be asked for it."""
PROVIDERS_TIMEOUT_S = 2.0
SOMETHING = Reserve(tokens=1, cost_usd=Decimal("0.00000001"))
"""What a call of a model costs where nobody knows: more than a spent budget has."""

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


class Providers:
    """Asks the service in which every pipeline begins, and which has the keys: may these begin,
    and what does a call of theirs cost at least?"""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def __call__(self, pipelines: Sequence[Pipeline]) -> Outlook:
        """The first problem, and what a call needs. Where nobody answers the work itself will tell
        of a problem, and a call needs something at least."""
        asked = tuple(each for each in pipelines if each.provider != OFFLINE or each.models)
        if not asked:
            return Outlook()
        query = encode(ProvidersQuery(pipelines=asked))
        try:
            answer = await self._client.request(
                PROVIDERS.by(ORCHESTRATOR), query, timeout=PROVIDERS_TIMEOUT_S
            )
            view = decode(ProvidersView, answer.data)
        except (*UNANSWERED, MessageInvalid) as error:
            log.warning("orchestrator.providers_unknown", error=type(error).__name__)
            return Outlook(needs=SOMETHING)
        return Outlook(_first(view.problems), view.needs)


def _first(problems: Sequence[PipelineProblem]) -> Failure | None:
    if not problems:
        return None
    text = f"pipeline {problems[0].pipeline}: {problems[0].message}"
    return Failure(code=problems[0].code, message=text, field="pipelines")
