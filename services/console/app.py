"""Wiring of the console."""

import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import partial

import polars as pl

from contracts.http import PriceBar
from contracts.subjects.accounts import ACCOUNT, EQUITY, LEADERBOARD, PERFORMANCE
from contracts.subjects.approvals import APPROVALS, DECISIONS
from contracts.subjects.cycles import CYCLE, CYCLES, RECORDING
from contracts.subjects.events import EVENTS_AFTER, EVENTS_SINCE
from contracts.subjects.halts import HALTS
from contracts.subjects.notices import NOTIFICATIONS
from contracts.subjects.operations import OPERATION, OPERATIONS, SENT
from contracts.subjects.reports import REPORT
from contracts.subjects.schedule import SCHEDULE
from contracts.subjects.strategies import STRATEGIES
from contracts.subjects.studies import STUDIES, STUDY_CALLS, STUDY_CELLS, STUDY_SCORE
from contracts.subjects.upkeep import BUDGET, DEAD_LETTERS, STORING
from libs.bus.client import open_client
from libs.bus.dead_letters import DeadLetters, open_dead_letters
from libs.bus.health import BusHealth, open_health
from libs.bus.permissions import CONSOLE
from libs.bus.route import Routes, on_query
from libs.market.calendar import exchange_calendar
from libs.market.errors import UNPRICED
from libs.market.source import MarketData, bars_until
from libs.market.sources import market_of, sessions_of
from libs.postgres.migrate import require_schema
from libs.postgres.pool import CONSOLE_ROLE, Pool, dsn_for, open_pool
from libs.runtime.background import Background
from libs.runtime.http_address import http_address
from libs.runtime.settings import Settings
from services.console import handler
from services.console.listed.cycles import CycleList
from services.console.listed.outcomes import Outcomes
from services.console.lists import Lists
from services.console.live.event_log import EventLog
from services.console.store import Store
from services.console.studies.score import Scores
from services.console.views import (
    accounts,
    benchmark,
    notifications,
    performance,
    report,
    schedule,
    sent,
    strategies,
    studies,
)
from services.console.views.board import leaderboard
from services.console.views.desk_metrics import watched
from services.console.views.past_cycles import PastCycles

CONNECTIONS_MAX = 5
"""One of them is the tail's while somebody follows it."""
SWITCH_CONNECTIONS_MAX = 1
"""Beside them: a page that reads for long never holds up a question about halts."""


class MarketHistory:
    """The market source's closes over time."""

    def __init__(self, market: MarketData) -> None:
        self._market = market

    @property
    def described(self) -> str:
        """The source's own words for itself."""
        return self._market.label.in_words

    async def bars(self, ticker: str, as_of: date, sessions: int) -> Sequence[PriceBar]:
        """The newest bars up to the session's close. Raises `MarketError`."""
        bars = await self._market.bars(ticker, as_of, sessions)
        return [PriceBar(session=row.pop("date"), **row) for row in bars.to_dicts()]

    async def frame(self, ticker: str, as_of: date, sessions: int) -> pl.DataFrame:
        """The newest bars up to the session's close (BAR_SCHEMA), of a share that traded no more
        those up to its last one. Raises `MarketError`."""
        return await bars_until(self._market, ticker, as_of, sessions)

    async def currency(self, ticker: str, as_of: date) -> str:
        """The currency that the ticker trades in. Raises `MarketError`."""
        (listing,) = await self._market.universe(as_of, (ticker,))
        return listing.currency

    async def closes(self, ticker: str, first: date, last: date) -> Mapping[date, Decimal]:
        """The closes from `first` to `last`, adjusted up to it; empty where the source has none.
        Raises `MarketError` where it could not say."""
        sessions = self._market.calendar.sessions(first, last)
        try:
            bars = await bars_until(self._market, ticker, last, len(sessions))
        except UNPRICED:
            return {}
        closes = zip(bars["date"].to_list(), bars["close"].to_list(), strict=True)
        return {day: Decimal(str(close)) for day, close in closes if day >= first}


