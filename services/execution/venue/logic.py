"""The life of an order at a broker, and the comparison of both books. Pure."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Final
from uuid import UUID

from contracts.account import Side
from contracts.types import shortened
from contracts.venue import (
    DIFFERENCES_MAX,
    NOT_BLOCKING,
    Difference,
    DifferenceKind,
    LookVerdict,
    VenueOrderType,
    VenueState,
    VenueTerms,
)
from libs.broker.venue import (
    NoSuchOrder,
    Ticket,
    UnclearAnswer,
    VenueAccount,
    VenueFill,
    VenueMove,
    VenueOrder,
    VenueRefusal,
)
from libs.market.calendar import ExchangeCalendar
from services.execution.account import SendWindow
from services.execution.books import Books

SEND_MARGIN = timedelta(minutes=5)
"""Nothing is sent later than this before the open that it is for."""
SKEW_MAX = timedelta(minutes=1)
"""How far the desk's clock may be from the broker's."""
CASH_STEP = Decimal("0.01")
WORDS_MAX = 1_000
ACTIVE: Final = "ACTIVE"
REJECTED: Final = "rejected"
UNDECIDED: Final = frozenset({VenueState.INTENT, VenueState.SENT, VenueState.KNOWN})
"""States of an order that may still come to something."""


@dataclass(frozen=True, slots=True)
class VenueRow:
    """An order that is for a broker, as it stands in the tables."""

    order_id: UUID
    account: str
    ticker: str
    side: Side
    quantity: Decimal
    terms: VenueTerms
    session: date
    send_by: datetime
    state: VenueState
    tries: int = 0
    cancel: str = ""
    broker_id: str | None = None
    status: str = ""
    filled: Decimal = Decimal(0)
    words: str = ""
    sent_at: datetime | None = None
    told_at: datetime | None = None

    @property
    def client_id(self) -> str:
        """Its id at the broker, the same for ever."""
        return str(self.order_id)

    @property
    def is_live(self) -> bool:
        """Whether it may still come to something."""
        return self.state in UNDECIDED

    @property
    def may_be_there(self) -> bool:
        """Whether the broker has it, or may have it."""
        return self.state in {VenueState.SENT, VenueState.KNOWN}


def window_after(as_of: date, now: datetime, calendar: ExchangeCalendar) -> SendWindow | None:
    """When what is decided at as_of may be sent; None where as_of is not the newest session that
    has closed, or its next open is too near."""
    if calendar.last_closed(now) != as_of:
        return None
    session = calendar.next_session(as_of)
    send_by = calendar.open(session) - SEND_MARGIN
    return SendWindow(session, send_by) if now < send_by else None


def session_of(at: datetime, calendar: ExchangeCalendar) -> date:
    """The session that a trade belongs to, by the exchange's day of its time."""
    return calendar.session_on_or_after(at.astimezone(calendar.zone).date())


def ticket_of(row: VenueRow) -> Ticket:
    """What is sent: the terms as they were decided and approved."""
    limit = row.terms.limit_price
    is_limit = row.terms.type is VenueOrderType.LIMIT
    return Ticket(
        row.client_id,
        row.ticker,
        row.side,
        row.quantity,
        limit.amount if is_limit and limit is not None else None,
    )


def after_answer(
    row: VenueRow, answer: VenueOrder | VenueRefusal | UnclearAnswer | NoSuchOrder
) -> VenueRow:
    """The row once the broker has answered a look or a post.

    A refusal is an end only where nothing was sent before: after an unclear answer the order may be
    taken late, and the refusal be an echo of that. Such an order is only looked for from then on.
    """
    match answer:
        case VenueOrder():
            return seen(row, answer)
        case VenueRefusal(words=words, is_duplicate=False) if row.tries <= 1:
            words = shortened(words, WORDS_MAX)
            return replace(row, state=VenueState.OVER, status=REJECTED, words=words)
        case VenueRefusal(words=words, is_duplicate=False):
            return replace(row, status=REJECTED, words=shortened(words, WORDS_MAX))
        case VenueRefusal(words=words):
            return replace(row, words=shortened(words, WORDS_MAX))
        case UnclearAnswer(why=why):
            return replace(row, words=shortened(why, WORDS_MAX))
        case NoSuchOrder():
            return row


def seen(row: VenueRow, order: VenueOrder) -> VenueRow:
    """The row with what the broker says of its order. What is over stays over."""
    state = VenueState.KNOWN if row.is_live else row.state
    return replace(
        row,
        state=state,
        broker_id=order.broker_id,
        status=order.status,
        filled=max(row.filled, order.filled),
    )


