"""Wiring of studies."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import structlog

from contracts.cycle import CycleRequest, RequestAnswer
from contracts.subjects.cycles import REQUEST_CYCLE
from contracts.subjects.studies import (
    CYCLE_ENDS,
    RUN_STUDY,
    STOP_STUDY,
    STUDIES,
    STUDY_CALLS,
    STUDY_CELLS,
    STUDY_SCORE,
)
from contracts.subjects.subject import STUDY
from libs.bus.client import Client
from libs.bus.connection import BusLost, connect, watched
from libs.bus.discovery import discoverable
from libs.bus.server import Server
from libs.market.sources import market_of, sessions_of
from libs.postgres.migrate import require_schema
from libs.postgres.pool import STUDY_ROLE, dsn_for, open_pool
from libs.runtime.background import Background
from libs.runtime.settings import Settings
from services.study import progress
from services.study.runner import Studies
from services.study.scores import Scores

CONNECTIONS_MAX = 4
ASK_S = 15.0
"""How long a cell's acceptance is waited for, on a busy desk."""

log = structlog.get_logger()


@asynccontextmanager
async def running(settings: Settings, *, works: bool = True) -> AsyncIterator[Background]:
    """Requests and questions about studies are answered when the block is entered, and cells are
    asked for, unless it only reads (`works` False)."""
    closed = asyncio.Event()

    async def on_closed() -> None:
        closed.set()

    async def lost() -> None:
        await closed.wait()
        raise BusLost(STUDY)

    connection = await connect(
        settings.nats_address, STUDY, settings.secrets_path, on_closed=on_closed
    )
    dsn = dsn_for(settings.postgres_address, STUDY_ROLE, settings.secrets_path)
    try:
        async with open_pool(dsn, size_max=CONNECTIONS_MAX, name=STUDY_ROLE, writes=True) as pool:
            await require_schema(pool)
            client = Client(connection, STUDY, closed)

            async def ask(request: CycleRequest) -> RequestAnswer:
                return await client.ask(REQUEST_CYCLE, request, timeout_s=ASK_S)

            async def ended(_: object) -> None:
                studies.wake()

            sessions = sessions_of(settings)
            studies = Studies(pool, ask, sessions, settings)
            scores = Scores(pool, market_of(settings), sessions, settings)
            server = Server(connection, STUDY)
            if works:
                await server.serve(RUN_STUDY, studies.begin)
                await server.serve(STOP_STUDY, studies.stop)
            await server.serve(STUDIES, progress.StudyProgress(pool).answer)
            await server.serve(STUDY_CALLS, partial(progress.calls, pool))
            await server.serve(STUDY_SCORE, scores.score)
            await server.serve(STUDY_CELLS, scores.cells)
            await connection.subscribe(CYCLE_ENDS, cb=ended)
            await discoverable(connection, STUDY, server.endpoints)
            async with Background(*([studies.run()] if works else []), lost()) as background:
                with watched(connection, STUDY):
                    log.info("service.started", service=STUDY)
                    yield background
                await server.stop()
    finally:
        await connection.close()
        log.info("service.stopped", service=STUDY)
