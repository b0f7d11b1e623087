"""The cost of a fill, before any rounding: the one home of the formula.

The paper broker computes with Decimal and rounds to shares, ticks and cents (`sizing.py`); the
backtest computes with arrays (`fills.py`). Both begin here. `side` is 1 for a buy, -1 for a sale.
"""

from decimal import Decimal
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:  # who computes with Decimal loads no arrays
    import numpy as np
    import numpy.typing as npt

BPS_PER_ONE = 10_000
Number = TypeVar("Number", Decimal, "npt.NDArray[np.float64]")


def slipped(price: Number, slippage_bps: Number, side: Number) -> Number:
    """The price after slippage against the trader."""
    return price + side * price * slippage_bps / BPS_PER_ONE


def fee_on(value: Number, fee_bps: Number) -> Number:
    """The fee on a traded value."""
    return value * fee_bps / BPS_PER_ONE


def affordable(cash: Number, price: Number, fee_bps: Number) -> Number:
    """The shares, and fractions of them, whose value and fee `cash` pays at `price` (> 0)."""
    return cash / (price * (1 + fee_bps / BPS_PER_ONE))
