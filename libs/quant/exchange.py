"""From one currency to another, exact and with one way of rounding. Pure."""

from dataclasses import dataclass
from decimal import ROUND_DOWN, Context, Decimal, localcontext

from contracts.types import ExchangeRate, Foreign, Money
from libs.quant.sizing import CENT, EXACT_DOWN
from libs.quant.ticks import PRICE_STEP

RATE_AGE_DAYS_MAX = 7
"""An older rate is none: over the longest holidays markets close for less than a week."""
RATE_STEP = Decimal("0.0000000001")  # contracts.types.ExchangeRate keeps ten
_WIDE = Context(prec=60)


@dataclass(frozen=True, slots=True)
class PriceMark:
    """The close of a share as it trades, and in the currency that was asked for.

    `amount` is None where it trades in another currency and no rate is known.
    """

    price: Decimal
    currency: str
    amount: Decimal | None
    rate: ExchangeRate | None = None

    @property
    def foreign(self) -> Foreign | None:
        """The price before the exchange; None where there was none."""
        if self.rate is None:
            return None
        return Foreign(price=Money(amount=self.price, currency=self.currency), rate=self.rate)


def price_in(price: Decimal, rate: ExchangeRate | None) -> Decimal:
    """A price at `rate`, to six places (halves to even); as it is where `rate` is None."""
    with localcontext(_WIDE):
        return (price * (Decimal(1) if rate is None else rate.rate)).quantize(PRICE_STEP)


def cents_in(amount: Decimal, rate: ExchangeRate | None) -> Decimal:
    """An amount at `rate`, to the cent (halves to even); as it is where `rate` is None."""
    with localcontext(_WIDE):
        return (amount * (Decimal(1) if rate is None else rate.rate)).quantize(CENT)


def purse(cash: Decimal, rate: ExchangeRate | None) -> Decimal:
    """The amount that `cash` pays for abroad: two amounts within it, each exchanged to the cent,
    never cost more than `cash`.
    """
    if rate is None:
        return cash
    with localcontext(EXACT_DOWN):
        # Each of the two roundings adds half a cent at most.
        return max(Decimal(0), ((cash - CENT) / rate.rate).quantize(CENT, ROUND_DOWN))


def inverse(rate: ExchangeRate) -> ExchangeRate:
    """The same rate seen from the other side, to ten places."""
    with localcontext(_WIDE):
        turned = (1 / rate.rate).quantize(RATE_STEP)
    return ExchangeRate(currency=rate.into, into=rate.currency, rate=turned, on=rate.on)


def no_rate(currency: str, into: str) -> str:
    """The reason why an amount cannot be exchanged, for people."""
    return f"no {currency}{into} rate of the last {RATE_AGE_DAYS_MAX} days is known"
