"""Fills of many orders at once: the paper broker's terms on arrays.

`whole` counts as the broker books (whole shares, prices in whole cents against the trader, fees up
to the cent); without it fractions of shares and cents are kept, which is what adjusted prices of
long ago need: a cent is a lot of a price that later splits have made small.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from libs.quant.costs import affordable, fee_on, slipped

Array = npt.NDArray[np.float64]

# A price that is a whole number of cents must not be rounded up for the last bit of a float.
_BLUR = 1e-6


@dataclass(frozen=True, slots=True)
class Terms:
    """Fee and slippage in basis points, and whether shares and cents are whole."""

    fee_bps: float = 0.0
    slippage_bps: float = 0.0
    whole: bool = False

    def price(self, opens: Array, side: Array) -> Array:
        """The fill price of a share; `side` is 1 for a buy, -1 for a sale."""
        price = slipped(opens, np.array(self.slippage_bps), side)
        if not self.whole:
            return price
        sold = np.maximum(np.floor(price * 100 + _BLUR), 1.0)
        return np.where(side > 0, np.ceil(price * 100 - _BLUR), sold) / 100

    def value(self, quantity: Array, price: Array) -> Array:
        """The traded value."""
        value = quantity * price
        return np.rint(value * 100) / 100 if self.whole else value

    def fee(self, value: Array, side: Array) -> Array:
        """The fee; a sale never costs more than it brings."""
        fee = fee_on(value, np.array(self.fee_bps))
        if self.whole:
            fee = np.ceil(fee * 100 - _BLUR) / 100
        return np.where(side < 0, np.minimum(fee, value), fee)

    def shares(self, wanted: Array) -> Array:
        """The part of the wanted shares that can be ordered."""
        return np.floor(wanted + _BLUR) if self.whole else wanted

    def affordable(self, cash: Array, price: Array) -> Array:
        """The most shares that `cash` (not negative) pays with their fee."""
        shares = self.shares(affordable(cash, price, np.array(self.fee_bps)))
        while self.whole:
            value = self.value(shares, price)
            over = (value + self.fee(value, np.ones_like(value)) > cash + _BLUR) & (shares > 0)
            if not over.any():
                break
            shares = shares - over
        return shares
