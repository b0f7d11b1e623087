"""The money of decisions that were made elsewhere, walked through the sessions; and of coins. Pure.

Each decision is traded at one open, after costs. Sales come first; where the cash does not pay all
purchases, all are made smaller alike. What does not trade at that open is not traded at all. Prices
are adjusted for splits and dividends, so a dividend is put into its share again.

A coin does what the file does, at the same opens and of the same sizes: what it does not take from
the file is which ticker a position is in. Where the file enters a position, the coin draws one of
the tickers that trade at that open and that it does not hold; it keeps that one until the file
leaves the position. So it holds as many positions, for as long, and trades as much: only the picks
are luck. With one ticker there is no such choice: then the file's decisions are given to its times
anew, all turned by the same number of places, so that only the timing is luck.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from libs.quant.arrays import Array, Mask
from libs.quant.costs import BPS_PER_ONE

Places = npt.NDArray[np.intp]
"""Of walks' tickers, counted through all walks: one index of numpy's is faster than two."""
OnPart = Callable[[float], None]
"""Told which part of the work is done, 0 to 1."""
DUST = 1e-9
"""A part of the money below which nothing is held or traded."""
COSTS_OF_ALL = 3
"""Above the costs of selling all and buying all again, as times of one trade's."""


@dataclass(frozen=True, slots=True)
class PricePanel:
    """Prices of the sessions (rows) of each ticker (columns), adjusted. `opens` is NaN where it did
    not trade; `closes` keeps the last close, and is 0 before the first one."""

    opens: Array
    closes: Array

    def trading(self, session: int) -> Mask:
        """The tickers that trade at the open."""
        return np.asarray(np.isfinite(self.opens[session]))


@dataclass(frozen=True, slots=True)
class Orders:
    """The orders for one open: positions are brought within `low` to `high`, as parts of the money,
    and then `shares` (adjusted) are bought, below 0 sold. Rows are walks, or one row for all."""

    session: int
    low: Array
    high: Array
    shares: Array

    @classmethod
    def exactly(cls, session: int, part: Array) -> "Orders":
        """Orders for these parts of the money; NaN leaves a ticker alone."""
        left = np.isnan(part)
        low, high = np.where(left, -np.inf, part), np.where(left, np.inf, part)
        return cls(session, low, high, np.zeros_like(part))


@dataclass(frozen=True, slots=True)
class WalkTerms:
    """The money that a walk begins with, and the cost of a trade on one side in basis points."""

    cash: float
    cost_bps: float


@dataclass(slots=True)
class Walk:
    """Walks through all sessions, a row each. `curve` is the money at each close, `held` what of it
    is in shares; `traded` and `costs` are sums. Of each order: the tickers that were `acted` on,
    the part of the money that it `aimed` at; which could not be traded
    (`missed`); and which were made smaller, by the cash or by what was held (`cut`)."""

    curve: Array
    held: Array
    traded: Array
    costs: Array
    acted: list[Mask] = field(default_factory=list)
    aimed: list[Array] = field(default_factory=list)
    missed: list[Mask] = field(default_factory=list)
    cut: list[Mask] = field(default_factory=list)


@dataclass(slots=True)
class _Books:
    """The cash and the shares of walks while they are walked."""

    cash: Array
    units: Array
    traded: Array
    costs: Array
    rate: float
    _blank: Array
    """Zeros, for sums over some tickers of each walk."""

    @classmethod
    def begin(cls, walks: int, tickers: int, terms: WalkTerms) -> "_Books":
        """Nothing but cash."""
        zeros = np.zeros(walks)
        units = np.zeros((walks, tickers))
        rate = terms.cost_bps / BPS_PER_ONE
        cash = np.full(walks, float(terms.cash))
        return cls(cash, units, zeros, zeros.copy(), rate, np.zeros_like(units))

    def walk(self, sessions: int) -> Walk:
        """What comes of them, to be filled in session by session."""
        shape = (len(self.cash), sessions)
        return Walk(np.empty(shape), np.empty(shape), self.traded, self.costs)

    def worth(self, prices: Array) -> Array:
        """All of it at these prices."""
        return np.asarray(self.cash + self.units @ prices)

    def trade(self, prices: Array, at: Places, target: Array) -> Array:
        """Bring the positions `at` places (none twice) to `target` values; the part of each walk's
        purchases that the cash paid."""
        rows, columns = np.divmod(at, len(prices))
        price = prices[columns]
        units = self.units.reshape(-1)
        before = units[at]
        delta = target - before * price
        sales, buys = np.maximum(-delta, 0.0), np.maximum(delta, 0.0)
        sold, bought = self._sums(at, sales), self._sums(at, buys)
        self.cash += sold * (1 - self.rate)
        needed = bought * (1 + self.rate)
        pays = np.where(needed > self.cash, self.cash / np.where(needed > 0, needed, 1.0), 1.0)
        pays = np.maximum(pays, 0.0)
        if (pays < 1).any():
            buys *= pays[rows]
            bought = self._sums(at, buys)
        self.cash = np.maximum(self.cash - needed * pays, 0.0)
        after = before + (buys - sales) / np.where(price > 0, price, 1.0)
        units[at] = np.where(target == 0, 0.0, after)
        moved = sold + bought
        self.traded += moved
        self.costs += moved * self.rate
        return pays

    def _sums(self, at: Places, amounts: Array) -> Array:
        """By walk. All tickers are added up, in their order: so a sum is the same to the last digit
        whichever places are named."""
        blank = self._blank.reshape(-1)
        blank[at] = amounts
        sums = self._blank.sum(axis=1)
        blank[at] = 0.0
        return np.asarray(sums)


