"""An account's clock moves on: splits, dividends, due fills, stops, a snapshot a session. Pure.

All market data is read before; where a locked account needs a quote that was not read,
`StaleQuotes` asks for another reading.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from decimal import Decimal
from itertools import groupby

from contracts.account import OrderStatus, SessionBefore, Side
from contracts.types import ExchangeRate
from libs.broker.broker import (
    Answer,
    Broker,
    DayPrices,
    Filled,
    MarketOrder,
    Opening,
    OrderRefused,
    Working,
)
from libs.quant.exchange import purse
from libs.quant.risk.rules import HALTED, halt_words
from libs.quant.ticks import priced, quoted
from services.execution import books as ledger
from services.execution import stops
from services.execution.account import (
    Account,
    Action,
    BookedOrder,
    OpenFound,
    Quotes,
    require_clock,
    session_before,
)
from services.execution.changes import Changes, also
from services.execution.errors import CurrencyChanged
from services.execution.snapshots import (
    OpenStop,
    Snapshot,
    StaleQuotes,
    known_from,
    snapshots,
)


def advance(
    account: Account,
    as_of: date,
    quotes: Quotes,
    broker: Broker,
    opening: Sequence[ledger.LedgerEntry] = (),
) -> Changes:
    """Bring the account to as_of's close: of each session splits and dividends, then at its open
    the stop orders that were reached while nothing could be exchanged and the fills that were due,
    then the stop orders that its prices reached; and a snapshot of every session that has none yet.

    An order whose session has passed without an open in that ticker is cancelled: it was for that
    open. So is a buy that comes due while the account is halted, or while its currency has no rate;
    a sale waits for a rate then. `opening` is what a new account begins with. Raises ClockBack and
    StaleQuotes.

    Of an account that is bound to a broker nothing is simulated: fills, dividends and splits are
    booked from there. A stop that was reached is sold at the next open.
    """
    require_clock(account, as_of)
    if account.broker is not None:
        return _advance_at_broker(account, as_of, quotes, opening)
    steps = [
        *_action_steps(account, as_of, quotes),
        *_fill_steps(account, as_of, quotes),
        *_stop_steps(account, quotes),
    ]
    changes = Changes(replace(account, clock=as_of))
    for entry in opening:
        changes = changes.post(entry)
    waiting = [(date.min, stops.open_stops(changes.account))]
    ordered = sorted(steps, key=lambda item: item[0])
    for session, due in groupby(ordered, key=lambda item: item[0][0]):
        for _, step in due:
            changes = _stepped(changes, step, quotes, broker)
        waiting.append((session, stops.open_stops(changes.account)))
    return _snapped(changes, as_of, quotes, waiting)


def _advance_at_broker(
    account: Account, as_of: date, quotes: Quotes, opening: Sequence[ledger.LedgerEntry]
) -> Changes:
    changes = Changes(replace(account, clock=as_of))
    for entry in opening:
        changes = changes.post(entry)
    waiting = stops.open_stops(changes.account)
    for (session, _, ticker), _what in _stop_steps(account, quotes):
        changes = _reach_at_broker(changes, ticker, session, quotes)
    if as_of > account.clock:
        for ticker in sorted({stop.ticker for stop in changes.account.stops}):
            changes = stops.sell_reached(changes, ticker, as_of)
    return _snapped(changes, as_of, quotes, [(date.min, waiting)])


def _as_known(snapshot: Snapshot, quotes: Quotes) -> Snapshot:
    """Without a worth where a file of something held cannot be read: nobody can say it."""
    unreadable = tuple(
        ticker
        for ticker, valued in snapshot.closes.items()
        if ticker in quotes.unreadable and valued.priced_on is not None
    )
    if not unreadable:
        return snapshot
    unpriced = tuple(sorted({*snapshot.unpriced, *unreadable}))
    return replace(snapshot, worth=None, unpriced=unpriced)


def _snapped(
    changes: Changes,
    as_of: date,
    quotes: Quotes,
    waiting: Sequence[tuple[date, tuple[OpenStop, ...]]],
) -> Changes:
    """With a snapshot of every session that has none; `waiting` are the stops that were open from
    each session's close on."""
    account = changes.account
    if account.snapped >= as_of:
        return changes
    if quotes.snapped > account.snapped:
        raise StaleQuotes
    missing = [session for session in quotes.sessions if session > account.snapped]
    taken = tuple(
        replace(
            _as_known(snapshot, quotes),
            stops=next(s for since, s in reversed(waiting) if since <= snapshot.session),
        )
        for snapshot in snapshots(
            account.books, missing, quotes.closes, account.known, account.currency
        )
    )
    before = [snapshot for snapshot in taken if snapshot.session < as_of]
    account = replace(
        account,
        snapped=as_of,
        before=_before(before[-1], account, as_of) if before else account.before,
        known=known_from(taken[-1].closes, taken[-1].session) if taken else account.known,
    )
    return replace(changes, account=account, snapshots=taken)


