"""Wiring of the orchestrator."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from functools import partial
from time import monotonic
from typing import Any

import structlog

from contracts.subjects.commands import OPEN_BOOKS
from contracts.subjects.subject import ORCHESTRATOR
from libs.bus.connection import BusLost, Client, connect, watched
from libs.bus.dead_letters import DeadLetters
from libs.bus.discovery import discoverable
from libs.bus.local import LocalBus
from libs.bus.publisher import Publisher
from libs.bus.server import Server
from libs.bus.streams import not_stored
from libs.market.calendar import exchange_calendar
from libs.market.sources import begin_data, data_version_of, sessions_of
from libs.postgres.migrate import require_schema
from libs.postgres.pool import ORCHESTRATOR_ROLE, dsn_for, open_pool
from libs.runtime.background import Background
from libs.runtime.settings import Settings
from libs.telemetry.readiness import checked
from services.orchestrator import study_answers
from services.orchestrator.accounts import Accounts
from services.orchestrator.bodies import Bodies
from services.orchestrator.commit import INPUTS_MAX, Committer
from services.orchestrator.dead_letters import Letters
from services.orchestrator.group.refusals import Refusals
from services.orchestrator.handler import BusOutbox, Handler
from services.orchestrator.machine.workflow import Workflow
from services.orchestrator.machine.workflows import workflows_of
from services.orchestrator.notices import Notices
from services.orchestrator.preflight import AdmissionCheck
from services.orchestrator.proposals import ProposalDesk
from services.orchestrator.schedulers import certificates
from services.orchestrator.schedulers.dead_letter_monitor import DeadLetterMonitor
from services.orchestrator.schedulers.desk_clock import DeskClock
from services.orchestrator.schedulers.relay import Relay
from services.orchestrator.schedulers.resting import Resting
from services.orchestrator.schedulers.schedule import Clock, Time
from services.orchestrator.schedulers.sweep import Sweep

QUEUE = "orchestrators"
REFUSALS_KEPT_PER_MINUTE_MAX = 60
"""Refused messages of one caller that are kept and told as events; more only answered."""
"""The queue group: a question goes to one of the orchestrators that run."""

log = structlog.get_logger()


@asynccontextmanager
async def running(
    settings: Settings,
    workflows: Sequence[Workflow] | None = None,
    local: LocalBus | None = None,
) -> AsyncIterator[Background]:
    """The orchestrator answers when the block is entered. `workflows` None means the desk's own;
    `local` joins it to the services of its process."""
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
        async with _orchestrating(client, settings, known, closed, local) as background:
            with watched(client, ORCHESTRATOR), checked("commands", partial(not_stored, client)):
                yield background
    finally:
        await client.close()


@asynccontextmanager
async def _orchestrating(
    client: Client,
    settings: Settings,
    workflows: Sequence[Workflow],
    closed: Callable[[], Coroutine[Any, Any, None]],
    local: LocalBus | None,
) -> AsyncIterator[Background]:
    dsn = dsn_for(settings.postgres_address, ORCHESTRATOR_ROLE, settings.secrets_path)
    async with open_pool(dsn, name=ORCHESTRATOR_ROLE, writes=True) as pool:
        await require_schema(pool)
        publisher = Publisher(client)
        relay = Relay(pool, publisher)

        def freed() -> None:
            resting.wake()

        outbox = BusOutbox(publisher, local)
        committer = Committer(pool, workflows, settings, outbox, relay.wake, freed)
        sweep = Sweep(pool, committer, publisher, settings)
        server = Server(client, QUEUE, INPUTS_MAX)
        sessions = sessions_of(settings)
        trading = {workflow.kind for workflow in workflows if workflow.sends(OPEN_BOOKS)}
        door = AdmissionCheck(client, sessions, Accounts(pool), trading, settings.providers)
        patience_s = settings.orchestrator.reply_timeout_s
        refusals = Refusals(REFUSALS_KEPT_PER_MINUTE_MAX, monotonic)
        await begin_data(settings)
        data_version = data_version_of(settings)
        handler = Handler(
            committer,
            publisher,
            sessions.latest,
            data_version,
            door,
            refusals,
            patience_s,
            ProposalDesk(settings.secrets_path, monotonic, is_demo=settings.demo),
        )
        desk_clock = DeskClock(
            pool, settings, lambda: client.is_connected, relay.wake, lambda: committer.refused
        )
        time = Time(desk_clock.now, exchange_calendar(), sessions.latest)
        clock = Clock(pool, handler.cycle, time, settings)
        resting = Resting(pool, outbox, settings)
        await handler.serve(server)
        await clock.serve(server)
        letters = DeadLetters(client)
        await Letters(pool, publisher, letters, settings, relay.wake).serve(server)
        notices = Notices(pool, settings)
        await notices.serve(server)
        await Bodies(pool).serve(server)
        await discoverable(client, ORCHESTRATOR, server.endpoints)
        if local is not None:
            local.open(server)
        parts = (
            committer.run(),
            relay.run(),
            sweep.run(),
            sweep.run_partitions(),
            clock.run(),
            resting.run(),
            desk_clock.run(),
            notices.run(),
            DeadLetterMonitor(pool, letters, relay.wake).run(),
            study_answers.run(pool, settings.study.answers_kept_s),
            certificates.run(settings),
        )

        async def not_committed() -> str:
            return committer.refused

        async with Background(*parts, closed()) as background:
            log.info("service.started", service=ORCHESTRATOR, workflows=len(workflows))
            try:
                with checked("commits", not_committed):
                    yield background
            finally:
                if local is not None:
                    local.close()
                await server.stop()
                log.info("service.stopped", service=ORCHESTRATOR)
        await desk_clock.rest()