def routes(
    pool: Pool,
    store: Store,
    cycles: CycleList,
    past: PastCycles,
    letters: DeadLetters,
    health: BusHealth,
    synthetic: bool,
    history: benchmark.History,
    scores: Scores,
    settings: Settings,
) -> Routes:
    """The console's routes."""
    now, calendar = partial(datetime.now, UTC), exchange_calendar()
    known = report.Known(store, letters, calendar, now)
    return Routes(
        service=CONSOLE,
        questions=(
            on_query(EVENTS_AFTER, handler.events_after, store=store),
            on_query(EVENTS_SINCE, handler.events_since, pool=pool, log=EventLog()),
            on_query(CYCLE, handler.cycle, store=store),
            on_query(CYCLES, cycles.page),
            on_query(OPERATIONS, handler.operations, store=store, lists=cycles.lists),
            on_query(OPERATION, handler.operation, store=store),
            on_query(SENT, sent.page, store=store),
            on_query(RECORDING, handler.recording, store=store),
            on_query(STRATEGIES, strategies.strategies, store=store),
            on_query(APPROVALS, handler.approvals, store=store),
            on_query(DECISIONS, handler.decisions, store=store),
            on_query(BUDGET, handler.budget, store=store, settings=settings, now=now),
            on_query(LEADERBOARD, leaderboard.board, past=past, store=store, history=history),
            on_query(
                PERFORMANCE,
                performance.performance,
                store=store,
                past=past,
                history=history,
                settings=settings,
            ),
            on_query(
                SCHEDULE,
                schedule.schedule,
                store=store,
                settings=settings,
                calendar=calendar,
                now=now,
            ),
            on_query(NOTIFICATIONS, notifications.notifications, store=store, settings=settings),
            on_query(STUDIES, studies.Studies(pool).of),
            on_query(STUDY_CALLS, studies.calls, pool=pool),
            on_query(STUDY_SCORE, scores.score),
            on_query(STUDY_CELLS, scores.cells),
            on_query(REPORT, report.report, known=known),
            on_query(DEAD_LETTERS, handler.dead_letters, letters=letters),
            on_query(HALTS, handler.halts, store=store),
            on_query(STORING, handler.storing, health=health, pool=pool),
            on_query(ACCOUNT, accounts.account, store=store, synthetic=synthetic),
            on_query(EQUITY, accounts.equity, store=store),
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
        market = market_of(settings)
        history, synthetic = MarketHistory(market), market.label.synthetic
        store = Store(pool)
        past = PastCycles(store)
        lists = Lists(pool)
        cycles = CycleList(lists, store, Outcomes(lists), settings)
        scores = Scores(pool, store, history, sessions_of(settings), settings)
        with watched(pool, letters, settings, partial(datetime.now, UTC)):
            async with _http(
                settings, pool, cycles, past, letters, health, synthetic, history, scores
            ):
                yield routes(
                    pool,
                    store,
                    cycles,
                    past,
                    letters,
                    health,
                    synthetic,
                    history,
                    scores,
                    settings,
                )


@asynccontextmanager
async def _http(
    settings: Settings,
    pool: Pool,
    cycles: CycleList,
    past: PastCycles,
    letters: DeadLetters,
    health: BusHealth,
    synthetic: bool,
    history: MarketHistory,
    scores: Scores,
) -> AsyncIterator[None]:
    """The HTTP API and the pages while the block runs, where they are on."""
    address = http_address(settings)
    if address is None:
        yield
        return
    from libs.web.monitoring import Watched  # noqa: PLC0415
    from libs.web.server import serving  # noqa: PLC0415 - the web's packages cost 0.6 s
    from libs.web.sessions import Sessions  # noqa: PLC0415
    from services.console.http.requests import DeskAccess, Requests  # noqa: PLC0415
    from services.console.live.tail import Tail  # noqa: PLC0415
    from services.console.pages.site import Site  # noqa: PLC0415

    sessions = None
    if address.token is not None:
        sessions = Sessions(address.token, address.port, settings.http_session_s, time.time)
    where, tail = settings.nats_address, Tail(pool, settings.tail_clients_max)
    dsn = dsn_for(settings.postgres_address, CONSOLE_ROLE, settings.secrets_path)
    async with (
        open_client(where, settings.secrets_path, CONSOLE) as client,
        _pool(dsn, SWITCH_CONNECTIONS_MAX, f"{CONSOLE}-halts") as halts,
        Background(tail.run()),
    ):
        desk = DeskAccess(
            store=Store(pool),
            halts=Store(halts),
            lists=cycles.lists,
            cycles=cycles,
            past=past,
            synthetic=synthetic,
            history=history,
            prices=history,
            pool=pool,
            studies=studies.Studies(pool),
            scores=scores,
            letters=letters,
            health=health,
            calendar=exchange_calendar(),
            requests=Requests(client),
            settings=settings,
            now=partial(datetime.now, UTC),
            tail=tail,
            sessions=sessions,
        )
        site = Site(desk)
        async with serving(Watched(site), address, door=site):
            try:
                yield
            finally:
                # The server waits for its answers, and these go on.
                tail.close()
                await scores.close()
