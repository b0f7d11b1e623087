"""Wiring of the console."""

import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime
from functools import partial

from contracts.subjects.accounts import (
    ACCOUNT,
    EQUITY,
    LEADERBOARD,
    LIMIT_PREVIEW,
    PERFORMANCE,
    RISK,
)
from contracts.subjects.approvals import APPROVALS, DECISIONS
from contracts.subjects.cycles import CYCLE, CYCLES, RECORDING
from contracts.subjects.events import EVENTS_AFTER, EVENTS_SINCE
from contracts.subjects.halts import HALTS
from contracts.subjects.notices import NOTIFICATIONS
from contracts.subjects.operations import OPERATION, OPERATIONS, SENT
from contracts.subjects.proposals import PROPOSAL, PROPOSAL_LIMITS
from contracts.subjects.reports import REPORT
from contracts.subjects.schedule import SCHEDULE
from contracts.subjects.strategies import STRATEGIES
from contracts.subjects.upkeep import BUDGET, DEAD_LETTERS, STORING
from libs.bus.client import open_client
from libs.bus.dead_letters import open_dead_letters
from libs.bus.desk_link import ProposerLinks
from libs.bus.health import open_health
from libs.bus.permissions import CONSOLE
from libs.bus.route import Routes, on_query, on_request
from libs.market.calendar import exchange_calendar
from libs.market.sources import market_of
from libs.postgres.migrate import require_schema
from libs.postgres.pool import CONSOLE_ROLE, Pool, dsn_for, open_pool
from libs.runtime.background import Background
from libs.runtime.http_address import OwnerToken, http_address
from libs.runtime.proposers import Proposers
from libs.runtime.settings import Settings
from services.console import handler, proposals
from services.console.listings.cycles import CycleList
from services.console.listings.outcomes import CycleOutcomes
from services.console.live.event_log import EventLog
from services.console.market_history import MarketHistory
from services.console.store import Store
from services.console.views import (
    accounts,
    notifications,
    performance,
    report,
    risk,
    schedule,
    sent,
    strategies,
)
from services.console.views.board import leaderboard
from services.console.views.desk import DeskViews
from services.console.views.desk_metrics import watched
from services.console.views.past_cycles import PastCycles

CONNECTIONS_MAX = 5
"""One of them is the tail's while somebody follows it."""
SWITCH_CONNECTIONS_MAX = 1
SESSION_S = 43_200.0
"""How long a browser that was given the token is let in without it."""
"""Beside them: a page that reads for long never holds up a question about halts."""


def routes(desk: DeskViews, cycles: CycleList) -> Routes:
    """The console's routes."""
    store, settings = desk.store, desk.settings
    return Routes(
        service=CONSOLE,
        questions=(
            on_query(EVENTS_AFTER, handler.events_after, store=store),
            on_query(EVENTS_SINCE, handler.events_since, pool=desk.pool, log=EventLog()),
            on_query(CYCLE, handler.cycle, store=store),
            on_query(CYCLES, cycles.page),
            on_query(OPERATIONS, handler.operations, store=store),
            on_query(OPERATION, handler.operation, store=store),
            on_query(SENT, sent.page, store=store),
            on_query(RECORDING, handler.recording, store=store),
            on_query(STRATEGIES, strategies.strategies, store=store),
            on_query(APPROVALS, handler.approvals, store=store),
            on_query(DECISIONS, handler.decisions, store=store),
            on_query(BUDGET, handler.budget, desk=desk),
            on_query(LEADERBOARD, leaderboard.board, desk=desk),
            on_query(PERFORMANCE, performance.performance, desk=desk),
            on_query(SCHEDULE, schedule.schedule, desk=desk),
            on_query(NOTIFICATIONS, notifications.notifications, store=store, settings=settings),
            on_query(REPORT, report.report, desk=desk),
            on_query(DEAD_LETTERS, handler.dead_letters, desk=desk),
            on_query(HALTS, handler.halts, store=store),
            on_query(STORING, handler.storing, health=desk.health, pool=desk.pool),
            on_query(ACCOUNT, accounts.account, desk=desk),
            on_query(EQUITY, accounts.equity, store=store),
            on_request(PROPOSAL, proposals.proposal, desk=desk),
            on_request(PROPOSAL_LIMITS, proposals.limits, desk=desk),
            on_query(RISK, risk.risk, desk=desk),
            on_query(LIMIT_PREVIEW, risk.limit_preview, desk=desk),
        ),
    )


