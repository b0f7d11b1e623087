"""The reach of the market source and the candidate sources, asked before a cycle begins."""

from datetime import date

from pydantic import Field

from contracts.message import Message
from contracts.types import Name, ShortText, Text, Ticker, Value

REACH_TICKERS_MAX = 500
REACH_SOURCES_MAX = 16


class ReachQuery(Message):
    """Are there such candidate sources, and such tickers at the close of as_of?"""

    as_of: date
    universe: tuple[Ticker, ...] = Field(default=(), max_length=REACH_TICKERS_MAX)
    sources: tuple[Name, ...] = Field(default=(), max_length=REACH_SOURCES_MAX)


class OutOfReach(Value):
    """A name that nothing is known of: why, and what it was probably meant to be.

    `is_known` for a ticker that the source has, only not at as_of.
    """

    name: ShortText
    code: Name
    message: Text
    nearest: str | None = Field(default=None, max_length=100)
    is_known: bool = False


class ReachView(Message):
    """The names that do not exist. Whatever got no answer in time, or that cannot be known, is not
    here.
    """

    tickers: tuple[OutOfReach, ...] = Field(default=(), max_length=REACH_TICKERS_MAX)
    sources: tuple[OutOfReach, ...] = Field(default=(), max_length=REACH_SOURCES_MAX)
