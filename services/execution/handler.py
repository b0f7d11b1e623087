"""Execution's three messages: open the books, execute decisions, show a portfolio.

Market reads come before the transaction, so that no lock waits for the market. What a locked
account turns out to need beyond them is read in another round.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from typing import TypeVar

import structlog

from contracts.account import AccountLimits, OpenBooks, Portfolio, PortfolioQuery
from contracts.execution import ExecuteDecisions, ExecutionResult
from libs.broker.broker import Broker, Opening
from libs.market.calendar import OutsideCalendar
from libs.market.errors import CryptoNotSupported, NoHistory, UnknownTicker
from libs.market.source import CorporateAction, FillPrices, MarketData, require_session
from libs.postgres.pool import Connection, Pool
from libs.runtime import ids
from libs.runtime.errors import DeskError
from libs.runtime.journal import Journal
from services.execution import approvals, books, logic, store
from services.execution.account import (
    AMOUNT_STEP,
    Account,
    Action,
    BooksNotOpen,
    ClosesBefore,
    Ids,
    Quotes,
    StaleQuotes,
    portfolio,
    require_clock,
    require_currency,
)
from services.execution.logic import Changes

BASE_CURRENCY = "USD"
APPROVAL_MOVE_PCT_MAX = Decimal(5)
"""How far a price may be from the approved one, in percent, unless the settings say otherwise."""
READS_MAX = 8
"""Rounds of market reads before the account counts as too busy, and the bus tries again later."""

log = structlog.get_logger()

T = TypeVar("T")

# The source knows that there is no such price. Anything else could not be answered: try again.
NO_PRICE = (NoHistory, UnknownTicker, CryptoNotSupported, OutsideCalendar)


class CommandChanged(DeskError):
    """The same operation came again with other decisions."""

    code = "command_changed"


class NoExchangeRate(DeskError):
    """A price in another currency than the account's."""

    code = "no_exchange_rate"


@dataclass(frozen=True)
class Trading:
    """What execution works with. `limits_of` gives an account's limits as the settings say."""

    pool: Pool
    market: MarketData
    fills: FillPrices
    broker: Broker
    starting_cash: Decimal
    approval_move_pct_max: Decimal = APPROVAL_MOVE_PCT_MAX
    limits_of: Callable[[str], AccountLimits] = lambda _: AccountLimits()


async def open_books(command: OpenBooks, _: Journal, *, trading: Trading) -> Portfolio:
    """Bring the account to as_of (made where missing) and say what it holds there.

    Raises NotASession, ClockBack, CurrencyMismatch, and NoPrice where a held ticker has no close.
    """
    require_session(trading.market.calendar, command.as_of)

    async def round_() -> Portfolio:
        account = await _glance(trading, command.pipeline.account, command.as_of)
        if account is not None:
            require_clock(account, command.as_of)
        quotes = await _quotes(trading, account, command.as_of)
        return await _open(command, quotes, trading)

    return await _until_read(round_, command.pipeline.account)


async def _open(command: OpenBooks, quotes: Quotes, trading: Trading) -> Portfolio:
    name, as_of = command.pipeline.account, command.as_of
    async with trading.pool.acquire() as db, db.transaction():
        account, made = await _locked_or_made(db, name, as_of, trading)
        require_currency(account, command.request.budgets.money)
        changes = logic.advance(account, as_of, quotes, trading.broker)
        if made:
            changes = changes.post(books.opening(trading.starting_cash, as_of))
        named = Ids(command.cycle_id, command.op_id, as_of)
        answer = portfolio(changes.account, named, quotes.closes, quotes.before)
        await store.write(db, changes)
    _tell(changes, made=made)
    return answer


