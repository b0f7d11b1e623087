"""Plug-ins: what a function of the user's is asked, and what is kept of its answer."""

import re
from collections.abc import Callable, Sequence
from datetime import date
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StringConstraints, TypeAdapter, ValidationError

from contracts.types import (
    Confidence,
    Currency,
    Lot,
    Name,
    Percent,
    Quantity,
    ShortText,
    Ticker,
    Value,
)

PLUGINS_MAX = 8
"""Of one kind."""
PLUGIN_POSITIONS_MAX = 500
"""Positions that a plug-in is told of, the largest first."""
MONTHS_MAX = 24
EXIT_PLUGINS_MAX = 4
"""Beside the desk's own exit rules, of which a position has six at most."""
TOOL_PLUGINS_MAX = 4
EXIT_RULES = frozenset(
    {
        "momentum",
        "regime",
        "stop_loss",
        "take_profit",
        "hold_period",
        "trailing_stop",
        "stop_order",
        "by_hand",
    }
)
"""Names that exit rules and sales of the desk's own have."""
_FUNCTION = TypeAdapter[str](Name)
_NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*", re.ASCII)


def _names_a_function(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ValueError("a plug-in is named package.module:function, as my_rules:penny_stock")
    return name


PluginName = Annotated[str, StringConstraints(max_length=100), AfterValidator(_names_a_function)]
"""Where the function is: `package.module:function`."""


def _each_once(names: Sequence[str]) -> Sequence[str]:
    if len(set(names)) < len(names):
        raise ValueError("a plug-in is named twice")
    return names


PluginNames = Annotated[
    tuple[PluginName, ...], Field(max_length=PLUGINS_MAX), AfterValidator(_each_once)
]


def function_of(plugin: str) -> str:
    """The name of a plug-in's function: an exit rule and a tool are named by it."""
    return plugin.rpartition(":")[2]


def is_a_desk_tool(name: str) -> bool:
    """Whether a tool's name is kept for those of the desk."""
    return name.startswith(("get_", "search_"))


def _each_a_rule(names: Sequence[str]) -> Sequence[str]:
    return _each_has_a_name(names, "an exit rule", EXIT_RULES.__contains__)


def _each_a_tool(names: Sequence[str]) -> Sequence[str]:
    return _each_has_a_name(names, "a tool", is_a_desk_tool)


def _each_has_a_name(
    names: Sequence[str], what: str, is_the_desks: Callable[[str], bool]
) -> Sequence[str]:
    functions = [function_of(name) for name in names]
    for function in functions:
        if is_the_desks(function):
            raise ValueError(
                f"{function} is the name of {what} of the desk's; name the function otherwise"
            )
        try:
            _FUNCTION.validate_python(function)
        except ValidationError:
            raise ValueError(
                f"{function} cannot name {what}: small letters, digits and _, 40 at most"
            ) from None
    if len(set(functions)) < len(functions):
        raise ValueError(f"two functions have the same name, and {what} is named by it")
    return names


ExitPluginNames = Annotated[
    tuple[PluginName, ...], Field(max_length=EXIT_PLUGINS_MAX), AfterValidator(_each_a_rule)
]
ToolPluginNames = Annotated[
    tuple[PluginName, ...], Field(max_length=TOOL_PLUGINS_MAX), AfterValidator(_each_a_tool)
]


class HeldPosition(Value):
    """One position of the account, as a plug-in is told of it."""

    ticker: Ticker
    quantity: float
    price: float
    value: float
    sector: ShortText = ""


class BuyQuestion(Value):
    """A buy that the desk's own rules let pass, as a risk rule of the user's is asked about it.

    Money is in the account's `currency`; `quantity` is in whole lots of `lot` shares. `risk_score`
    is 0 to 10, `confidence` what the trader stated, 0 to 1. `atr` (in the currency that the ticker
    trades in) and `report_on` are None where no source knows them. `cash` is what no order holds.
    A later version may have more fields; one that changes a field has another `version`.
    """

    version: Literal[1] = 1
    as_of: date
    account: Name
    currency: Currency
    equity: float
    cash: float
    ticker: Ticker
    quantity: int
    price: float
    lot: Lot = 1
    sector: ShortText
    risk_score: float
    confidence: Confidence
    atr: float | None = None
    report_on: date | None = None
    positions: tuple[HeldPosition, ...] = Field(default=(), max_length=PLUGIN_POSITIONS_MAX)


class PluginSource(Value):
    """A plug-in that was called. `sha256` is that of its own code: its module, or its whole
    package, with what these import from the desk's folder. Empty where there was none."""

    plugin: PluginName
    sha256: str = Field(pattern=r"^([0-9a-f]{64})?$")


class PluginVerdict(PluginSource):
    """What a plug-in said of one buy: of `asked` shares at most `ceiling`, 0 for none.

    `failed`: it gave no answer that counts, for the `reason`, so nothing is bought.
    """

    ticker: Ticker
    asked: Quantity
    ceiling: Quantity
    reason: ShortText
    failed: bool = False


class ExitQuestion(HeldPosition):
    """A position that an exit rule of the user's is asked about, at as_of's close.

    Money is in the account's `currency`. `close` and `months` are adjusted for splits and
    dividends: `months` has the returns of the last complete months, oldest first, 0.05 for 5%.
    None is what is not known. Versions are as of `BuyQuestion`.
    """

    version: Literal[1] = 1
    as_of: date
    account: Name
    currency: Currency
    equity: float
    average_cost: float
    opened_on: date | None = None
    sessions_held: int | None = None
    close: float | None = None
    months: tuple[float | None, ...] = Field(default=(), max_length=MONTHS_MAX)


class ExitAnswer(Value):
    """What an exit rule of the user's said of one position: to sell `sell_pct` percent of it, 0 for
    nothing. `failed`: it gave no answer that counts, for the `reason`, and sells nothing."""

    sell_pct: Percent
    reason: ShortText
    failed: bool = False


def rule_words(rule: str) -> str:
    """A rule's name as people read it; a plug-in is named as its owner wrote it."""
    return rule if ":" in rule else rule.replace("_", " ")
