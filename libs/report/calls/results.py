"""The results of operations, on one line. Pure."""

import re
from collections.abc import Callable
from decimal import Decimal

from pydantic import JsonValue

from libs.facts import amounts

AMOUNT = re.compile(r"-?\d{1,20}\.\d{2,20}")


def flat(value: JsonValue, text_of: Callable[[object], str] = str) -> str:
    """A summary in one line: `buys AAPL MSFT, confidence 0.5`; `text_of` words single values."""
    if (price := amounts.recorded(value)) is not None:
        return price
    if isinstance(value, dict):
        return ", ".join(
            f"{key.replace('_', ' ')} {flat(inner, text_of)}"
            for key, inner in value.items()
            if inner != []
        )
    if isinstance(value, list):
        return " ".join(flat(inner, text_of) for inner in value)
    return "" if value is None else text_of(value)


def brief(value: JsonValue) -> str:
    """The same for a list of many: figures rounded, and no path of a file."""
    if isinstance(value, dict):
        value = {key: inner for key, inner in value.items() if not key.endswith("_path")}
    return flat(value, _rounded)


def _rounded(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return amounts.measured(value)
    if isinstance(value, str) and AMOUNT.fullmatch(value):
        return amounts.figure(Decimal(value))
    return str(value)
