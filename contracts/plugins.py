"""Plug-ins: what a function of the user's is asked, and what is kept of its answer."""

import re
from collections.abc import Sequence
from datetime import date
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StringConstraints

from contracts.types import Confidence, Currency, Lot, Name, Quantity, ShortText, Ticker, Value

PLUGINS_MAX = 8
"""Of one kind."""
PLUGIN_POSITIONS_MAX = 500
"""Positions that a plug-in is told of, the largest first."""
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


class PluginVerdict(Value):
    """What a plug-in said of one buy: of `asked` shares at most `ceiling`, 0 for none.

    `failed`: it gave no answer that counts, for the `reason`, so nothing is bought. `sha256` is
    that of its module's source file; empty where there was none.
    """

    plugin: PluginName
    sha256: str = Field(pattern=r"^([0-9a-f]{64})?$")
    ticker: Ticker
    asked: Quantity
    ceiling: Quantity
    reason: ShortText
    failed: bool = False
