"""What happened at a broker, as entries of the desk's books. Pure.

Nothing here refuses: a fill that the broker made is true. What is odd about it is an alarm.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from uuid import UUID

from contracts.account import OrderStatus
from contracts.types import shortened
from contracts.venue import Difference, DifferenceKind, VenueState
from libs.broker.broker import Filled
from libs.broker.venue import MoveCause, VenueFill, VenueMove
from libs.market.calendar import ExchangeCalendar
from libs.market.source import CorporateAction
from libs.quant.sizing import CENT, after_split, kept_shares
from services.execution import books as ledger
from services.execution import stops
from services.execution.account import Account, BookedOrder
from services.execution.books import Book, Books, EntryKind
from services.execution.changes import REASON_CHARS_MAX, Changes, also
from services.execution.venue.logic import REJECTED, VenueRow, session_of

_ZERO = Decimal(0)
_BOOKS = {
    MoveCause.DIVIDEND: (EntryKind.DIVIDEND, Book.DIVIDENDS),
    MoveCause.FEE: (EntryKind.ADJUSTMENT, Book.FEES),
    MoveCause.INTEREST: (EntryKind.ADJUSTMENT, Book.REALISED),
}
"""What is booked of what was no trade. A transfer is the owner's: a deposit or a withdrawal. What
is left, splits among it, is for a person, as both books then differ."""


@dataclass(frozen=True)
class Booked:
    """What is to be written: the account's changes, the orders at the broker as they are then, the
    moves with whether each was booked, and what people are to look at, by order."""

    changes: Changes
    rows: Mapping[str, VenueRow]
    moves: Sequence[tuple[VenueMove, bool]] = ()
    alarms: Mapping[UUID, str] = field(default_factory=dict)

    @property
    def is_new(self) -> bool:
        """Whether something was booked that was not before."""
        return bool(self.changes.fills or self.moves)


def book(
    account: Account,
    rows: Mapping[str, VenueRow],
    orders: Mapping[UUID, BookedOrder],
    booked: Mapping[UUID, Decimal],
    fills: Sequence[tuple[VenueRow, VenueFill]],
    moves: Sequence[VenueMove],
    over: Collection[str],
    calendar: ExchangeCalendar,
) -> Booked:
    """Book what is new of fills and moves, and end the orders that are `over` at the broker (by
    client id) with all their fills in the books. `rows` are by client id; `booked` shares so far.
    """
    changes, alarms = Changes(account), dict[UUID, str]()
    done, now = dict(booked), dict(orders)
    for row, fill in sorted(fills, key=lambda it: (it[1].at, it[1].fill_id)):
        order = now[row.order_id]
        filled = Filled(fill.price, fill.quantity, _ZERO, session_of(fill.at, calendar))
        entry = ledger.filled_at_broker(
            fill.fill_id, row.ticker, row.side, filled, changes.account.books
        )
        changes = changes.post(entry)
        changes = replace(changes, fills=(*changes.fills, (order, filled, entry.key)))
        done[row.order_id] = done.get(row.order_id, _ZERO) + fill.quantity
        now[row.order_id] = replace(order, fill=_sum(order.fill, filled))
        if not order.is_working:
            alarms[row.order_id] = f"{fill.quantity:f} shares were filled after its end"
        changes = stops.within_held(changes, row.ticker)
    told = []
    for move in moves:
        moved = _entry_of(move, calendar)
        if moved is not None:
            changes = changes.post(moved)
        told.append((move, moved is not None))
    after = {}
    for client_id, row in rows.items():
        shares = done.get(row.order_id, _ZERO)
        after[client_id] = replace(row, filled=max(row.filled, shares))
        if client_id in over and row.is_live and shares >= row.filled:
            after[client_id] = replace(after[client_id], state=VenueState.OVER)
            changes = end(changes, after[client_id], now[row.order_id])
    return Booked(changes, after, told, alarms)


def end(changes: Changes, row: VenueRow, order: BookedOrder) -> Changes:
    """The end of the desk's order: filled, in part too, or as the broker says. What is held then
    gets its stop."""
    if not order.is_working:
        return changes
    if order.fill is None:
        is_refused = row.status == REJECTED
        status = OrderStatus.REJECTED if is_refused else OrderStatus.CANCELLED
        why = row.status or "not sent"
        why = f"{why}: {row.cancel or row.words}" if row.cancel or row.words else why
        return _ended(changes, replace(order, status=status, reason=also(order.reason, why)))
    quantity = order.fill.quantity
    reason = order.reason
    if quantity < row.quantity:
        part = f"{quantity:f} of {row.quantity:f} shares were filled, the rest is {row.status}"
        reason = also(reason, part)
    done = replace(order, status=OrderStatus.FILLED, quantity=quantity, reason=reason)
    changes = _ended(changes, done)
    return stops.after_fill(changes.entered(done), done, Decimal(1))


def _ended(changes: Changes, order: BookedOrder) -> Changes:
    reason = shortened(order.reason, REASON_CHARS_MAX)
    return changes.end(replace(order, reason=reason))


def _sum(before: Filled | None, fill: Filled) -> Filled:
    """Fills in part as one: all shares at their average price, at the newest session."""
    if before is None:
        return fill
    quantity = before.quantity + fill.quantity
    paid = before.price * before.quantity + fill.price * fill.quantity
    price = (paid / quantity).quantize(Decimal("0.000001"))
    return Filled(price, quantity, _ZERO, max(before.session, fill.session))


def _entry_of(move: VenueMove, calendar: ExchangeCalendar) -> ledger.LedgerEntry | None:
    amount = move.amount.quantize(CENT)
    if move.at is None or not amount or move.cause in {MoveCause.SPLIT, MoveCause.OTHER}:
        return None
    if move.cause is MoveCause.TRANSFER:
        kind = EntryKind.DEPOSIT if amount > 0 else EntryKind.WITHDRAWAL
        book = Book.CAPITAL
    else:
        kind, book = _BOOKS[move.cause]
    memo = shortened(f"{move.word} at the broker {move.ticker}".strip(), 200)
    on = session_of(move.at, calendar)
    return ledger.moved_at_broker(move.move_id, kind, book, amount, on, memo)


def with_splits(
    changes: Changes,
    actions: Mapping[str, Sequence[CorporateAction]],
    posted: Collection[str],
    there: Mapping[str, Decimal],
) -> tuple[Changes, tuple[Difference, ...]]:
    """Splits that both sides have are booked; one that only the market source has is a difference
    that blocks its ticker. `there` are the broker's shares."""
    found = []
    for ticker, known in sorted(actions.items()):
        for action in known:
            books, key = changes.account.books, ledger.split_key(ticker, action.session)
            held = books.quantity_before(ticker, action.session)
            if action.split_ratio == 1 or key in posted or books.has(key) or held <= 0:
                continue
            if _split_is_there(ticker, action, books, there):
                ratio = action.split_ratio
                entry = ledger.split(ticker, action.session, ratio, _ZERO, books)
                changes = stops.after_split(changes.post(entry), ticker, ratio)
                continue
            found.append(
                Difference(
                    kind=DifferenceKind.SPLIT,
                    about=ticker,
                    desk=f"{action.split_ratio.normalize():f} for 1 on {action.session}",
                    broker=f"{there.get(ticker, _ZERO).normalize():f} shares",
                )
            )
    return changes, tuple(found)


def _split_is_there(
    ticker: str, action: CorporateAction, books: Books, there: Mapping[str, Decimal]
) -> bool:
    before = books.quantity_before(ticker, action.session)
    exact = after_split(before, action.split_ratio)
    traded_since = books.quantity(ticker) - before
    is_kept = exact == kept_shares(exact)
    return is_kept and there.get(ticker, _ZERO) == exact + traded_since


def unpaid(
    books: Books,
    actions: Mapping[str, Sequence[CorporateAction]],
    paid: Mapping[str, Sequence[date]],
) -> tuple[Difference, ...]:
    """Dividends of the market source that the broker has not paid: told, and booked by nobody.
    `paid` are the days on which the broker paid one, by ticker."""
    return tuple(
        Difference(
            kind=DifferenceKind.DIVIDEND,
            about=ticker,
            desk=f"{action.dividend_per_share.normalize():f} a share on {action.session}",
            broker="not paid",
        )
        for ticker, known in sorted(actions.items())
        for action in known
        if action.dividend_per_share > 0
        and books.quantity_before(ticker, action.session) > 0
        and not any(day >= action.session for day in paid.get(ticker, ()))
    )
