"""The rules over ten years of the bundled prices, looked at after each close."""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal

import pytest

from contracts.account import ActedExit, Position
from contracts.exit_signal import Holdings
from contracts.types import Failure, Money
from libs.market.replay.market import ReplayMarket, ReplayStore
from libs.quant.exits.history import ExitContext, facts_of, history_of, last_complete
from libs.quant.exits.terms import ExitTerms
from services.exit_signal.logic import assess, held_in

TICKERS = ("AAPL", "GOOG", "IBM", "MSFT")
LAST = date(2013, 2, 28)
SESSIONS_KEPT = 350
SHARES = Decimal(1_000)
ALL_RULES = ExitTerms.model_validate(
    {"take_profit": {"pct": 10, "sell_pct": 50}, "trailing_stop": {"pct": 12, "sell_pct": 50}}
)


@dataclass
class Closes:
    """A ticker's closes, adjusted for all that came by the last session."""

    ticker: str
    days: Sequence[date]
    closes: Sequence[float]


@dataclass
class Replay:
    """One position after another in one ticker. Of each order `filled` in ten are filled, at the
    next session; a sale of all is followed by the next purchase at once."""

    prices: Closes
    terms: ExitTerms
    filled: int = 10
    opened_on: date = date.min
    shares: Decimal = Decimal(0)
    cost: float = 0.0
    exits: list[ActedExit] = field(default_factory=list)
    orders: list[tuple[date, ActedExit]] = field(default_factory=list)

    def run(self) -> "Replay":
        for place in range(SESSIONS_KEPT, len(self.prices.days) - 1):
            day, following = self.prices.days[place], self.prices.days[place + 1]
            if self.shares < 1:
                self.opened_on, self.shares, self.exits = day, SHARES, []
                self.cost = self.prices.closes[place]
            self.shares -= self._checked(place, following)
        return self

    def _checked(self, place: int, following: date) -> Decimal:
        """What a check at this close sells."""
        day = self.prices.days[place]
        holdings = Holdings(
            account="main", as_of=day, positions=(self._position(place),), exits=(*self.exits,)
        )
        account = ExitContext.of(holdings, following)
        held = held_in(holdings, self.prices.ticker)
        window = slice(max(0, place + 1 - SESSIONS_KEPT), place + 1)
        history = history_of(
            self.prices.days[window],
            self.prices.closes[window],
            last_complete(day, following),
            self.opened_on,
            account.acted_on(self.prices.ticker),
        )
        assert held is not None
        histories = {self.prices.ticker: history}
        facts = facts_of(held.position, account, self.terms, histories, self._sessions)
        assert not isinstance(facts, Failure)
        sizing = assess(facts, self.terms, held).sizing
        if sizing is None:
            return Decimal(0)
        quantity = (sizing.quantity * self.filled / 10).to_integral_value()
        acted = ActedExit(
            ticker=self.prices.ticker,
            as_of=day,
            sold=quantity,
            sold_on=following,
            **sizing.acts.model_dump(),
        )
        self.exits.append(acted)
        self.orders.append((self.opened_on, acted))
        return quantity

    def _sessions(self, first: date, last: date) -> Sequence[date]:
        days = self.prices.days
        return days[bisect_left(days, first) : bisect_right(days, last)]

    def _position(self, place: int) -> Position:
        return Position(
            ticker=self.prices.ticker,
            quantity=self.shares,
            average_cost=Money(amount=Decimal(f"{self.cost:.4f}")),
            price=Money(amount=Decimal(f"{self.prices.closes[place]:.4f}")),
            opened_on=self.opened_on,
        )

    def by_signal(self) -> Iterator[list[ActedExit]]:
        """The orders that acted on one monthly signal of one position."""
        found = defaultdict(list)
        for opened_on, order in self.orders:
            if "momentum" in order.rules:
                found[opened_on, order.month].append(order)
        yield from found.values()


@pytest.fixture(scope="module")
def market() -> ReplayMarket:
    return ReplayMarket(ReplayStore(None))


@pytest.fixture
async def prices(market: ReplayMarket, request: pytest.FixtureRequest) -> Closes:
    bars = await market.bars(request.param, LAST, 10_000)
    return Closes(request.param, bars["date"].to_list(), bars["close"].to_list())


@pytest.mark.slow
@pytest.mark.parametrize("prices", TICKERS, indirect=True)
def test_over_ten_years_no_position_is_cut_twice_by_one_signal_in_one_month(
    prices: Closes,
) -> None:
    replay = Replay(prices, ALL_RULES).run()
    cuts = list(replay.by_signal())

    assert sum(len(orders) for orders in cuts) > 30, "the rule did act"
    assert all(len(orders) == 1 for orders in cuts)
    months = [
        (opened_on, order.sold_on.year, order.sold_on.month)
        for opened_on, order in replay.orders
        if "momentum" in order.rules and order.sold_on is not None
    ]
    assert len(months) == len({*months}), "nor twice in the calendar month that it is sold in"


@pytest.mark.slow
@pytest.mark.parametrize("prices", ["GOOG"], indirect=True)
def test_however_orders_are_filled_a_signal_sells_no_more_than_it_asked_for_at_first(
    prices: Closes,
) -> None:
    replay = Replay(prices, ExitTerms(), filled=3).run()
    completed = [orders for orders in replay.by_signal() if len(orders) > 1]

    assert completed, "some were completed"
    for orders in completed:
        sold = sum((order.sold for order in orders), Decimal(0))
        assert sold <= orders[0].asked
