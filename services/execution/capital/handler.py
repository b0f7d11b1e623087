"""The two requests of an account's owner: open it with holdings, and move cash. Who asks is the
identity that NATS lets publish there: the desk's own command line.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

import structlog

from contracts.audit import EventType
from contracts.capital import (
    CashEvent,
    CashMoved,
    HeldLine,
    HoldingsEvent,
    HoldingsImport,
    ImportFinding,
    ImportHoldings,
    MoveCash,
    OpeningPosition,
)
from contracts.types import Money
from libs.market.calendar import DayKind, ExchangeCalendar
from libs.market.errors import MarketError
from libs.market.rates import mark
from libs.market.sessions import LatestSession
from libs.market.source import require_session
from libs.postgres.pool import PoolConnection
from libs.quant.sizing import CENT
from libs.runtime.nearest import UnknownAccount
from services.execution import books, clock, store
from services.execution.account import Account
from services.execution.capital import holdings
from services.execution.changes import Changes
from services.execution.errors import (
    AccountExists,
    BoundToBroker,
    NotEnoughCash,
    TooLarge,
    require_as_shown,
)
from services.execution.handler import Trading
from services.execution.reads import NO_PRICE

log = structlog.get_logger()


@dataclass(frozen=True)
class _Judged:
    """A request to import with its market data, before anything is locked."""

    answer: HoldingsImport
    known: dict[str, holdings.HoldingQuote]


async def import_holdings(
    caller: str, request: ImportHoldings, *, trading: Trading, latest: LatestSession
) -> HoldingsImport:
    """Show what would be opened, or open it where `confirmed` is the hash of what was shown.

    Raises AccountExists, NotAsShown, NotASession, NoPrice where the source has no prices of as_of.
    """
    as_of = request.as_of or await latest()
    require_session(trading.reads.calendar, as_of)
    currency = trading.currency_of(request.account)
    digest = holdings.import_hash(request, as_of, currency)
    async with trading.pool.acquire() as db:
        stands = await store.has_entry(db, request.account, holdings.import_key(digest))
        if not stands and await store.clock_of(db, request.account) is not None:
            raise AccountExists(request.account)
    judged = await _judged(request, as_of, currency, digest, trading)
    if stands:
        return judged.answer.model_copy(update={"opened": True, "findings": ()})
    if judged.answer.findings or request.confirmed is None:
        return judged.answer
    require_as_shown(request.confirmed, digest)
    return await _opened(caller, request, judged, trading)


async def _opened(
    caller: str, request: ImportHoldings, judged: _Judged, trading: Trading
) -> HoldingsImport:
    name, answer = request.account, judged.answer
    currency, as_of = answer.cash.currency, answer.as_of
    quotes = await trading.reads.quotes(None, currency, as_of, set(judged.known))
    rates = {ticker: known.rate for ticker, known in judged.known.items()}
    opening = holdings.entries(answer, rates, quotes.sectors)
    limits = trading.limits_of(name)
    async with trading.pool.acquire() as db, db.transaction():
        if not await store.open_account(db, name, currency, as_of, request.cash, limits):
            raise AccountExists(name)
        account = await _locked(db, name, as_of)
        await store.write(db, clock.advance(account, as_of, quotes, trading.broker, opening))
        event = HoldingsEvent(
            account=name,
            as_of=as_of,
            cash=answer.cash,
            equity=answer.equity,
            positions=answer.positions,
            hash=answer.hash,
            by=caller,
        )
        kind, key = EventType.HOLDINGS_IMPORTED, holdings.import_key(answer.hash)
        await store.tell_capital(db, kind, key, event)
    log.info("execution.holdings_imported", account=name, positions=len(answer.positions))
    return answer.model_copy(update={"opened": True, "changed": True})


async def _judged(
    request: ImportHoldings, as_of: date, currency: str, digest: str, trading: Trading
) -> _Judged:
    findings = [*holdings.told_twice(request.holdings)]
    positions: list[OpeningPosition] = []
    known: dict[str, holdings.HoldingQuote] = {}
    for line in request.holdings:
        wrong = [*holdings.of_the_line(line, as_of), *_no_session(line, trading.reads.calendar)]
        seen, unknown = await _known(line, as_of, currency, trading, looked_at=not wrong)
        wrong += unknown
        if seen is not None:
            wrong += holdings.of_the_market(line, seen, currency)
            if not wrong:
                known[line.ticker] = seen
                positions.append(holdings.position(line, seen))
        findings += wrong
    cash = Money(amount=request.cash.quantize(CENT), currency=currency)
    findings += holdings.of_the_whole(cash, positions)
    worth = sum((position.value for position in positions), request.cash)
    answer = HoldingsImport(
        account=request.account,
        as_of=as_of,
        hash=digest,
        cash=cash,
        equity=Money(amount=worth.quantize(CENT), currency=currency),
        positions=tuple(sorted(positions, key=lambda position: position.ticker)),
        findings=tuple(sorted(findings, key=lambda finding: finding.line or 0)),
    )
    return _Judged(answer, known)


def _no_session(line: HeldLine, calendar: ExchangeCalendar) -> Sequence[ImportFinding]:
    """A day on which nothing could be bought."""
    kind = calendar.kind(line.opened_on)
    if kind is DayKind.SESSION:
        return ()
    why = f"{line.opened_on} is a {kind.value}, no session"
    if kind is DayKind.OUTSIDE:
        why = f"{line.opened_on} lies before or after the calendar, {calendar.first} to"
        why += f" {calendar.last}"
    else:
        why += f"; the one before is {calendar.previous_session(line.opened_on)}"
    return (ImportFinding(line=line.line, field="opened_on", message=why),)


async def _known(
    line: HeldLine, as_of: date, currency: str, trading: Trading, *, looked_at: bool
) -> tuple[holdings.HoldingQuote | None, Sequence[ImportFinding]]:
    """The market source's data of the line; where `looked_at`, also at the day that it was opened
    on.
    """
    reads, ticker = trading.reads, line.ticker
    field = "ticker"
    try:
        rates = await reads.rates.into(currency, reads.calendar.close(as_of))
        closed = await mark(reads.market, ticker, as_of, currency, rates)
        rate = None
        if looked_at:
            field = "opened_on"
            await reads.market.bars(ticker, line.opened_on, 1)
            then = await reads.rates.into(currency, reads.calendar.close(line.opened_on))
            rate = then.get(closed.currency)
    except NO_PRICE as error:
        return None, (_unpriced(line, field, error),)
    return holdings.HoldingQuote(closed, rate), ()


def _unpriced(line: HeldLine, field: str, error: MarketError) -> ImportFinding:
    text = error.message if field == "ticker" else f"no price of the day it was opened: {error}"
    return ImportFinding(line=line.line, field=field, message=text[:400])


async def move_cash(caller: str, request: MoveCash, *, trading: Trading) -> CashMoved:
    """Show what a deposit or withdrawal comes to, or post it where `confirmed` is the hash of what
    was shown. It counts from the session after the account's own on: that one's close is written.

    Raises UnknownAccount, BoundToBroker, NotEnoughCash, NotAsShown.
    """
    async with trading.pool.acquire() as db, db.transaction():
        if request.confirmed is not None:
            key = _key(request.confirmed)
            stands = await store.has_entry(db, request.account, key)
        else:
            stands = False
        clock_session = await store.clock_of(db, request.account)
        if clock_session is None:
            raise UnknownAccount(request.account, await store.account_names(db))
        account = await _locked(db, request.account, clock_session)
        if account.broker is not None:
            raise BoundToBroker(account.name)
        session = trading.reads.calendar.next_session(account.clock)
        if stands and request.confirmed is not None:
            return _moved(request, account, session, request.confirmed, account.cash_free)
        digest = _cash_hash(request, session, await store.count_cash_moved(db, account.name))
        answer = _moved(request, account, session, digest, _after(request, account))
        if request.confirmed is None:
            return answer.model_copy(update={"posted": False})
        require_as_shown(request.confirmed, digest)
        await _post(db, caller, account, answer)
    log.info("execution.cash_moved", account=request.account, kind=request.kind, by=caller)
    return answer.model_copy(update={"changed": True})


def _after(request: MoveCash, account: Account) -> Decimal:
    """The free cash after it. Raises NotEnoughCash, TooLarge."""
    free = account.cash_free
    if request.kind == "withdrawal" and request.amount > free:
        raise NotEnoughCash(account.name, request.amount, free, account.currency)
    after = free + _signed(request)
    if after > holdings.EQUITY_MAX:
        raise TooLarge(account.name, after, Decimal(holdings.EQUITY_MAX), account.currency)
    return after


def _signed(request: MoveCash) -> Decimal:
    return request.amount if request.kind == "deposit" else -request.amount


def _cash_hash(request: MoveCash, session: date, before: int) -> str:
    """The hash that a confirmation is bound to; `before` are the account's deposits and withdrawals
    so far, so that the same amount may be moved again, and the same confirmation moves it once.
    """
    terms = f"{request.account}/{request.kind}/{request.amount.normalize():f}/{session}/{before}"
    return hashlib.sha256(terms.encode()).hexdigest()


def _key(digest: str) -> str:
    return f"cash/{digest}"


def _moved(
    request: MoveCash, account: Account, session: date, digest: str, after: Decimal
) -> CashMoved:
    def money(amount: Decimal) -> Money:
        return Money(amount=amount.quantize(CENT), currency=account.currency)

    return CashMoved(
        account=account.name,
        kind=request.kind,
        amount=money(request.amount),
        session=session,
        hash=digest,
        posted=True,
        free_before=money(account.cash_free),
        free_after=money(after),
    )


async def _post(db: PoolConnection, caller: str, account: Account, answer: CashMoved) -> None:
    deposit = answer.kind == "deposit"
    amount = answer.amount.amount if deposit else -answer.amount.amount
    entry = books.cash_moved(amount, answer.session, _key(answer.hash))
    await store.write(db, Changes(account).post(entry))
    kind = EventType.CASH_DEPOSITED if deposit else EventType.CASH_WITHDRAWN
    event = CashEvent(account=account.name, amount=answer.amount, session=answer.session, by=caller)
    await store.tell_capital(db, kind, entry.key, event)


async def _locked(db: PoolConnection, name: str, as_of: date) -> Account:
    account = await store.load(db, name, as_of, lock=True)
    if account is None:
        raise RuntimeError(f"account {name} is missing, although accounts are never deleted")
    return account