def never(row: VenueRow) -> VenueRow:
    """The row of an order that never got to the broker, with why as far as it is known."""
    late = f"it had to be sent by {row.send_by:%H:%M} UTC"
    return replace(row, state=VenueState.NEVER, words=row.words or row.cancel or late)


@dataclass(frozen=True)
class Standing:
    """The broker's side as the newest complete read has it, at the desk's time `at`.

    `orders` are those of live rows by client id (NoSuchOrder: it has none); `owners` the client
    ids of the orders that fills are of, by the broker's id.
    """

    at: datetime
    account: VenueAccount
    open_orders: tuple[VenueOrder, ...] = ()
    orders: Mapping[str, VenueOrder | NoSuchOrder] = field(default_factory=dict)
    fills: tuple[VenueFill, ...] = ()
    moves: tuple[VenueMove, ...] = ()
    owners: Mapping[str, str] = field(default_factory=dict)


def why_not_now(
    row: VenueRow,
    standing: Standing,
    verdict: LookVerdict,
    held: Decimal,
    now: datetime,
    calendar: ExchangeCalendar,
) -> str:
    """Why an order may not be sent at this time; empty where it may. `held` shares stand in the
    desk's book, and of a sale both must hold what is sold."""
    return next(_why_not_now(row, standing, verdict, held, now, calendar), "")


def _why_not_now(
    row: VenueRow,
    standing: Standing,
    verdict: LookVerdict,
    held: Decimal,
    now: datetime,
    calendar: ExchangeCalendar,
) -> Iterator[str]:
    broker, at = standing.account, standing.at
    if now >= row.send_by:
        yield f"it was for the open of {row.session}, and had to be sent by {row.send_by:%H:%M} UTC"
    if row.cancel:
        yield row.cancel
    if row.state is VenueState.SENT and row.status == REJECTED:
        yield "the broker refused it after an unclear answer: it is only looked for"
    # As both were read: the present is later by the age of that.
    if abs(broker.now - at) > SKEW_MAX:
        yield f"the broker's clock says {broker.now:%H:%M:%S} and the desk's {at:%H:%M:%S}"
    if broker.is_open:
        yield "the market is open, and it was decided for the next open"
    opens = broker.next_open.astimezone(calendar.zone).date()
    if opens != row.session or broker.now >= broker.next_open - SEND_MARGIN:
        yield f"the broker's next open is on {opens}, and it is for {row.session}"
    if broker.number != row.terms.account_number:
        yield f"the key is of account {broker.number}, and it was decided for another"
    if broker.status != ACTIVE or broker.blocked:
        yield f"the account is {broker.status} {', '.join(broker.blocked)}"
    if verdict is LookVerdict.UNKNOWN:
        yield "the broker's books could not be read"
    if row.side is Side.BUY and verdict is not LookVerdict.AGREES:
        yield "both books differ"
    there = broker.positions.get(row.ticker, Decimal(0))
    if row.side is Side.SELL and min(held, there) < row.quantity:
        yield f"the desk holds {held:f} and the broker {there:f}, fewer than it sells"


def is_never(row: VenueRow, standing: Standing, calendar: ExchangeCalendar) -> bool:
    """Whether it is certain that an order never got to the broker: nothing was sent and nothing may
    be any more; or the session that it was for was over before the broker was asked, and it has
    neither the order nor a fill of it."""
    if row.state is VenueState.INTENT and row.tries == 0:
        return bool(row.cancel) or standing.at >= row.send_by
    is_absent = isinstance(standing.orders.get(row.client_id), NoSuchOrder)
    filled = row.client_id in standing.owners.values()
    over = standing.at > calendar.close(row.session)
    return row.state is VenueState.SENT and is_absent and not filled and over


def differences(
    books: Books,
    rounding: Decimal,
    rows: Mapping[str, VenueRow],
    booked: Mapping[UUID, Decimal],
    standing: Standing,
    splits: Sequence[Difference] = (),
) -> tuple[Difference, ...]:
    """What differs between both books, in a stable order. `rows` are the desk's orders by client
    id: the live ones, and those that the broker names. `rounding` is what the broker's exact cash
    is above the desk's whole cents; `splits` what the market source says of splits and dividends.
    """
    found = [
        *_of_account(standing.account),
        *_of_cash(books, rounding, standing.account),
        *_of_shares(books, standing.account),
        *_of_orders(rows, booked, standing),
        *splits,
    ]
    unique = {(one.kind, one.about, one.desk, one.broker): one for one in found}
    return tuple(unique[key] for key in sorted(unique))[:DIFFERENCES_MAX]


