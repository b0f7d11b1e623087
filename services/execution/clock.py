"""An account's clock moves on: splits, dividends, due fills, and a snapshot a session. Pure.

All market data is read before; where a locked account needs a quote that was not read,
`StaleQuotes` asks for another reading.
"""

from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal

from contracts.account import Side
from contracts.execution import OrderStatus
from libs.broker.broker import Answer, Broker, Filled, MarketOrder, Opening, Refused, Working
from libs.quant.exchange import purse
from libs.quant.risk_rules import HALTED, halt_words
from services.execution import books as ledger
from services.execution.account import (
    Account,
    Action,
    BookedOrder,
    CurrencyChanged,
    NoExchangeRate,
    Quotes,
    require_clock,
    session_before,
)
from services.execution.books import Entry
from services.execution.snapshots import Snapshot, StaleQuotes, snapshots

REASON_CHARS_MAX = 4_000


@dataclass(frozen=True)
class Changes:
    """What is to be written, and the account after it. `ended` are orders that no longer work."""

    account: Account
    placed: tuple[BookedOrder, ...] = ()
    ended: tuple[BookedOrder, ...] = ()
    entries: tuple[Entry, ...] = ()
    snapshots: tuple[Snapshot, ...] = ()

    def post(self, entry: Entry) -> "Changes":
        """With one more entry."""
        account = replace(self.account, books=self.account.books.posted(entry))
        return replace(self, account=account, entries=(*self.entries, entry))


def advance(
    account: Account, as_of: date, quotes: Quotes, broker: Broker, cash: Decimal | None = None
) -> Changes:
    """Bring the account to as_of's close: splits and dividends, then the fills that were due, and a
    snapshot of every session that has none yet.

    An order whose session has passed without an open in that ticker is cancelled: it was for that
    open. So is a buy that comes due while the account is halted. `cash` is what a new account
    begins with. Raises ClockBack, StaleQuotes and NoExchangeRate.
    """
    require_clock(account, as_of)
    steps = [*_action_steps(account, as_of, quotes), *_fill_steps(account, as_of, quotes)]
    changes = Changes(replace(account, clock=as_of))
    if cash is not None:
        changes = changes.post(ledger.opening(cash, as_of))
    for _, step in sorted(steps, key=lambda item: item[0]):
        if isinstance(step, BookedOrder):
            changes = _fill_working(changes, step, quotes, broker)
        else:
            changes = _apply_action(changes, *step)
    return _snapped(changes, as_of, quotes)


def _snapped(changes: Changes, as_of: date, quotes: Quotes) -> Changes:
    account = changes.account
    if account.snapped >= as_of:
        return changes
    if quotes.snapped > account.snapped:
        raise StaleQuotes
    missing = [session for session in quotes.sessions if session > account.snapped]
    taken = snapshots(account.books, missing, quotes.closes)
    before = [session_before(each, account) for each in taken if each.session < as_of]
    account = replace(account, snapped=as_of, before=before[-1] if before else account.before)
    return replace(changes, account=account, snapshots=taken)


_Step = tuple[tuple[date, int, str], "BookedOrder | tuple[str, Action]"]


def _action_steps(account: Account, as_of: date, quotes: Quotes) -> list[_Step]:
    if account.clock == as_of:
        return []
    if account.touched and (quotes.since is None or quotes.since > account.clock):
        raise StaleQuotes
    steps: list[_Step] = []
    for ticker in account.touched:
        if ticker not in quotes.actions:
            raise StaleQuotes
        steps += [
            ((action.session, 0, ticker), (ticker, action))
            for action in quotes.actions[ticker]
            if action.session > account.clock
        ]
    return steps


def _fill_steps(account: Account, as_of: date, quotes: Quotes) -> list[_Step]:
    steps: list[_Step] = []
    for order in account.working:
        if order.as_of not in quotes.due:
            raise StaleQuotes
        due = quotes.due[order.as_of]
        if due <= as_of:
            # Sales first: they make room for the day's buys.
            rank = 1 if order.side is Side.SELL else 2
            steps.append(((due, rank, order.ticker), order))
    return steps


