"""The tick of a price: the step in which its listing is quoted. Pure; prices are Decimal.

A fixed step of one cent is 0.004 % of 246 USD, and a hundred times the price of a share at 0.0001.
So the tick falls with the price: it is at most one ten-thousandth of it, never more than a cent,
and never finer than the six places in which prices are stored.
"""

from decimal import ROUND_HALF_UP, Decimal

from contracts.types import Money

PRICE_STEP = Decimal("0.000001")
"""The finest step of a stored price (`contracts.types.Amount` and the tables keep six places)."""
TICK_MAX = Decimal("0.01")
"""The tick of every price from 100 on."""
PLACES_MIN = 2
"""Decimal places that a written price has at least."""
TICK_PLACES = 4
"""A tick is at most 10 ** -TICK_PLACES of the price, where a stored price can be that fine."""
MEASURE_PLACES = 4
"""Decimal places of what is measured in prices, such as an average, from a price of 1 on."""
TICK_PCT_MAX = Decimal(1)
"""Where one tick is more than this percentage of the price, nothing is bought."""


def tick_of(price: Decimal) -> Decimal:
    """The tick of a price (> 0) in its own currency, a power of ten: from PRICE_STEP to a cent."""
    return max(PRICE_STEP, min(TICK_MAX, Decimal(1).scaleb(price.adjusted() - TICK_PLACES)))


def rounded_to_tick(price: Decimal, rounding: str) -> Decimal:
    """The price (> 0) on its tick, rounded as told (a mode of `decimal`); never below one tick.

    With two decimal places, and as many more as it needs.
    """
    tick = tick_of(price)
    rounded = max(tick, price.quantize(tick, rounding))
    cents = rounded.quantize(TICK_MAX)
    return cents if cents == rounded else rounded.normalize()


def is_too_coarse(price: Decimal) -> bool:
    """Whether one tick is more than TICK_PCT_MAX of the price: no fill there is a fair one."""
    return tick_of(price) * 100 > price * TICK_PCT_MAX


def places_of(price: float) -> int:
    """The decimal places that keep five digits of a price (> 0) below 1, and of what is measured in
    such prices; MEASURE_PLACES from 1 on."""
    below_one = -Decimal(str(price)).adjusted() if price > 0 else 0
    return MEASURE_PLACES + max(0, below_one)


def priced(amount: Decimal | float, currency: str) -> Money:
    """An amount that was measured, such as an average: Money that may have any number of places.

    Only for display; what is stored or sent is validated Money.
    """
    exact = amount if isinstance(amount, Decimal) else Decimal(str(amount))
    return Money.model_construct(amount=exact, currency=currency)


def quoted(price: Money) -> str:
    """A price for people, `552.69 GBX`: the digits of its tick with its currency."""
    return f"{digits(price)} {price.currency}"


def digits(price: Money) -> str:
    """A price without its currency, `0.000493`: only for a cell whose column names the currency.

    Rounded to its tick, halves away from zero, with at least two decimal places and without further
    zeros. A price other than zero is never written as zero.
    """
    amount = price.amount
    tick = tick_of(abs(amount)) if amount else TICK_MAX
    shown = amount.quantize(tick, ROUND_HALF_UP) + 0  # plus nothing: a zero has no sign
    if not shown and amount:
        return f"under {PRICE_STEP:f}" if amount > 0 else f"over -{PRICE_STEP:f}"
    whole, _, places = f"{shown:,f}".partition(".")
    return f"{whole}.{places.rstrip('0'):0<{PLACES_MIN}}"