async def _locked_or_made(
    db: Connection, name: str, as_of: date, trading: Trading
) -> tuple[Account, bool]:
    """The account under its lock, and whether it is a new one."""
    made = False
    account = await _locked(db, name, as_of, trading)
    if account is None:
        made = await store.open_account(
            db, name, BASE_CURRENCY, as_of, trading.starting_cash, trading.limits_of(name)
        )
        account = await _locked(db, name, as_of, trading)
    if account is None:
        raise RuntimeError(f"account {name} is missing after it was opened")
    return account, made


async def _locked(db: Connection, name: str, as_of: date, trading: Trading) -> Account | None:
    """The account under its lock, with the limits that the settings give it today."""
    since = _session_before(trading, as_of)
    account = await store.load(db, name, as_of, since=since, lock=True)
    if account is None or account.limits == trading.limits_of(name):
        return account
    account = replace(account, limits=trading.limits_of(name))
    await store.keep_limits(db, account)
    log.info("execution.limits_changed", account=name)
    return account


async def execute_decisions(
    command: ExecuteDecisions, _: Journal, *, trading: Trading
) -> ExecutionResult:
    """Execute once; the same command again gets the stored answer.

    Raises ProposalChanged, ApprovalTooOld, PriceDrifted, CommandChanged, BooksNotOpen, ClockBack,
    CurrencyMismatch and NoExchangeRate. Everything else propagates: the command is then sent again.
    """
    approvals.require_validated(command)
    command = approvals.require_approved(command)

    async def round_() -> ExecutionResult:
        async with trading.pool.acquire() as db:
            done = await store.find_execution(db, command.op_id)
        if done is not None:
            return _same(command, *done)
        account = await _glance(trading, command.pipeline.account, command.as_of)
        if account is None:
            raise BooksNotOpen(command.pipeline.account, command.as_of)
        require_clock(account, command.as_of)
        assets = {decision.asset for decision in command.decision_validation.decisions}
        quotes = await _quotes(trading, account, command.as_of, assets)
        return await _execute(command, quotes, trading)

    return await _until_read(round_, command.pipeline.account)


async def _execute(command: ExecuteDecisions, quotes: Quotes, trading: Trading) -> ExecutionResult:
    async with trading.pool.acquire() as db, db.transaction():
        account = await _locked(db, command.pipeline.account, command.as_of, trading)
        if account is None:
            raise BooksNotOpen(command.pipeline.account, command.as_of)
        done = await store.find_execution(db, command.op_id)
        if done is not None:
            return _same(command, *done)
        approvals.require_in_time(command, await store.now(db))
        approvals.require_near(command, quotes, trading.approval_move_pct_max)
        existing = await store.find_orders(db, logic.order_ids(command))
        result, changes = logic.execute(command, account, quotes, trading.broker, existing)
        await store.write(db, changes)
        await store.keep_execution(db, logic.command_sha256(command), result)
    _tell(changes, made=False)
    return result


def _same(command: ExecuteDecisions, sha256: str, result: ExecutionResult) -> ExecutionResult:
    if sha256 != logic.command_sha256(command):
        raise CommandChanged(
            f"operation {command.op_id} was executed with other decisions; what it did stands"
        )
    return result


async def show_portfolio(query: PortfolioQuery, *, trading: Trading) -> Portfolio:
    """The account as it stood at as_of's close, also where its clock is further on.

    Raises BooksNotOpen where there is no such account, NotASession, NoPrice.
    """
    require_session(trading.market.calendar, query.as_of)
    account = await _glance(trading, query.account, query.as_of)
    if account is None:
        raise BooksNotOpen(query.account, query.as_of)
    closes = await _closes(trading, account.held(query.as_of), query.as_of)
    named = Ids(query.cycle_id, ids.pipeline_id(query.cycle_id, query.pipeline), query.as_of)
    before = await _before(trading, account.touched, query.as_of)
    return portfolio(account, named, closes, before)


async def _until_read(round_: Callable[[], Awaitable[T]], account: str) -> T:
    for _ in range(READS_MAX):
        try:
            return await round_()
        except StaleQuotes:
            log.info("execution.read_again", account=account)
    raise RuntimeError(f"account {account} changed during each of {READS_MAX} market reads")