def _apply_action(changes: Changes, ticker: str, action: Action) -> Changes:
    session, account = action.session, changes.account
    held = account.books.quantity_before(ticker, session) > 0
    if held and action.currency != account.currency and action.rate is None:
        raise NoExchangeRate(account.name, ticker, action.currency, account.currency, session)
    if held and _held_in(account, ticker) not in {None, action.currency}:
        raise CurrencyChanged(account.name, ticker, action.currency, session)
    if action.split_ratio != 1:
        opening = Opening(session, action.open_price, action.split_ratio, action.rate)
        changes = _split_once(changes, ticker, opening)
    books = changes.account.books
    shares = books.quantity_before(ticker, session, with_split=True)
    paid_before = books.has(ledger.dividend_key(ticker, session))
    if action.dividend_per_share > 0 and shares > 0 and not paid_before:
        per_share = action.dividend_per_share
        changes = changes.post(ledger.dividend(ticker, session, per_share, books, action.rate))
    return changes


def _split_once(changes: Changes, ticker: str, opening: Opening) -> Changes:
    books, session = changes.account.books, opening.session
    if books.has(ledger.split_key(ticker, session)) or not books.quantity_before(ticker, session):
        return changes
    return changes.post(
        ledger.split(ticker, session, opening.split_ratio, opening.price, books, opening.rate)
    )


def _fill_working(changes: Changes, order: BookedOrder, quotes: Quotes, broker: Broker) -> Changes:
    if order.key not in quotes.openings:
        raise StaleQuotes
    opening, halt = quotes.openings[order.key], changes.account.halt
    why = ""
    if opening is None:
        why = f"{order.ticker} did not open on {quotes.due[order.as_of]}, the session it was for"
    if halt is not None and order.side is Side.BUY:
        why = f"{HALTED}: {halt_words(halt)}"
    if why:
        ended = replace(order, status=OrderStatus.CANCELLED, reason=also(order.reason, why))
        return _with_ended(changes, ended)
    changes = _without(changes, order)  # its own hold is there for it
    ended, changes = try_fill(changes, order, opening, broker)
    return _with_ended(changes, ended)


def _without(changes: Changes, order: BookedOrder) -> Changes:
    rest = tuple(o for o in changes.account.orders if o.order_id != order.order_id)
    return replace(changes, account=replace(changes.account, orders=rest))


def _with_ended(changes: Changes, order: BookedOrder) -> Changes:
    changes = _without(changes, order)
    return replace(changes, ended=(*changes.ended, order))


def try_fill(
    changes: Changes, order: BookedOrder, opening: Opening | Refused | None, broker: Broker
) -> tuple[BookedOrder, Changes]:
    """Ask the broker; the order as it is then, and what was posted."""
    if isinstance(opening, Opening) and opening.split_ratio != 1:
        changes = _split_once(changes, order.ticker, opening)
    account = changes.account
    answer = _answer(account, order, opening, broker)
    if isinstance(answer, Filled):
        entry = ledger.filled(order.order_id, order.ticker, order.side, answer, account.books)
        done = replace(
            order,
            status=OrderStatus.FILLED,
            quantity=answer.quantity,
            reason=also(order.reason, answer.note),
            fill=answer,
        )
        return done, changes.post(entry)
    status = OrderStatus.WORKING if isinstance(answer, Working) else OrderStatus.REJECTED
    return replace(order, status=status, reason=also(order.reason, answer.reason)), changes


def _answer(
    account: Account, order: BookedOrder, opening: Opening | Refused | None, broker: Broker
) -> Answer:
    if isinstance(opening, Refused):
        return opening
    rate = None if opening is None else opening.rate
    held_in = _held_in(account, order.ticker)
    traded_in = account.currency if rate is None else rate.currency
    if opening is not None and held_in not in {None, traded_in}:
        why = f"it is held in {held_in} and trades in {traded_in} now: the books cannot mix them"
        return Refused(why)
    return broker.answer(
        MarketOrder(order.order_id, order.ticker, order.side, order.quantity),
        opening,
        cash=purse(account.cash_free, rate),
        held=account.books.quantity(order.ticker),
    )


def _held_in(account: Account, ticker: str) -> str | None:
    """The currency that a position stands in; None where nothing is held."""
    held = account.books.holdings.get(ticker)
    if held is None or held.quantity <= 0:
        return None
    return held.currency or account.currency


def also(reason: str, more: str) -> str:
    """Both reasons as one, within what an order keeps."""
    return "; ".join(part for part in (reason, more) if part)[:REASON_CHARS_MAX]
