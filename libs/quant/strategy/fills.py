"""Fills of many orders at once: the paper broker's terms on arrays.

Fractions of shares, ticks and cents are kept, and a session's volume sets no limit: the backtest
trades on adjusted prices, whose ticks and volumes were other ones.
"""

from dataclasses import dataclass

import numpy as np

from libs.quant.arrays import Array
from libs.quant.costs import affordable, fee_on, slipped


@dataclass(frozen=True, slots=True)
class FillTerms:
    """Fee and slippage in basis points."""

    fee_bps: float = 0.0
    slippage_bps: float = 0.0

    def price(self, opens: Array, side: Array) -> Array:
        """The fill price of a share; `side` is 1 for a buy, -1 for a sale."""
        return slipped(opens, np.array(self.slippage_bps), side)

    def fee(self, value: Array, side: Array) -> Array:
        """The fee on a traded value; a sale never costs more than it brings."""
        fee = fee_on(value, np.array(self.fee_bps))
        return np.where(side < 0, np.minimum(fee, value), fee)

    def affordable(self, cash: Array, price: Array) -> Array:
        """The most shares that `cash` (not negative) pays with their fee."""
        return affordable(cash, price, np.array(self.fee_bps))