async def _glance(trading: Trading, account: str, as_of: date) -> Account | None:
    """The account as one snapshot, without its lock."""
    async with (
        trading.pool.acquire() as db,
        db.transaction(isolation="repeatable_read", readonly=True),
    ):
        return await store.load(db, account, as_of, since=_session_before(trading, as_of))


def _session_before(trading: Trading, as_of: date) -> date | None:
    try:
        return trading.market.calendar.previous_session(as_of)
    except OutsideCalendar:
        return None


async def _quotes(
    trading: Trading, account: Account | None, as_of: date, assets: Iterable[str] = ()
) -> Quotes:
    """All that the account's movement to as_of and orders in `assets` can need."""
    if account is None:
        return Quotes(closes=await _closes(trading, assets, as_of), since=None)
    keys = {order.key for order in account.working} | {(asset, as_of) for asset in assets}
    openings = {key: await _opening(trading, account.currency, *key) for key in sorted(keys)}
    actions = {}
    if account.clock < as_of:
        actions = {t: await _actions(trading, t, account.clock, as_of) for t in account.touched}
    return Quotes(
        closes=await _closes(trading, {*account.touched, *assets}, as_of),
        openings=openings,
        due={after: trading.market.calendar.next_session(after) for _, after in keys},
        actions=actions,
        since=account.clock,
        before=await _before(trading, account.touched, as_of),
    )


async def _before(trading: Trading, tickers: Iterable[str], as_of: date) -> ClosesBefore | None:
    session = _session_before(trading, as_of)
    if session is None:
        return None
    return ClosesBefore(session, await _closes(trading, tickers, session))


async def _closes(
    trading: Trading, tickers: Iterable[str], as_of: date
) -> Mapping[str, Decimal | None]:
    return {ticker: await _close(trading, ticker, as_of) for ticker in sorted(tickers)}


async def _close(trading: Trading, ticker: str, as_of: date) -> Decimal | None:
    try:
        bars = await trading.market.bars(ticker, as_of, 1)
    except NO_PRICE:
        return None
    return _exact(bars["close"][-1])


async def _opening(trading: Trading, currency: str, ticker: str, after: date) -> Opening | None:
    try:
        price = await trading.fills.next_open(ticker, after)
    except NO_PRICE:
        return None
    if price.currency != currency:
        raise NoExchangeRate(
            f"{ticker} trades in {price.currency}, the account is in {currency}, and there are no "
            f"exchange rates here: leave {ticker} out of the universe"
        )
    ratio = price.action.split_ratio if price.action is not None else Decimal(1)
    return Opening(price.session, _exact(price.open), ratio)


async def _actions(trading: Trading, ticker: str, after: date, through: date) -> list[Action]:
    try:
        found = await trading.fills.actions(ticker, after, through)
    except NO_PRICE:
        return []
    return [await _action(trading, action) for action in found]


async def _action(trading: Trading, action: CorporateAction) -> Action:
    open_price = Decimal(0)
    if action.split_ratio != 1:
        before = trading.market.calendar.previous_session(action.session)
        open_price = (await trading.fills.next_open(action.ticker, before)).open
    return Action(action.session, action.split_ratio, action.dividend_per_share, _exact(open_price))


def _exact(price: float | Decimal) -> Decimal:
    """A price with the places that contracts carry; a float by its shortest decimal."""
    return Decimal(str(price)).quantize(AMOUNT_STEP)


def _tell(changes: Changes, *, made: bool) -> None:
    account = changes.account.name
    if made:
        log.info("execution.account_opened", account=account)
    for order in (*changes.placed, *changes.ended):
        log.info(
            "execution.order",
            account=account,
            order_id=str(order.order_id),
            asset=order.ticker,
            side=order.side.value,
            quantity=f"{order.quantity:f}",
            status=order.status.value,
        )
