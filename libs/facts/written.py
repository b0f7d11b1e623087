"""The style in which facts are written, one for the whole product."""

from datetime import date
from decimal import Decimal

from libs.facts import amounts
from libs.facts.fact import DAY, PERCENT, SCORE, TEXT, Fact
from libs.quant.ticks import priced

LARGE = (
    (Decimal(10) ** 12, "trillion"),
    (Decimal(10) ** 9, "billion"),
    (Decimal(10) ** 6, "million"),
)
_HUNDREDTH = Decimal("0.01")
_EVEN_PCT = 0.05
"""Two amounts nearer to one another than this, in percent, are level."""


def value_of(fact: Fact) -> str:
    """`584.00 USD`, `0.000493 USD`, `-2.6%`, `7.5 of 10`, `2012-06-28`, `"a headline"`."""
    value = fact.value
    if isinstance(value, str):
        return f'"{value}"' if fact.is_published else value
    if isinstance(value, date):
        return value.isoformat()
    return number(value, fact.unit, signed=is_change(fact))


def is_change(fact: Fact) -> bool:
    """True for a unit whose sign says more than its size: a change, a return."""
    return fact.unit == PERCENT and fact.key.quantity.startswith(("change_", "gain_", "surprise_"))


def number(value: Decimal | float, unit: str, *, signed: bool = False) -> str:
    """A number in its unit."""
    exact = value if isinstance(value, Decimal) else Decimal(str(value))
    if unit == PERCENT:
        sign = "+" if signed and exact > 0 else ""
        return f"{sign}{amounts.percent(exact)}"
    for size, word in LARGE:
        if abs(exact) >= size:
            return f"{amounts.rounded(exact / size, _HUNDREDTH):,f} {word} {unit}".rstrip()
    if _is_currency(unit):
        return amounts.price(priced(exact, unit))
    whole = isinstance(value, int) or unit not in ("", SCORE)
    text = amounts.quantity(exact) if whole else f"{amounts.rounded(exact, _HUNDREDTH):,f}"
    if not whole and exact and not amounts.rounded(exact, _HUNDREDTH):
        text = amounts.figure(exact)  # what is not zero is not written as zero
    if unit == SCORE:
        text = text.removesuffix("0").removesuffix(".0")
    one = exact == 1 and whole
    return f"{text} {unit.removesuffix('s') if one else unit}".rstrip()


def relation(one: Fact, other: Fact) -> tuple[str, float | None]:
    """How `one` stands to `other`, in words (`2.1% above`, `level with`, `1.2 points below`), and
    the number in them. Empty where their units are not alike.

    Percentages and scores are compared by points, amounts above zero as a part of `other`; where
    one is not above zero, in their unit.
    """
    a, b = one.number, other.number
    if one.unit in (DAY, TEXT) or one.unit != other.unit or a is None or b is None:
        return "", None
    if one.unit in (PERCENT, SCORE) or one.unit.startswith("of "):
        return _by_points(a - b)
    if min(a, b) <= 0:
        size = number(abs(a - b), one.unit)
        return ("level with", None) if a == b else (f"{size} {_side(a - b)}", a - b)
    part = (a / b - 1) * 100
    if abs(part) < _EVEN_PCT:
        return "level with", None
    size = amounts.percent(abs(part))
    return f"{size} {_side(part)}", part


def _by_points(difference: float) -> tuple[str, float | None]:
    size = amounts.rounded(abs(difference), _HUNDREDTH)
    if not size:
        return "level with", None
    points = f"{size.normalize():,f} point{'' if size == 1 else 's'}"
    return f"{points} {_side(difference)}", difference


def _side(difference: float) -> str:
    return "above" if difference > 0 else "below"


def _is_currency(unit: str) -> bool:
    return len(unit) == 3 and unit.isupper()