def _pool(dsn: str, size_max: int, name: str) -> AbstractAsyncContextManager[Pool]:
    """Connections that only read and change nothing of their session: none has to be reset, which
    would take each query a second way to the server and back."""
    return open_pool(dsn, size_max=size_max, name=f"deskbus-{name}", transactions_only=True)


@asynccontextmanager
async def service(settings: Settings) -> AsyncIterator[Routes]:
    """The console with its adapters, as the settings say."""
    dsn = dsn_for(settings.postgres_address, CONSOLE_ROLE, settings.secrets_path)
    async with (
        _pool(dsn, CONNECTIONS_MAX, CONSOLE) as pool,
        open_dead_letters(settings.nats_address, CONSOLE, settings.secrets_path) as letters,
        open_health(settings.nats_address, CONSOLE, settings.secrets_path) as health,
    ):
        await require_schema(pool)
        market, store = market_of(settings), Store(pool)
        history, now = MarketHistory(market), partial(datetime.now, UTC)
        desk = DeskViews(
            pool=pool,
            store=store,
            past=PastCycles(store),
            letters=letters,
            health=health,
            history=history,
            synthetic=market.label.synthetic,
            calendar=exchange_calendar(),
            settings=settings,
            now=now,
        )
        cycles = CycleList(store, CycleOutcomes(store), settings)
        with watched(pool, letters, settings, now):
            async with _http(desk, cycles):
                yield routes(desk, cycles)


@asynccontextmanager
async def _http(desk: DeskViews, cycles: CycleList) -> AsyncIterator[None]:
    """The HTTP API and the pages while the block runs, where they are on."""
    settings = desk.settings
    address = http_address(settings)
    if address is None:
        yield
        return
    from libs.web.monitoring import Watched  # noqa: PLC0415
    from libs.web.proposer import ProposerTokens  # noqa: PLC0415
    from libs.web.server import serving  # noqa: PLC0415 - the web's packages cost 0.6 s
    from libs.web.sessions import LoginSessions  # noqa: PLC0415
    from services.console.http.proposals import PATHS  # noqa: PLC0415
    from services.console.http.requests import DeskAccess, Requests  # noqa: PLC0415
    from services.console.live.tail import Tail  # noqa: PLC0415
    from services.console.pages.site import Site  # noqa: PLC0415

    token = OwnerToken(settings)
    sessions = LoginSessions(token, address.port, SESSION_S, time.time)
    links = ProposerLinks(lambda: (settings.nats_address, settings.secrets_path))
    where, tail = settings.nats_address, Tail(desk.pool, settings.http.streams_max)
    dsn = dsn_for(settings.postgres_address, CONSOLE_ROLE, settings.secrets_path)
    async with (
        open_client(where, settings.secrets_path, CONSOLE) as client,
        _pool(dsn, SWITCH_CONNECTIONS_MAX, f"{CONSOLE}-halts") as halts,
        Background(tail.run()),
    ):
        access = DeskAccess(
            **vars(desk),
            cycles=cycles,
            halts=Store(halts),
            requests=Requests(client),
            proposers=links,
            tail=tail,
            sessions=sessions,
        )
        site = Site(access)
        tokens = ProposerTokens(Proposers(settings.secrets_path), PATHS)
        async with serving(Watched(site), address, door=site, proposers=tokens, token=token):
            try:
                yield
            finally:
                await links.close()
                # The server waits for its answers, and these go on.
                tail.close()