def _before(snapshot: Snapshot, account: Account, as_of: date) -> SessionBefore:
    paid_in = account.books.as_of(as_of).paid_in - snapshot.paid_in
    return session_before(snapshot.session, snapshot.equity, paid_in, account)


_What = BookedOrder | tuple[str, Action] | tuple[str, DayPrices] | tuple[str, date]
_Step = tuple[tuple[date, int, str], _What]


def _stepped(changes: Changes, what: _What, quotes: Quotes, broker: Broker) -> Changes:
    match what:
        case BookedOrder():
            # As it is by now: a split may have changed it.
            now = (o for o in changes.account.working if o.order_id == what.order_id)
            order = next(now, None)
            return _fill_working(changes, order, quotes, broker) if order else changes
        case (str(ticker), Action() as action):
            return _apply_action(changes, ticker, action, quotes)
        case (str(ticker), DayPrices() as day):
            return _pass_missed(changes, ticker, day, broker)
        case (str(ticker), date() as session):
            return _pass_stop(changes, ticker, session, quotes, broker)


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
        due, opening = quotes.due[order.as_of], quotes.openings.get(order.key)
        if isinstance(opening, Opening) and order.side is Side.SELL:
            due = opening.session
        if due <= as_of:
            # Sales first: they make room for the day's buys.
            rank = 2 if order.side is Side.SELL else 3
            steps.append(((due, rank, order.ticker), order))
    return steps


def _stop_steps(account: Account, quotes: Quotes) -> list[_Step]:
    """At a session's open: those that were missed before it may have reached a stop order, but none
    that is placed at that open. After it: its own prices may, also one placed at that open."""
    steps: list[_Step] = []
    for ticker in account.guarded:
        for session in quotes.sessions:
            if session <= account.clock:
                continue
            day = quotes.days.get((ticker, session))
            if day is not None and day.missed:
                steps.append(((session, 1, ticker), (ticker, day)))
            steps.append(((session, 4, ticker), (ticker, session)))
    return steps


def _reach_at_broker(changes: Changes, ticker: str, session: date, quotes: Quotes) -> Changes:
    """Mark a stop order that a session's prices came down to. Nothing of it is filled here."""
    stop = stops.stop_of(changes.account, ticker)
    if stop is None:
        return changes
    if (ticker, session) not in quotes.days:
        raise StaleQuotes
    day = quotes.days[ticker, session]
    if day is None or stop.stop_price is None or day.low > stop.stop_price:
        return changes
    return stops.reached(changes, stop, session)


def _pass_missed(changes: Changes, ticker: str, day: DayPrices, broker: Broker) -> Changes:
    if _mixed(changes.account, ticker, day.rate):
        return changes
    return stops.trigger_late(changes, ticker, day, broker)


def _pass_stop(
    changes: Changes, ticker: str, session: date, quotes: Quotes, broker: Broker
) -> Changes:
    if stops.stop_of(changes.account, ticker) is None:
        return changes
    if (ticker, session) not in quotes.days:
        raise StaleQuotes
    day = quotes.days[ticker, session]
    if day is not None and _mixed(changes.account, ticker, day.rate):
        return changes  # the books cannot take it; what is held fails as such
    return stops.trigger(changes, ticker, day, broker)


