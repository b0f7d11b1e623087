"""Wiring of the execution service: the one process that may write to the ledger."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from contracts.subjects.accounts import IMPORT_HOLDINGS, MOVE_CASH, PORTFOLIO
from contracts.subjects.commands import EXECUTE_DECISIONS, OPEN_BOOKS
from contracts.subjects.exits import HOLDINGS
from contracts.subjects.halts import HALT, RESUME
from libs.broker.paper import PaperBroker
from libs.bus.route import Routes, on_command, on_query, on_request
from libs.market.exit_terms import DeskExitRules
from libs.market.sources import fills_of, latest_session_of, market_of, rates_of
from libs.postgres.migrate import require_schema
from libs.postgres.pool import EXECUTION_ROLE, dsn_for, open_pool
from libs.runtime.errors import DeskError
from libs.runtime.settings import Settings
from services.execution.capital.handler import LatestSession, import_holdings, move_cash
from services.execution.halt import halt_trading, resume_trading
from services.execution.handler import (
    Trading,
    execute_decisions,
    open_books,
    show_holdings,
    show_portfolio,
)
from services.execution.reads import ExecutionReads


class NoDatabase(DeskError):
    """Execution was started without an address of Postgres."""

    code = "no_database"


def routes(trading: Trading, latest: LatestSession) -> Routes:
    """The service's messages with their handlers."""
    return Routes(
        service="execution",
        commands=(
            on_command(OPEN_BOOKS, open_books, trading=trading),
            on_command(EXECUTE_DECISIONS, execute_decisions, trading=trading),
        ),
        questions=(
            on_query(PORTFOLIO, show_portfolio, trading=trading),
            on_query(HOLDINGS, show_holdings, trading=trading),
            on_request(HALT, halt_trading, pool=trading.pool),
            on_request(RESUME, resume_trading, pool=trading.pool),
            on_request(IMPORT_HOLDINGS, import_holdings, trading=trading, latest=latest),
            on_request(MOVE_CASH, move_cash, trading=trading),
        ),
    )


@asynccontextmanager
async def service(settings: Settings) -> AsyncIterator[Routes]:
    """The service, as the settings say."""
    async with trading_of(settings) as trading:
        yield routes(trading, latest_session_of(settings))


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
            currency_of=settings.currency_of,
        )
