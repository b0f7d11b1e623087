"""Round trips: each position from its first share to its last, as the ledger posted it. Pure.

A trip takes its amounts from the postings, and values what is still held at a close's prices, so
that the trips of an account add up to its books to the cent. Shares are counted as after the splits
since, so that prices of one share compare.
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from enum import StrEnum
from uuid import UUID

from libs.quant.sizing import CENT

_ZERO = Decimal(0)


class Closing(StrEnum):
    """The cause of a sale."""

    STOP = "stop"
    SIGNAL = "signal"
    BY_HAND = "by_hand"
    DECISION = "decision"
    SPLIT = "split"


@dataclass(frozen=True, slots=True)
class PlacedOrder:
    """The order behind a fill and the decision that placed it; of a sale `closing` says what sold,
    and `rules` which exit rules."""

    order_id: UUID
    cycle_id: UUID
    pipeline: str
    closing: Closing | None = None
    rules: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Move:
    """One entry of the ledger that touched a ticker, at `session`; amounts in the account's
    currency.

    `quantity` is by how much the shares held changed, `cost` by how much what they cost did.
    `realised`, `dividends` and `fees` are gains and costs; a loss is negative, a fee is not.
    `is_split` says that shares became others. `traded` is the value of a fill. `order` is None
    where nothing was ordered: a split, a dividend, holdings that an owner brought in.
    """

    session: date
    ticker: str
    quantity: Decimal = _ZERO
    cost: Decimal = _ZERO
    realised: Decimal = _ZERO
    dividends: Decimal = _ZERO
    fees: Decimal = _ZERO
    is_split: bool = False
    traded: Decimal = _ZERO
    order: PlacedOrder | None = None


@dataclass(slots=True)
class Trip:
    """A position from its first share on, until `closed`; None while something of it is held.

    `bought` shares cost `cost`; `sold` of them brought `proceeds`, of which `paid_out` are parts of
    a share that splits paid in cash; those `held` cost `held_cost`, and are worth `unrealised` more
    at the close. `entry` is the order that opened it, `exit` the one that sold last. `adds` are the
    orders that bought more.

    `sales` is the part of the gain of each order that sold: what its shares brought less its fee,
    and of `shared` (dividends and what a split paid in cash, less the fees of buys) the part of
    these shares. The sales of a trip that an order closed add up to its gain, to the cent.
    """

    ticker: str
    opened: date
    closed: date | None = None
    held: Decimal = _ZERO
    held_cost: Decimal = _ZERO
    bought: Decimal = _ZERO
    sold: Decimal = _ZERO
    paid_out: Decimal = _ZERO
    cost: Decimal = _ZERO
    proceeds: Decimal = _ZERO
    realised: Decimal = _ZERO
    unrealised: Decimal = _ZERO
    dividends: Decimal = _ZERO
    fees: Decimal = _ZERO
    entry: PlacedOrder | None = None
    exit: PlacedOrder | None = None
    adds: list[UUID] = field(default_factory=list)
    sales: dict[UUID, Decimal] = field(default_factory=dict)
    shared: Decimal = _ZERO

    @property
    def gain(self) -> Decimal:
        """The P&L: realised and unrealised gains and dividends, less fees."""
        return self.realised + self.unrealised + self.dividends - self.fees

    @property
    def shares(self) -> Decimal:
        """The shares bought, without parts of a share that a split paid in cash."""
        return self.bought - self.paid_out

    @property
    def shares_sold(self) -> Decimal:
        """The shares that orders sold."""
        return self.sold - self.paid_out

    @property
    def gain_pct(self) -> Decimal | None:
        """The gain in percent of what was paid; None where nothing was."""
        return self.gain / self.cost * 100 if self.cost else None

    @property
    def entry_price(self) -> Decimal | None:
        """The average cost of a share, before fees."""
        return self.cost / self.bought if self.bought else None

    @property
    def exit_price(self) -> Decimal | None:
        """The average price of a share sold, before fees."""
        return self.proceeds / self.sold if self.sold else None

    def sessions(self, closes: Sequence[date]) -> int | None:
        """The number of these closes, oldest first, at which it was held, from its opening to its
        end, as shares change hands before a close; None while it is held still."""
        if self.closed is None:
            return None
        return bisect_left(closes, self.closed) - bisect_left(closes, self.opened)

    def take(self, move: Move) -> None:
        """Add one more entry of its ticker."""
        if move.is_split:
            self._split(move)
        elif move.quantity > 0:
            self.bought += move.quantity
            self.cost += move.cost
            if move.order is not None and move.order != self.entry:
                self.adds.append(move.order.order_id)
        elif move.quantity < 0:
            self.sold -= move.quantity
            # What left the position had cost so much, and brought the gain besides.
            self.proceeds += move.realised - move.cost
            self.exit = move.order
        self._share(move)
        self.held += move.quantity
        self.held_cost += move.cost
        self.realised += move.realised
        self.dividends += move.dividends
        self.fees += move.fees
        if self.held == 0 and move.quantity != 0:
            self.closed = move.session

    def _share(self, move: Move) -> None:
        """Add what the entry brought to the sale that it is of, or to what sales share."""
        brought = move.realised + move.dividends - move.fees
        sold = _ZERO if move.is_split else max(-move.quantity, _ZERO)
        # What comes after the end, as a dividend may, is the last sale's.
        seller = self.exit if sold or self.closed is not None else None
        if seller is None or not sold:
            self.shared += brought
            brought = _ZERO
        if seller is not None:
            is_all = sold >= self.held
            part = self.shared if is_all else (self.shared * sold / self.held).quantize(CENT)
            self.shared -= part
            own = self.sales.get(seller.order_id, _ZERO)
            self.sales[seller.order_id] = own + brought + part

    def _split(self, move: Move) -> None:
        """Count earlier shares as the new ones; a part of a share is paid out with the split."""
        left, left_cost = self.held + move.quantity, self.held_cost + move.cost
        if not left:
            # Nothing that the new shares could be counted by: all old ones were paid out.
            self.sold += self.held
        elif self.held:
            # The part took its part of the cost along, by which the ledger knows its size.
            part = left * -move.cost / left_cost if left_cost > 0 else _ZERO
            ratio = (left + part) / self.held
            self.bought *= ratio
            self.sold = self.sold * ratio + part
            self.paid_out = self.paid_out * ratio + part
        self.proceeds += move.realised - move.cost


def round_trips(
    moves: Iterable[Move], prices: Mapping[str, Decimal] | None = None
) -> Sequence[Trip]:
    """The trips of an account's moves, which come in the order of the ledger; by their opening.

    Open ones are valued at `prices`, of a share in the account's currency, where there is one. A
    dividend that is paid after its position was closed belongs to the trip that was closed last.
    """
    trips: list[Trip] = []
    newest: dict[str, Trip] = {}
    for move in moves:
        trip = newest.get(move.ticker)
        opens = trip is None or (trip.closed is not None and move.quantity > 0)
        if trip is None or opens:
            trip = newest[move.ticker] = Trip(move.ticker, move.session, entry=move.order)
            trips.append(trip)
        trip.take(move)
    for trip in trips:
        if trip.closed is None and trip.ticker in (prices or {}):
            trip.unrealised = trip.held * (prices or {})[trip.ticker] - trip.held_cost
    return trips


@dataclass(frozen=True, slots=True)
class Tally:
    """The sums of closed trips.

    `profit_factor` is what the winners brought over what the losers lost; None without a loser.
    """

    closed: int
    won: int
    gain: Decimal
    best: Decimal | None
    worst: Decimal | None
    mean_win: Decimal | None
    mean_loss: Decimal | None
    profit_factor: Decimal | None

    @property
    def win_rate_pct(self) -> Decimal | None:
        """The winners in percent of all closed trips; None where none is closed."""
        return Decimal(self.won * 100) / self.closed if self.closed else None


def tally(trips: Iterable[Trip]) -> Tally:
    """Count the closed ones. A trip is won where it brought more than its fees."""
    gains = [trip.gain for trip in trips if trip.closed is not None]
    wins = [gain for gain in gains if gain > 0]
    losses = [gain for gain in gains if gain < 0]
    lost = -sum(losses, _ZERO)
    return Tally(
        closed=len(gains),
        won=len(wins),
        gain=sum(gains, _ZERO),
        best=max(gains, default=None),
        worst=min(gains, default=None),
        mean_win=sum(wins, _ZERO) / len(wins) if wins else None,
        mean_loss=sum(losses, _ZERO) / len(losses) if losses else None,
        profit_factor=sum(wins, _ZERO) / lost if lost else None,
    )


@dataclass(frozen=True, slots=True)
class TickerGain:
    """The gain of all trips of one ticker, open ones included."""

    ticker: str
    trips: int
    gain: Decimal


def by_ticker(trips: Iterable[Trip]) -> Sequence[TickerGain]:
    """The gain of each ticker, the largest first."""
    of: dict[str, list[Trip]] = {}
    for trip in trips:
        of.setdefault(trip.ticker, []).append(trip)
    gains = [
        TickerGain(ticker, len(own), sum((trip.gain for trip in own), _ZERO))
        for ticker, own in of.items()
    ]
    return sorted(gains, key=lambda it: (-it.gain, it.ticker))