def _apply_action(changes: Changes, ticker: str, action: Action, quotes: Quotes) -> Changes:
    session, account = action.session, changes.account
    held = account.books.quantity_before(ticker, session) > 0
    if held and account.held_in(ticker) not in {None, action.currency}:
        raise CurrencyChanged(account.name, ticker, action.currency, session)
    if action.split_ratio != 1:
        opening = Opening(session, action.open_price, action.split_ratio, action.rate)
        changes = _split_once(changes, ticker, opening)
        changes = _split_waiting(changes, ticker, action, quotes)
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
    entry = ledger.split(ticker, session, opening.split_ratio, opening.price, books, opening.rate)
    return stops.after_split(changes.post(entry), ticker, opening.split_ratio)


def _split_waiting(changes: Changes, ticker: str, action: Action, quotes: Quotes) -> Changes:
    """The sales of a ticker that wait since before a split, in new shares. The broker counts with
    the split of the open that an order is filled at."""
    for order in changes.account.working:
        if order.ticker != ticker or order.as_of >= action.session:
            continue
        opening, ratio = quotes.openings.get(order.key), action.split_ratio
        if isinstance(opening, Opening) and opening.session == action.session:
            ratio /= opening.split_ratio
        if ratio != 1:
            changes = stops.in_new_shares(changes, order, ratio)
    return changes


def _fill_working(changes: Changes, order: BookedOrder, quotes: Quotes, broker: Broker) -> Changes:
    if order.key not in quotes.openings:
        raise StaleQuotes
    opening, halt = quotes.openings[order.key], changes.account.halt
    why = ""
    if opening is None:
        why = f"{order.ticker} did not open on {quotes.due[order.as_of]}, the session it was for"
    if isinstance(opening, Working):
        if order.side is Side.SELL:
            return changes
        why = opening.reason
    if (
        isinstance(opening, Opening)
        and order.side is Side.BUY
        and opening.session != quotes.due[order.as_of]
    ):
        why = f"its currency had no rate at the open of {quotes.due[order.as_of]}, which it was for"
    if halt is not None and order.side is Side.BUY:
        why = f"{HALTED}: {halt_words(halt)}"
    if why:
        return changes.end(
            replace(order, status=OrderStatus.CANCELLED, reason=also(order.reason, why))
        )
    changes = changes.without(order)  # its own hold is there for it
    ended, changes = try_fill(changes, order, opening, broker)
    changes = changes.entered(ended)
    return stops.after_fill(changes.end(ended), ended, ratio_of(opening))


def try_fill(
    changes: Changes,
    order: BookedOrder,
    opening: OpenFound,
    broker: Broker,
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
    account: Account,
    order: BookedOrder,
    opening: OpenFound,
    broker: Broker,
) -> Answer:
    if isinstance(opening, OrderRefused | Working):
        return opening
    rate = None if opening is None else opening.rate
    currency = account.currency if rate is None else rate.currency
    if opening is not None and (why := _mixed(account, order.ticker, rate)):
        return OrderRefused(why)
    if opening is not None and (why := _proved_wrong(order, opening, currency)):
        return OrderRefused(why)
    return broker.answer(
        MarketOrder(order.order_id, order.ticker, order.side, order.quantity, currency),
        opening,
        cash=purse(account.cash_free, rate),
        held=account.books.quantity(order.ticker),
    )


def _proved_wrong(order: BookedOrder, opening: Opening, currency: str) -> str:
    """Why a buy is wrong before it is filled; empty where it is not."""
    if order.side is not Side.BUY or order.stop_price is None:
        return ""
    stop = order.stop_price / opening.split_ratio
    if opening.price > stop:
        return ""
    opened, at = quoted(priced(opening.price, currency)), quoted(priced(stop, currency))
    return (
        f"{order.ticker} opened on {opening.session} at {opened}, not above its stop at {at}: "
        "what would prove it wrong was there"
    )


def _mixed(account: Account, ticker: str, rate: ExchangeRate | None) -> str:
    """Why a trade would stand in another currency than the position; empty where it does not."""
    held_in = account.held_in(ticker)
    traded_in = account.currency if rate is None else rate.currency
    if held_in in {None, traded_in}:
        return ""
    return f"it is held in {held_in} and trades in {traded_in} now: the books cannot mix them"


def ratio_of(opening: OpenFound) -> Decimal:
    """The split at an open; 1 where there is none."""
    return opening.split_ratio if isinstance(opening, Opening) else Decimal(1)