def blocks(found: Collection[Difference]) -> bool:
    """Whether nothing may be bought with such differences."""
    return any(one.kind not in NOT_BLOCKING for one in found)


def _difference(kind: DifferenceKind, about: str, desk: str, broker: str) -> Difference:
    short = (shortened(text, 390) for text in (about, desk, broker))
    about, desk, broker = short
    return Difference(kind=kind, about=about, desk=desk, broker=broker)


def _of_account(broker: VenueAccount) -> Iterator[Difference]:
    kind = DifferenceKind.ACCOUNT
    if broker.status != ACTIVE or broker.blocked:
        is_now = ", ".join((broker.status, *broker.blocked))
        yield _difference(kind, "", "ACTIVE and free to trade", is_now)
    for unsafe in broker.unsafe:
        yield _difference(kind, "", "long only and cash only", unsafe)
    if broker.currency != "USD":
        yield _difference(kind, "", "USD", broker.currency)
    if broker.cash < 0:
        yield _difference(kind, "", "cash is never below zero", f"cash {broker.cash:f}")
    for ticker, quantity in sorted(broker.positions.items()):
        if quantity < 0:
            yield _difference(kind, ticker, "nothing is sold short", f"{quantity:f} shares")


def _of_cash(books: Books, rounding: Decimal, broker: VenueAccount) -> Iterator[Difference]:
    # The broker may count each fill in whole cents, as the desk does, or with every digit.
    gaps = (abs(broker.cash - books.cash), abs(broker.cash - books.cash - rounding))
    if min(gaps) > CASH_STEP:
        kind = DifferenceKind.CASH
        yield _difference(kind, "", _usd(books.cash), _usd(broker.cash))


def _usd(cash: Decimal) -> str:
    """Cash with every digit that it has, and cents in any case."""
    exponent = cash.normalize().as_tuple().exponent
    places = max(2, -exponent) if isinstance(exponent, int) else 2
    return f"{cash:,.{places}f} USD"


def _of_shares(books: Books, broker: VenueAccount) -> Iterator[Difference]:
    desk = {ticker: held.quantity for ticker, held in books.holdings.items()}
    for ticker in sorted({*desk, *broker.positions}):
        ours, theirs = desk.get(ticker, Decimal(0)), broker.positions.get(ticker, Decimal(0))
        if ours != theirs:
            pair = (f"{it.normalize():f} shares" for it in (ours, theirs))
            yield _difference(DifferenceKind.SHARES, ticker, *pair)


def _of_orders(
    rows: Mapping[str, VenueRow], booked: Mapping[UUID, Decimal], standing: Standing
) -> Iterator[Difference]:
    kind = DifferenceKind.ORDER
    for order in standing.open_orders:
        row = rows.get(order.client_id)
        if row is None:
            what = f"{order.side} {order.quantity or 0:f} {order.ticker}, {order.status}"
            yield _difference(
                DifferenceKind.FOREIGN_ORDER, order.broker_id, "not an order of the desk", what
            )
        elif not row.is_live:
            yield _difference(kind, row.client_id, f"it is {row.state.value}", order.status)
    for client_id, row in sorted(rows.items()):
        found = standing.orders.get(client_id)
        if isinstance(found, VenueOrder):
            yield from _as_sent(row, found)
        elif isinstance(found, NoSuchOrder) and row.state is VenueState.KNOWN:
            yield _difference(kind, client_id, f"it was {row.status} there", "no such order")
        done = booked.get(row.order_id, Decimal(0))
        if row.filled != done:
            pair = (f"{done.normalize():f} booked", f"{row.filled.normalize():f} filled")
            yield _difference(kind, client_id, *pair)


def _as_sent(row: VenueRow, found: VenueOrder) -> Iterator[Difference]:
    limit = ticket_of(row).limit_price
    ours = (row.ticker, row.side.value, row.quantity, limit)
    theirs = (found.ticker, found.side, found.quantity, found.limit_price)
    if ours != theirs:
        pair = (" ".join(map(str, what)) for what in (ours, theirs))
        yield _difference(DifferenceKind.ORDER, row.client_id, *pair)
