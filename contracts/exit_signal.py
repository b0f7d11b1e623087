"""Exit signals: whether a position should be sold, how much of it, and why.

A check answers a question about one position. Its answer is plain JSON in the shape that was asked
for, because it is read by people and models; docs/exit-signals.md describes the fields.
"""

from datetime import date
from enum import StrEnum

from pydantic import Field, JsonValue

from contracts.account import OpenOrder, Position
from contracts.message import Message
from contracts.types import Name, Ticker

HOLDINGS_MAX = 1_000
"""Positions that one answer carries."""


class ExitFormat(StrEnum):
    """How much is told: the essence, everything, or what an agent decides by."""

    SUMMARY = "summary"
    FULL = "full"
    AGENT = "agent"


class ExitOutput(StrEnum):
    """Whether the full result is written to a file besides."""

    INLINE = "inline"
    FILE = "file"


class CheckExitSignals(Message):
    """Ask for the exit signals of one position.

    `as_of` None is the session that the account stands at; a later one is refused.
    """

    ticker: Ticker
    account: Name = "main"
    as_of: date | None = None
    format: ExitFormat = ExitFormat.SUMMARY
    output: ExitOutput = ExitOutput.INLINE


class ExitSignals(Message):
    """The answer: an object whose `status` is `success` or `error`."""

    answer: dict[str, JsonValue]


class HoldingsQuery(Message):
    """Ask for what an account holds at the close of `as_of`; None is its clock's session."""

    account: Name
    as_of: date | None = None


class Holdings(Message):
    """What an account holds, and the orders that were open then."""

    account: Name
    as_of: date
    positions: tuple[Position, ...] = Field(default=(), max_length=HOLDINGS_MAX)
    open_orders: tuple[OpenOrder, ...] = ()
