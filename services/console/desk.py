"""The console's access to the desk: its tables, its bus and its market source, and the questions
that several ways in ask."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal

import polars as pl

from contracts.account_query import AccountQuery, AccountView
from contracts.http import PriceBar
from contracts.leaderboard import LeaderboardQuery, LeaderboardView
from contracts.operation import OperationsPage, OperationsQuery
from contracts.performance import PerformanceQuery, PerformanceView
from contracts.report import ReportQuery, ReportView
from contracts.schedule import ScheduleQuery, ScheduleView
from contracts.upkeep import BudgetQuery, BudgetView, DeadLettersPage, DeadLettersQuery
from libs.bus.dead_letters import DeadLetters
from libs.bus.health import BusHealth
from libs.market.calendar import ExchangeCalendar
from libs.market.errors import UNPRICED
from libs.market.source import MarketData, bars_until
from libs.postgres.pool import Pool
from libs.runtime.settings import Settings
from services.console import handler
from services.console.listings.cycles import CycleList
from services.console.store import Store
from services.console.views import accounts, performance, report, schedule
from services.console.views.board import leaderboard
from services.console.views.past_cycles import PastCycles


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


@dataclass(frozen=True)
class DeskViews:
    """Everything that answers are read from. `synthetic` says that the market source's prices are
    made up."""

    pool: Pool
    store: Store
    cycles: CycleList
    past: PastCycles
    letters: DeadLetters
    health: BusHealth
    history: MarketHistory
    synthetic: bool
    calendar: ExchangeCalendar
    settings: Settings
    now: Callable[[], datetime]

    async def operations(self, query: OperationsQuery) -> OperationsPage:
        """A cycle's tree, or the newest operations and cycles."""
        return await handler.operations(query, store=self.store)

    async def account(self, query: AccountQuery) -> AccountView:
        """One account with the names of all."""
        return await accounts.account(query, store=self.store, synthetic=self.synthetic)

    async def performance(self, query: PerformanceQuery) -> PerformanceView:
        """How an account did."""
        return await performance.performance(
            query,
            store=self.store,
            past=self.past,
            history=self.history,
            settings=self.settings,
        )

    async def leaderboard(self, query: LeaderboardQuery) -> LeaderboardView:
        """How pipelines and accounts did."""
        return await leaderboard.board(
            query, past=self.past, store=self.store, history=self.history
        )

    async def report(self, query: ReportQuery) -> ReportView:
        """A session's report."""
        known = report.ReportSources(self.store, self.letters, self.calendar, self.now)
        return await report.report(query, known=known)

    async def schedule(self, query: ScheduleQuery) -> ScheduleView:
        """The jobs."""
        return await schedule.schedule(
            query,
            store=self.store,
            settings=self.settings,
            calendar=self.calendar,
            now=self.now,
        )

    async def budget(self, query: BudgetQuery) -> BudgetView:
        """The rest of today's model budget, and the use of the last days."""
        return await handler.budget(query, store=self.store, settings=self.settings, now=self.now)

    async def dead_letters(self, query: DeadLettersQuery) -> DeadLettersPage:
        """The newest dead letters, or one with its body."""
        return await handler.dead_letters(query, letters=self.letters)
