"""The limits for which model calls are refused, in words. Pure."""

import re

from contracts.types import NAME_PATTERN

BUDGETS = {
    "operation_tokens_max": "the step's tokens",
    "operation_cost_usd_max": "the step's USD for models",
    "budgets.tokens": "the cycle's tokens",
    "budgets.cost_usd": "the cycle's USD for models",
    "day_tokens_max": "the day's tokens",
    "day_cost_usd_max": "the day's USD for models",
    "study.offline": "the study asks no model",
}
"""By the limit that was reached, as an event names it."""

_RATE = re.compile(rf"providers\.(?P<name>{NAME_PATTERN.strip('^$')})\.rate")


def words(field: str | None) -> str:
    """The limit that was reached; empty where it is none that this version knows."""
    if rate := _RATE.fullmatch(field or ""):
        return f"the rate of {rate['name']}"
    return BUDGETS.get(field or "", "")
