"""From money to whole shares, and what trading them costs. Pure; money is Decimal throughout."""

from bisect import bisect_right
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, localcontext

from libs.quant.costs import affordable, fee_on, slipped
from libs.quant.ticks import rounded_to_tick

CENT = Decimal("0.01")
BPS_IN_ONE = Decimal(10_000)
CASH_RESERVE_BPS = Decimal(100)
"""Held back from cash above the price of a buy: fee, slippage and a small gap at the open. What a
stop may lose is counted with it."""
# Wide enough that sums and products of contract amounts (20 digits) are exact; what must be rounded
# is rounded down, so that no allowance is ever exceeded by a rounding.
EXACT_DOWN = Context(prec=60, rounding=ROUND_FLOOR)


def whole_shares(amount: Decimal, price: Decimal) -> Decimal:
    """The most whole shares that `amount` buys at `price` (> 0); 0 for a negative amount."""
    with localcontext(EXACT_DOWN):
        return max(Decimal(0), (amount / price).to_integral_value(ROUND_FLOOR))


def trade_value(price: Decimal, quantity: Decimal) -> Decimal:
    """Price times quantity, exact to the cent (halves to even)."""
    with localcontext(Context(prec=60)):
        return (price * quantity).quantize(CENT)


def fill_value(price: Decimal, quantity: Decimal, *, buying: bool) -> Decimal:
    """The money of a fill before its fee: price times quantity, rounded once to the cent
    against the trader, so that no number of small trades makes money.
    """
    with localcontext(Context(prec=60)):
        return (price * quantity).quantize(CENT, ROUND_CEILING if buying else ROUND_FLOOR)


def trade_fee(value: Decimal, fee_bps: Decimal) -> Decimal:
    """The fee on a traded value, in basis points of it, rounded up to the cent."""
    with localcontext(Context(prec=60)):
        return fee_on(value, fee_bps).quantize(CENT, ROUND_CEILING)


def slipped_price(price: Decimal, slippage_bps: Decimal, *, buying: bool) -> Decimal:
    """The price (at least PRICE_STEP) after slippage against the trader, rounded against the trader
    to its tick. A sale is never priced below one tick.
    """
    with localcontext(Context(prec=60)):
        exact = slipped(price, slippage_bps, Decimal(1 if buying else -1))
        return rounded_to_tick(exact, ROUND_CEILING if buying else ROUND_FLOOR)


def affordable_shares(cash: Decimal, price: Decimal, fee_bps: Decimal) -> Decimal:
    """The most whole shares whose value and fee `cash` pays at `price` (> 0)."""

    def cost(quantity: int) -> Decimal:
        value = fill_value(price, Decimal(quantity), buying=True)
        return value + trade_fee(value, fee_bps)

    with localcontext(EXACT_DOWN):
        # Value and fee are rounded up by less than two cents together.
        most = max(0, int(affordable(cash, price, fee_bps)))
        least = max(0, int(affordable(cash - 2 * CENT, price, fee_bps)))
        return Decimal(bisect_right(range(least + 1, most + 1), cash, key=cost) + least)


def too_small(
    shares: Decimal, value: Decimal, shares_min: int, value_min: Decimal, currency: str
) -> str:
    """Why a position is too small to be begun or kept, `4 is under 5 shares`; empty where it is
    not. A minimum of 0 asks for nothing.
    """
    if shares < shares_min:
        return f"{shares:f} is under {shares_min} shares"
    if value < value_min:
        return f"{value.quantize(CENT):,f} {currency} is under {value_min:,f} {currency}"
    return ""


def cash_hold(price: Decimal, quantity: Decimal, reserve_bps: Decimal) -> Decimal:
    """The cash hold of an open buy: its value at `price` plus a reserve, rounded up to the cent."""
    with localcontext(Context(prec=60)):
        return (price * quantity * (1 + reserve_bps / BPS_IN_ONE)).quantize(CENT, ROUND_CEILING)