def walk(
    panel: PricePanel,
    orders: Sequence[Orders],
    terms: WalkTerms,
    on_part: OnPart = lambda _: None,
) -> Walk:
    """The walks of these orders, in the order of their sessions, one or several at once."""
    sessions, tickers = panel.closes.shape
    walks = max((it.low.shape[0] if it.low.ndim > 1 else 1 for it in orders), default=1)
    books = _Books.begin(walks, tickers, terms)
    result = books.walk(sessions)
    begin = 0
    for place, it in enumerate(orders):
        on_part(place / len(orders))
        _settle(books, panel, result, begin, it.session)
        begin = it.session
        trades = panel.trading(it.session)
        known = _known(panel, it.session)
        worth = np.maximum(books.worth(known), DUST * terms.cash)[:, None]
        now = books.units * known / worth
        aim = np.minimum(np.maximum(now, it.low), it.high)
        wanted = aim + it.shares * known / worth
        aim = np.maximum(wanted, 0.0)
        moves = np.abs(aim - now) > DUST
        acted = moves & trades
        places = np.flatnonzero(acted)
        pays = books.trade(known, places, (aim * worth).reshape(-1)[places])
        # Whoever wants all the money in shares does not get the cost of it: that is no cut.
        slack = np.where(it.shares > 0, 0.0, COSTS_OF_ALL * books.rate)
        is_cut = (wanted < -DUST) | (acted & (aim > now) & (pays[:, None] < 1 - slack - DUST))
        result.acted.append(acted)
        result.aimed.append(aim)
        result.missed.append(moves & ~trades)
        result.cut.append(is_cut & trades)
    _settle(books, panel, result, begin, sessions)
    return result


def coins(
    panel: PricePanel,
    orders: Sequence[Orders],
    of: Walk,
    terms: WalkTerms,
    draws: int,
    seed: int,
    on_part: OnPart = lambda _: None,
) -> Walk:
    """The walks of so many coins beside the first walk `of` these orders."""
    sessions, tickers = panel.closes.shape
    rng = np.random.default_rng(seed)
    books = _Books.begin(draws, tickers, terms)
    result = books.walk(sessions)
    mapped = np.full((draws, tickers), -1)
    begin = 0
    for place, it in enumerate(orders):
        on_part(place / len(orders))
        _settle(books, panel, result, begin, it.session)
        begin = it.session
        acted, aimed = of.acted[place][0], of.aimed[place][0]
        known = _known(panel, it.session)
        trades = panel.trading(it.session)
        worth = np.maximum(books.worth(known), DUST * terms.cash)
        left = np.flatnonzero(acted & (aimed <= DUST))
        out, _ = _traded(mapped[:, left], trades)
        books.trade(known, out, np.zeros(len(out)))
        mapped[:, left] = -1
        held = np.flatnonzero(acted & (aimed > DUST))
        its = mapped[:, held]
        if (its < 0).any():
            free = trades & (books.units <= 0)
            drawn = _drawn(np.where(free, rng.random((draws, tickers)), -1.0), len(held))
            its = mapped[:, held] = np.where(its < 0, drawn, its)
        into, numbers = _traded(its, trades)
        books.trade(known, into, aimed[held][numbers] * worth[into // tickers])
    _settle(books, panel, result, begin, sessions)
    return result


def _drawn(lot: Array, count: int) -> npt.NDArray[np.intp]:
    """The tickers of each walk's `count` highest lots, the highest first; -1 for a lot below 0."""
    drawn = np.argsort(-lot, axis=1)[:, :count]
    return np.where(np.take_along_axis(lot, drawn, axis=1) >= 0, drawn, -1)


def _traded(mapped: npt.NDArray[np.intp], trades: Mask) -> tuple[Places, npt.NDArray[np.intp]]:
    """The places of these positions of coins that can be traded, and which of the positions (the
    column) each is. Of several that a coin has in one ticker the last counts."""
    rows, numbers = np.nonzero((mapped >= 0) & trades[mapped])
    places = rows * len(trades) + mapped[rows, numbers]
    last = np.full(len(mapped) * len(trades), -1)
    last[places] = numbers
    counts = last[places] == numbers
    return places[counts], numbers[counts]


def turned(orders: Sequence[Orders], draws: int) -> Sequence[Orders]:
    """The orders of one ticker, each walk with all of them turned by another number of places; all
    numbers there are, or `draws` of them equally far apart."""
    count = len(orders)
    by = np.unique(np.linspace(1, count - 1, min(draws, count - 1)).round().astype(int))
    parts = [np.array([it.low, it.high, it.shares]) for it in orders]
    every = np.stack(parts)  # by order, part, ticker
    return [
        Orders(it.session, *every[(place + by) % count].transpose(1, 0, 2))
        for place, it in enumerate(orders)
    ]


def _known(panel: PricePanel, session: int) -> Array:
    """The prices at an open: of what does not trade the last close."""
    before = panel.closes[max(session - 1, 0)]
    return np.asarray(np.where(panel.trading(session), panel.opens[session], before))


def _settle(books: _Books, panel: PricePanel, result: Walk, begin: int, end: int) -> None:
    """Value the walks at the closes from `begin` up to `end`."""
    if end > begin:
        held = books.units @ panel.closes[begin:end].T
        result.held[:, begin:end] = held
        result.curve[:, begin:end] = books.cash[:, None] + held
