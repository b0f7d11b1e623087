"""Wiring of the execution service: the one process that may write to the ledger."""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from contracts.subjects.accounts import IMPORT_HOLDINGS, MOVE_CASH, PORTFOLIO, SET_LIMIT
from contracts.subjects.commands import EXECUTE_DECISIONS, OPEN_BOOKS
from contracts.subjects.exits import HOLDINGS
from contracts.subjects.halts import HALT, RESUME
from contracts.subjects.venue import BIND, CANCEL_ORDER, RECONCILE, VENUE, VENUE_ORDERS
from libs.broker.alpaca import AlpacaPaper
from libs.broker.paper import PaperBroker
from libs.bus.route import Routes, on_command, on_query, on_request
from libs.market.calendar import exchange_calendar
from libs.market.choice import SourceName, source_of
from libs.market.exit_terms import DeskExitRules
from libs.market.sessions import LatestSession
from libs.market.slots import slots
from libs.market.sources import fills_of, latest_session_of, market_of, rates_of
from libs.postgres.migrate import require_schema
from libs.postgres.pool import EXECUTION_ROLE, dsn_for, open_pool
from libs.runtime.background import Background
from libs.runtime.errors import DeskError
from libs.runtime.key_pair import KeyPair, KeyPairUnusable, key_pair_in
from libs.runtime.schedule_settings import Job
from libs.runtime.settings import Settings
from services.execution.capital.handler import import_holdings, move_cash
from services.execution.halt import halt_trading, resume_trading
from services.execution.handler import (
    Trading,
    execute_decisions,
    open_books,
    show_holdings,
    show_portfolio,
)
from services.execution.limits import set_limit
from services.execution.reads import ExecutionReads
from services.execution.venue.binding import Terms, bind_account, reconcile_account
from services.execution.venue.desk import VenueDesk
from services.execution.venue.handler import cancel_order, show_orders, show_standing
from services.execution.venue.looks import Looker
from services.execution.venue.sender import OrderSender

WATCHING = frozenset({"decision", "exit", "snapshot", "report"})
"""Kinds of scheduled jobs that bring an account to a session, and so see its stops."""
DAYS_WATCHED = timedelta(days=28)
"""A job is daily where each session of so many days had a slot of it."""


TRADING_KEY_SETTING = "DESKBUS_ALPACA_TRADING_KEY_FILE"
DATA_KEY_SETTING = "DESKBUS_ALPACA_DATA_KEY_FILE"
APART = ("execution", "__main__.py")
"""What was started, where execution has a process of its own."""


class NoDatabase(DeskError):
    """Execution was started without an address of Postgres."""

    code = "no_database"


def routes(trading: Trading, latest: LatestSession, desk: VenueDesk) -> Routes:
    """The service's messages with their handlers."""
    terms = Terms(desk, latest, trading.limits_of, trading.currency_of)
    return Routes(
        service="execution",
        commands=(
            on_command(OPEN_BOOKS, open_books, trading=trading),
            on_command(EXECUTE_DECISIONS, execute_decisions, trading=trading),
        ),
        questions=(
            on_query(PORTFOLIO, show_portfolio, trading=trading),
            on_query(HOLDINGS, show_holdings, trading=trading),
            on_request(HALT, halt_trading, pool=trading.pool, venue_desk=desk),
            on_request(RESUME, resume_trading, pool=trading.pool),
            on_request(IMPORT_HOLDINGS, import_holdings, trading=trading, latest=latest),
            on_request(MOVE_CASH, move_cash, trading=trading),
            on_request(SET_LIMIT, set_limit, pool=trading.pool),
            on_request(BIND, bind_account, terms=terms),
            on_request(RECONCILE, reconcile_account, desk=desk),
            on_request(CANCEL_ORDER, cancel_order, desk=desk),
            on_query(VENUE_ORDERS, show_orders, desk=desk),
            on_query(VENUE, show_standing, desk=desk),
        ),
    )


@asynccontextmanager
async def service(settings: Settings) -> AsyncIterator[Routes]:
    """The service, as the settings say."""
    async with (
        trading_of(settings) as trading,
        _venue_of(settings, trading) as desk,
        Background(*([desk.sender.run()] if desk.sender else [])),
    ):
        latest = latest_session_of(settings)
        yield routes(replace(trading, venue_desk=desk), latest, desk)


@asynccontextmanager
async def _venue_of(settings: Settings, trading: Trading) -> AsyncIterator[VenueDesk]:
    """The broker's side, as the settings say. Raises KeyPairUnusable."""
    pool, reads = trading.pool, trading.reads
    desk = VenueDesk(
        pool=pool,
        reads=reads,
        clock=_now,
        is_live=source_of(settings) is not SourceName.REPLAY,
        watched_by=partial(watched_by, settings),
    )
    if settings.alpaca.trading_key_file is None:
        yield desk
        return
    key = key_pair_in(settings.alpaca.trading_key_file, TRADING_KEY_SETTING)
    venue = AlpacaPaper(key, settings.alpaca.trading_url)
    looker = Looker(pool, venue, reads, _now)
    desk.venue, desk.looker = venue, looker
    desk.sender = OrderSender(pool, venue, looker, _now)
    desk.shares_key = _is_of(settings.alpaca.data_key_file, key)
    desk.is_apart = Path(sys.argv[0]).parts[-2:] == APART
    try:
        yield desk
    finally:
        await venue.close()


def _is_of(file: Path | None, key: KeyPair) -> bool:
    """Whether a file holds this very key; one that cannot be read does not, as far as is known."""
    if file is None:
        return False
    try:
        return key_pair_in(file, DATA_KEY_SETTING).key_id == key.key_id
    except KeyPairUnusable:
        return False


def _now() -> datetime:
    return datetime.now(UTC)


def watched_by(settings: Settings, account: str) -> str:
    """The first job that looks at an account's stops at each session; empty where none does."""
    jobs = settings.schedule.jobs if settings.schedule.clock == "wall" else {}
    own = ((name, job) for name, job in jobs.items() if account in job.accounts)
    return next((name for name, job in own if job.kind in WATCHING and _is_daily(job)), "")


def _is_daily(job: Job) -> bool:
    calendar, until = exchange_calendar(), _now()
    since = until - DAYS_WATCHED
    seen = {slot.session for slot in slots(job.moments, calendar, since, until)}
    return seen.issuperset(calendar.sessions(since.date(), until.date())[1:-1])


@asynccontextmanager
async def trading_of(settings: Settings) -> AsyncIterator[Trading]:
    """Pool, prices and broker, as the settings say. Raises NoDatabase."""
    if settings.postgres.dsn is None:
        raise NoDatabase(
            "execution needs Postgres: set DESKBUS_POSTGRES_DSN, or start it through `deskbus up`"
        )
    dsn = dsn_for(settings.postgres.dsn.get_secret_value(), EXECUTION_ROLE, settings.secrets_path)
    name = "deskbus-execution"
    async with open_pool(dsn, name=name, transactions_only=True, writes=True) as pool:
        await require_schema(pool)
        yield Trading(
            pool=pool,
            reads=ExecutionReads(
                market_of(settings),
                fills_of(settings),
                rates_of(settings),
                DeskExitRules(settings.exit_rules_file),
            ),
            broker=PaperBroker(
                settings.broker.fee_bps,
                settings.broker.slippage_bps,
                settings.broker.volume_pct_max,
            ),
            starting_cash=settings.broker.starting_cash_usd,
            approval_move_pct_max=settings.approval.move_pct_max,
            limits_of=settings.limits_of,
            plugins=settings.plugins,
            currency_of=settings.currency_of,
        )
