"""The paper broker, asked order by order, comes to the same equity as the backtest."""

from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from uuid import UUID

import numpy as np
import pytest

from contracts.account import Side
from libs.broker.broker import Filled, MarketOrder, Opening
from libs.broker.paper import EXACT, WHOLE, Counting, PaperBroker
from libs.quant.strategy.backtest import Backtest, EntrySizing, backtest
from libs.quant.strategy.fills import FillTerms
from libs.quant.strategy.panel import Panel
from tests.unit.quant.strategy import panels

FEE_BPS, SLIPPAGE_BPS = 5.0, 7.5
CAPITAL = 25_000.0
SHARES_OF_EQUITY = 0.9


@dataclass
class Desk:
    """One ticker's account, traded at the paper broker: decided at a close, filled at an open."""

    counting: Counting
    cash: Decimal = Decimal(CAPITAL)
    held: Decimal = Decimal(0)
    equity: list[Decimal] = field(default_factory=list)
    fills: list[Filled] = field(default_factory=list)

    def run(self, opens: list[Decimal], closes: list[Decimal], sides: np.ndarray) -> None:
        for at, close in enumerate(closes):
            if at:
                self._trade(int(sides[at - 1]), opens[at], closes[at - 1])
            self.equity.append(self.cash + self.held * close)

    def _trade(self, side: int, open_: Decimal, close_before: Decimal) -> None:
        if side == 1 and not self.held:
            position = Decimal(str(SHARES_OF_EQUITY))
            wanted = self.counting.shares(position * self.cash / close_before, True)
            self._ask(Side.BUY, wanted, open_)
        elif side == 0 and self.held:
            self._ask(Side.SELL, self.held, open_)

    def _ask(self, side: Side, quantity: Decimal, open_: Decimal) -> None:
        broker = PaperBroker(
            Decimal(str(FEE_BPS)), Decimal(str(SLIPPAGE_BPS)), counting=self.counting
        )
        order = MarketOrder(UUID(int=1), "AAA", side, quantity)
        opening = Opening(date(2011, 1, 3), open_)
        answer = broker.answer(order, opening, cash=self.cash, held=self.held)
        assert isinstance(answer, Filled)
        self.fills.append(answer)
        sign = 1 if side is Side.BUY else -1
        value = self.counting.value(answer.price, answer.quantity, side is Side.BUY)
        self.cash -= sign * value + answer.fee
        self.held += sign * answer.quantity


def both(prices: Panel, seed: int, counting: Counting) -> tuple[Desk, Backtest]:
    """One long or flat run through the broker and through the backtest."""
    sides = panels.sides(seed, prices, (0, 1))
    desk = Desk(counting)
    opens, closes = (
        [Decimal(float(x)) for x in rows] for rows in (prices.open[0], prices.close[0])
    )
    desk.run(opens, closes, sides[0])
    terms = FillTerms(FEE_BPS, SLIPPAGE_BPS)
    return desk, backtest(prices, sides, EntrySizing(CAPITAL, SHARES_OF_EQUITY), terms)


@pytest.mark.parametrize("seed", range(5))
def test_with_every_fraction_kept_the_equity_is_the_same_to_1e_9(seed: int):
    desk, found = both(panels.walk(seed, 1, 750), seed, EXACT)

    assert len(desk.fills) > 50
    off = np.abs(found.equity - np.array([float(value) for value in desk.equity]))
    assert off.max() < 1e-9


@pytest.mark.parametrize("scale", [1, 100, 10_000])
def test_whole_shares_ticks_and_cents_cost_little_at_any_price(scale: int):
    """The backtest keeps every fraction; the broker's roundings are as small where prices are."""
    walked = panels.walk(1, 1, 250)
    prices = panels.of(walked.open[0] / scale, walked.close[0] / scale)
    desk, found = both(prices, 1, WHOLE)

    assert len(desk.fills) > 20
    assert float(desk.equity[-1]) == pytest.approx(found.equity[-1], rel=0.01)
