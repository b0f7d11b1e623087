"""Tools of the user's: what a function is asked about, and how it is offered to models."""

from datetime import date
from typing import Literal

from pydantic import Field

from contracts.facts import EVENTS_MAX, DatedEvent
from contracts.plugins import PluginSource, function_of
from contracts.types import Currency, ShortText, Ticker, Value

TOOL_BARS_MAX = 400


class OwnTool(PluginSource):
    """A tool of the user's, as it is offered to models in one step. Without a `description` it is
    not offered, for the `problem`."""

    description: ShortText = ""
    problem: ShortText = ""

    @property
    def name(self) -> str:
        """As models call it."""
        return function_of(self.plugin)


class DayBar(Value):
    """One session's prices, adjusted for splits and dividends up to as_of, and its volume."""

    session: date
    open: float
    high: float
    low: float
    close: float
    volume: float


class ToolQuestion(Value):
    """A ticker that a model asks a tool of the user's about. All of it is known at as_of's close.

    Prices are in the `currency` that the ticker trades in; `price` is the close. `measured_risk`
    is 0 to 10. `bars` are the last sessions, oldest first, the last one as_of's; `events` are dated
    headlines (untrusted text), filings and reports. Versions are as of `BuyQuestion`.
    """

    version: Literal[1] = 1
    as_of: date
    ticker: Ticker
    name: ShortText = ""
    currency: Currency
    sector: ShortText
    price: float
    measured_risk: float
    atr: float | None = None
    report_on: date | None = None
    bars: tuple[DayBar, ...] = Field(default=(), max_length=TOOL_BARS_MAX)
    events: tuple[DatedEvent, ...] = Field(default=(), max_length=EVENTS_MAX)
