"""Levels as ratios: prices in percent of the present close, money in percent of the equity. Pure.

Every price of a ticker is put on one scale, on which its close at as_of is 100: a table and a fact
of the same price read alike, whichever came first.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal
from statistics import median

from pydantic import JsonValue

SCALE = Decimal(100)
PLACES = Decimal("0.0001")
"""As many places as the tools give of a price."""
DIGITS = 2
"""Significant digits of a fundamental: more would tell whose it is."""
VOLUME_SESSIONS = 20


def exact(value: object) -> Decimal | None:
    """A number, or a text that is one; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str | Decimal):
        return None
    try:
        number = Decimal(str(value))
    except ArithmeticError:
        return None
    return number if number.is_finite() else None


def part_of(value: object, whole: object) -> Decimal | None:
    """A value in percent of a whole above zero, to the tools' places; None where it has none."""
    one, all_of_it = exact(value), exact(whole)
    if one is None or all_of_it is None or all_of_it <= 0:
        return None
    return (one * SCALE / all_of_it).quantize(PLACES, ROUND_HALF_EVEN)


def significant(value: Decimal) -> Decimal:
    """The value to DIGITS significant digits."""
    return value if not value else round(value, DIGITS - 1 - value.adjusted())


def percentile(value: Decimal, others: Sequence[Decimal]) -> Decimal | None:
    """The part of all values, in percent, that are no higher; None where there is nothing else."""
    if len(others) < 2:
        return None
    below = sum(other < value for other in others)
    level = sum(other == value for other in others)
    return significant((Decimal(below) + Decimal(level) / 2) * SCALE / len(others))


def usual_volume(volumes: Sequence[float]) -> float | None:
    """The median of the last sessions' volumes; None where there are none, or nothing traded."""
    recent = volumes[-VOLUME_SESSIONS:]
    usual = median(recent) if recent else 0.0
    return usual if usual > 0 else None


def plain(value: Decimal) -> JsonValue:
    """The number as JSON has it: without noughts behind."""
    return int(value) if value == value.to_integral_value() else float(value)


@dataclass(frozen=True)
class Priced:
    """The present price of a ticker: an amount of a currency."""

    amount: Decimal
    currency: str


@dataclass(frozen=True)
class Scales:
    """The yardsticks of amounts: present prices by ticker, and the account's equity."""

    prices: Mapping[str, Sequence[Priced]]
    equity: Priced | None = None

    def price(self, ticker: str, value: object, currency: str) -> Decimal | None:
        """An amount of money a share, on the ticker's scale; None where its price is not known."""
        for priced in self.prices.get(ticker, ()):
            if priced.currency == currency:
                return part_of(value, priced.amount)
        return None

    def money(self, value: object, currency: str) -> Decimal | None:
        """An amount of money in percent of the equity."""
        if self.equity is None or self.equity.currency != currency:
            return None
        return part_of(value, self.equity.amount)
