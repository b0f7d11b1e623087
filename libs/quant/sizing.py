"""From money to shares, and what trading them costs. Pure; money is Decimal throughout."""

from bisect import bisect_right
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, localcontext
from fractions import Fraction
from math import isqrt

from contracts.types import plain_shares
from libs.quant.costs import affordable, fee_on, slipped
from libs.quant.ticks import rounded_to_tick

CENT = Decimal("0.01")
SUB_CENT = Decimal("0.0001")
SHARE_STEP = Decimal("0.000001")
"""The smallest part of a share that the books keep."""
BPS_IN_ONE = Decimal(10_000)
CASH_RESERVE_BPS = Decimal(100)
"""Held back from cash above the price of a buy: fee, slippage and a small gap at the open. What a
stop may lose is counted with it."""
# Wide enough that sums and products of contract amounts (20 digits) are exact; what must be rounded
# is rounded down, so that no allowance is ever exceeded by a rounding.
EXACT_DOWN = Context(prec=60, rounding=ROUND_FLOOR)
_ONE, _HUNDRED = Decimal(1), Decimal(100)
_SPLIT_PLACES_MAX = 10
"""Further ones of a ratio are a float's."""


def whole_shares(amount: Decimal, price: Decimal, lot: int = 1) -> Decimal:
    """The most whole lots of shares that `amount` buys at `price` (> 0); 0 where it is negative."""
    with localcontext(EXACT_DOWN):
        return max(Decimal(0), whole_lots(amount / price, lot))


def whole_lots(shares: Decimal, lot: int = 1) -> Decimal:
    """Rounded down to whole lots, of whole shares where a lot is one."""
    return (shares / lot).to_integral_value(ROUND_FLOOR) * lot


def kept_shares(shares: Decimal) -> Decimal:
    """Rounded down to what the books can keep."""
    with localcontext(EXACT_DOWN):
        return plain_shares(shares.quantize(SHARE_STEP))


def is_whole(shares: Decimal) -> bool:
    """Whether there is no part of a share."""
    return shares == shares.to_integral_value()


def share_step(held: Decimal, lot: int = 1) -> Decimal:
    """The step of a partial sale: a lot, or all of what is less than one. Where a lot is one share,
    a whole share of a holding of whole shares."""
    if lot > 1:
        return min(held, Decimal(lot))
    return _ONE if is_whole(held) else SHARE_STEP


def part_of(held: Decimal, pct: Decimal, lot: int = 1) -> Decimal:
    """`pct` percent of a holding, rounded down to its `share_step`; all of it is sold as it is, and
    so is any part of less than a lot."""
    if held <= 0 or pct <= 0:
        return Decimal(0)
    if pct >= _HUNDRED or held < lot > 1:
        return plain_shares(held)
    step = share_step(held, lot)
    with localcontext(EXACT_DOWN):
        return plain_shares((held * pct / _HUNDRED / step).to_integral_value(ROUND_FLOOR) * step)


def after_split(shares: Decimal, ratio: Decimal) -> Decimal:
    """The shares after a split of `ratio` new ones for one, exact to 40 digits and rounded down.

    Seven shares at 0.142857 are one: a ratio with so many places is the fraction that it was
    rounded from.
    """
    with localcontext(EXACT_DOWN):
        new = Fraction(shares) * _split_terms(ratio)
        return Decimal(new.numerator) / Decimal(new.denominator)


def _split_terms(ratio: Decimal) -> Fraction:
    """The fraction of small terms that a ratio is the rounding of; else the ratio itself.

    Among fractions whose terms are so small against the places of the ratio no two are as near.
    """
    exact = Fraction(ratio)
    exponent = ratio.as_tuple().exponent
    places = min(-exponent, _SPLIT_PLACES_MAX) if isinstance(exponent, int) else 0
    terms_max = isqrt(10**places) // 10 if places > 0 else 0
    if terms_max < 2:
        return exact
    near = exact.limit_denominator(terms_max)
    return near if near and abs(near - exact) <= Fraction(1, 2 * 10**places) else exact


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


def limit_price(close: Decimal, move_pct_max: Decimal) -> Decimal:
    """The most that a broker may pay for a share: `move_pct_max` above the close, rounded down to
    what US exchanges take (cents, below a dollar hundredths of them); 0 where nothing is left."""
    with localcontext(EXACT_DOWN):
        limit = close * (100 + move_pct_max) / 100
        return limit.quantize(CENT if limit >= 1 else SUB_CENT)


def cash_hold(price: Decimal, quantity: Decimal, reserve_bps: Decimal) -> Decimal:
    """The cash hold of an open buy: its value at `price` plus a reserve, rounded up to the cent."""
    with localcontext(Context(prec=60)):
        return (price * quantity * (1 + reserve_bps / BPS_IN_ONE)).quantize(CENT, ROUND_CEILING)
