"""Execution's messages: open the books, execute decisions, show what an account holds.

Market reads come before the transaction, so that no lock waits for the market. What a locked
account turns out to need beyond them is read in another round.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from typing import Generic, TypeVar

import structlog

from contracts.account import AccountLimits, OpenBooks, OrderStatus, Portfolio, PortfolioQuery
from contracts.execution import ExecuteDecisions, ExecutionResult
from contracts.exit_signal import ACCOUNTS_TOLD_MAX, Holdings, HoldingsQuery
from contracts.message import Command
from libs.broker.broker import Broker
from libs.market.source import require_session
from libs.postgres.pool import Pool, PoolConnection
from libs.quant.exchange import cents_in
from libs.runtime import ids
from libs.runtime.journal import Journal
from libs.runtime.nearest import UnknownAccount
from libs.telemetry import metrics
from services.execution import approvals, clock, logic, store
from services.execution import books as ledger
from services.execution.account import (
    Account,
    PortfolioIds,
    Quotes,
    holdings_now,
    open_orders_of,
    portfolio,
    positions_of,
    require_clock,
    require_currency,
)
from services.execution.changes import Changes
from services.execution.errors import AheadOfClock, BooksNotOpen, NoExchangeRate
from services.execution.exits import exits_at
from services.execution.reads import ExecutionReads
from services.execution.record import CommandRecord
from services.execution.snapshots import StaleQuotes
from services.execution.venue.desk import NoBroker, VenueDesk

CASH_CURRENCY = "USD"
"""What the starting cash is stated in, and the currency of accounts that name none."""
APPROVAL_MOVE_PCT_MAX = Decimal(5)
"""How far a price may be from the approved one, in percent, unless the settings say otherwise."""
ENDS = (OrderStatus.FILLED, OrderStatus.REJECTED, OrderStatus.CANCELLED)
READS_MAX = 8
"""Rounds of market reads before the account counts as too busy, and the bus tries again later."""

log = structlog.get_logger()

T = TypeVar("T")
C = TypeVar("C", bound=Command)


@dataclass(frozen=True)
class SentCommand(Generic[C]):
    """A command, and the SHA-256 of the bytes that it came in."""

    command: C
    sha256: str


@dataclass(frozen=True)
class Trading:
    """The parts that execution works with. `limits_of` and `currency_of` give an account's limits
    and the currency it is opened in, as the settings say; `starting_cash` is in US dollars.
    `venue_desk` is the side of a broker; None: no account is bound to one.
    """

    pool: Pool
    reads: ExecutionReads
    broker: Broker
    starting_cash: Decimal
    approval_move_pct_max: Decimal = APPROVAL_MOVE_PCT_MAX
    limits_of: Callable[[str], AccountLimits] = lambda _: AccountLimits()
    plugins: tuple[str, ...] = ()
    currency_of: Callable[[str], str] = lambda _: CASH_CURRENCY
    venue_desk: VenueDesk | None = None


async def open_books(command: OpenBooks, journal: Journal, *, trading: Trading) -> Portfolio:
    """Bring the account to as_of (made where missing) and say what it holds there.

    What has no price or exchange rate any more keeps its last known value. Raises NotOnRecord,
    OperationEnded, NotASession, ClockBack, CurrencyMismatch, NoPrice where the source has no prices
    of as_of at all, and NoExchangeRate where the starting cash of a new account has none.
    """
    sent = SentCommand(command, journal.command_sha256)

    async def round_() -> Portfolio:
        async with trading.pool.acquire() as db:
            (await store.on_record(db, command, sent.sha256)).require_open()
        require_session(trading.reads.calendar, command.as_of)
        await _require_ready(trading, command.pipeline.account, command.as_of)
        account = await _glance(trading, command.pipeline.account, command.as_of)
        if account is not None:
            require_clock(account, command.as_of)
        currency = _currency(trading, command.pipeline.account, account)
        quotes = await trading.reads.quotes(account, currency, command.as_of)
        return await _open(sent, quotes, trading)

    return await _until_read(round_, command.pipeline.account)


async def _open(sent: SentCommand[OpenBooks], quotes: Quotes, trading: Trading) -> Portfolio:
    command = sent.command
    name, as_of = command.pipeline.account, command.as_of
    async with trading.pool.acquire() as db, db.transaction():
        account = await _locked(db, name, as_of, trading)
        record = await store.on_record(db, command, sent.sha256)
        record.require_open()
        cash = None
        if account is None:
            account, cash = await _opened(db, name, as_of, quotes, trading)
        require_currency(account, record.bounds.budget)
        begins = () if cash is None else (ledger.opening(cash, as_of),)
        changes = clock.advance(account, as_of, quotes, trading.broker, begins)
        named = PortfolioIds(command.cycle_id, command.op_id, as_of)
        await store.write(db, changes)
        # As they are with what has just been filled.
        brought = await store.with_exits(db, changes.account, as_of)
        answer = portfolio(brought, named, quotes)
        unpriced = [position for position in answer.positions if position.priced_on is not None]
        if changes.snapshots:  # once a session, whatever asks for it again
            await store.tell_unpriced(db, command, unpriced)
    _tell(changes, is_new=cash is not None)
    for held in unpriced:
        log.warning(
            "execution.no_price",
            account=name,
            ticker=held.ticker,
            as_of=as_of.isoformat(),
            priced_on=str(held.priced_on),
        )
    return answer


async def _opened(
    db: PoolConnection, name: str, as_of: date, quotes: Quotes, trading: Trading
) -> tuple[Account, Decimal | None]:
    """A new account under its lock, and the cash that is to be posted to it; None where another
    execution has made it meanwhile.
    """
    currency, cash = trading.currency_of(name), trading.starting_cash
    if currency != CASH_CURRENCY:
        rate = quotes.rates.get(CASH_CURRENCY)
        if rate is None:
            what, pair = "its starting cash", (CASH_CURRENCY, currency)
            raise NoExchangeRate(name, what, *pair, as_of, quotes.no_rates)
        cash = cents_in(cash, rate)
    limits = trading.limits_of(name)
    is_new = await store.open_account(db, name, currency, as_of, cash, limits)
    account = await _locked(db, name, as_of, trading)
    if account is None:
        raise RuntimeError(f"account {name} is missing after it was opened")
    return account, cash if is_new else None


def _currency(trading: Trading, name: str, account: Account | None) -> str:
    return trading.currency_of(name) if account is None else account.currency


async def _locked(db: PoolConnection, name: str, as_of: date, trading: Trading) -> Account | None:
    """The account under its lock, with the limits that the settings give it today."""
    account = await store.load(db, name, as_of, lock=True)
    if account is not None and trading.venue_desk is not None:
        account = trading.venue_desk.with_window(account, as_of)
    if account is None or account.limits == trading.limits_of(name):
        return account
    account = replace(account, limits=trading.limits_of(name))
    await store.keep_limits(db, account)
    log.info("execution.limits_changed", account=name)
    return account


async def execute_decisions(
    command: ExecuteDecisions, journal: Journal, *, trading: Trading
) -> ExecutionResult:
    """Execute once; the same command again gets the stored answer.

    Raises NotOnRecord, OperationEnded, ProposalChanged, ApprovalTooOld, PriceDrifted, BooksNotOpen,
    ClockBack, CurrencyMismatch and NoPrice. Everything else propagates: the command is then sent
    again.
    """
    sha256 = journal.command_sha256

    async def round_() -> ExecutionResult:
        async with trading.pool.acquire() as db:
            record, done = await _done(db, command, sha256)
        if done is not None:
            return done
        approvals.require_validated(command)
        approved = approvals.require_approved(command, record.approval)
        await _require_ready(trading, command.pipeline.account, command.as_of)
        account = await _glance(trading, command.pipeline.account, command.as_of)
        if account is None:
            raise BooksNotOpen(command.pipeline.account, command.as_of)
        require_clock(account, command.as_of)
        validation = approved.decision_validation
        assets = {decision.asset for decision in validation.decisions}
        researched = {item.ticker for item in validation.evidence}
        quotes = await trading.reads.quotes(
            account, account.currency, command.as_of, assets, researched
        )
        near = quotes
        if approved.approval is not None and account.broker is None:
            near = await trading.reads.with_late_opens(quotes, account.currency)
        return await _execute(SentCommand(approved, sha256), quotes, near, trading)

    return await _until_read(round_, command.pipeline.account)


async def _execute(
    sent: SentCommand[ExecuteDecisions], quotes: Quotes, near: Quotes, trading: Trading
) -> ExecutionResult:
    """`near` are the quotes that an approved price is compared with."""
    command = sent.command
    async with trading.pool.acquire() as db, db.transaction():
        account = await _locked(db, command.pipeline.account, command.as_of, trading)
        if account is None:
            raise BooksNotOpen(command.pipeline.account, command.as_of)
        account = await store.with_exits(db, account, command.as_of)
        record, done = await _done(db, command, sent.sha256)
        if done is not None:
            return done
        approvals.require_in_time(command, await store.now(db))
        approvals.require_near(command, near, trading.approval_move_pct_max)
        existing = await store.find_orders(db, logic.order_ids(command))
        result, changes = logic.execute(
            command,
            replace(record.bounds, plugins=trading.plugins),
            account,
            quotes,
            trading.broker,
            existing,
        )
        await store.write(db, changes)
        await store.keep_execution(db, sent.sha256, result)
    _tell(changes, is_new=False)
    if trading.venue_desk is not None:
        trading.venue_desk.wake()
    return result


async def _require_ready(trading: Trading, account: str, as_of: date) -> None:
    """Raise unless an account that is bound to a broker may decide at as_of: NotLatest, NoBroker,
    BrokerUnknown."""
    if trading.venue_desk is None:
        async with trading.pool.acquire() as db:
            if await store.is_bound(db, account):
                raise NoBroker
        return
    bound = await trading.venue_desk.bound(account)
    if bound is not None:
        await trading.venue_desk.require_ready(bound, as_of)


async def _done(
    db: PoolConnection, command: ExecuteDecisions, sha256: str
) -> tuple[CommandRecord, ExecutionResult | None]:
    """The record of the command, and its stored answer where it was executed before."""
    record = await store.on_record(db, command, sha256)
    done = await store.find_execution(db, command.op_id)
    if done is None:
        record.require_open()
    return record, done


async def show_portfolio(query: PortfolioQuery, *, trading: Trading) -> Portfolio:
    """The account as it stood at as_of's close, also where its clock is further on.

    Raises BooksNotOpen where there is no such account, NotASession, NoPrice.
    """
    require_session(trading.reads.calendar, query.as_of)
    account = await _glance(trading, query.account, query.as_of)
    if account is None:
        raise BooksNotOpen(query.account, query.as_of)
    named = PortfolioIds(
        query.cycle_id, ids.pipeline_id(query.cycle_id, query.pipeline), query.as_of
    )
    return portfolio(account, named, await trading.reads.shown(account, query.as_of))


async def show_holdings(query: HoldingsQuery, *, trading: Trading) -> Holdings:
    """The account's holdings at as_of's close, and the orders that were open then; without an as_of
    what it holds now, as far as it has seen.

    Raises UnknownAccount, AheadOfClock, NotASession, NoPrice.
    """
    async with trading.pool.acquire() as db:
        clock_session = await store.clock_of(db, query.account)
        names = tuple(await store.account_names(db))
        if clock_session is None:
            raise UnknownAccount(query.account, names)
    as_of = query.as_of or clock_session
    require_session(trading.reads.calendar, as_of)
    if as_of > clock_session:
        raise AheadOfClock(query.account, clock_session, as_of)
    account = await _glance(trading, query.account, as_of)
    if account is None:
        raise RuntimeError(
            f"account {query.account} is missing, although accounts are never deleted"
        )
    quotes = await trading.reads.shown(account, as_of)
    listed = names if len(names) <= ACCOUNTS_TOLD_MAX else ()
    if query.as_of is None:
        now = holdings_now(account, as_of, quotes)
        return now.model_copy(update={"accounts": listed})
    return Holdings(
        account=account.name,
        as_of=as_of,
        positions=positions_of(account, as_of, quotes),
        open_orders=open_orders_of(account),
        exits=exits_at(account.acted, account.splits, as_of),
        accounts=listed,
        venue=account.broker.bound if account.broker else None,
    )


async def _until_read(round_: Callable[[], Awaitable[T]], account: str) -> T:
    for _ in range(READS_MAX):
        try:
            return await round_()
        except StaleQuotes:
            log.info("execution.read_again", account=account)
    raise RuntimeError(f"account {account} changed during each of {READS_MAX} market reads")


async def _glance(trading: Trading, account: str, as_of: date) -> Account | None:
    """The account as one snapshot with what exits acted on, without its lock."""
    async with (
        trading.pool.acquire() as db,
        db.transaction(isolation="repeatable_read", readonly=True),
    ):
        loaded = await store.load(db, account, as_of)
        return None if loaded is None else await store.with_exits(db, loaded, as_of)


def _tell(changes: Changes, *, is_new: bool) -> None:
    account = changes.account.name
    if is_new:
        log.info("execution.account_opened", account=account)
    for order in changes.placed:
        if order.status is not OrderStatus.REJECTED:
            metrics.ORDERS.add(order.side.value, "placed")
    for order in (*changes.placed, *changes.ended):
        if order.status in ENDS:
            metrics.ORDERS.add(order.side.value, order.status.value)
        log.info(
            "execution.order",
            account=account,
            order_id=str(order.order_id),
            asset=order.ticker,
            side=order.side.value,
            quantity=f"{order.quantity:f}",
            status=order.status.value,
        )
