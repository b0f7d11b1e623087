"""Decisions as a file states them, before anything is known of prices."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from enum import StrEnum
from math import inf

from contracts.types import Value, spelled
from libs.files.finding import FileFinding
from libs.market.symbols import can_be_ticker

ROWS_MAX = 100_000
TICKERS_MAX = 200
TIMES_MAX = 5_000
"""Of one file; the coins are drawn anew at each time."""
CELL_CHARS_MAX = 200
FINDINGS_MAX = 20
"""Bad rows that are named; the others are counted."""


class DecisionForm(StrEnum):
    """The words of a file's decisions."""

    WEIGHTS = "weights"
    """Parts of the money, each time for the whole portfolio unless it is said otherwise."""
    TRADES = "trades"
    """Numbers of shares that are bought and sold."""
    RATINGS = "ratings"
    """Words of TradingAgents, of one ticker each."""


@dataclass(frozen=True, slots=True)
class StatedDecision:
    """One decision. `at` is its moment, or the date after whose close it is known.

    A position is brought to `low` where it is less and to `high` where it is more: as parts of the
    money, in a file of ratings as parts of the ticker's slot. `shares` are bought, below 0 sold.
    """

    line: int
    at: datetime | date
    ticker: str
    low: float = -inf
    high: float = inf
    shares: float = 0.0


@dataclass
class StatedFile:
    """A file that was read: its decisions in the file's order, and the rows that cannot be used.
    `written_by` says in words how it was read, `notes` what else its reader has to know."""

    form: DecisionForm
    written_by: str
    decisions: list[StatedDecision] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    findings: list[FileFinding] = field(default_factory=list)
    bad_rows: int = 0

    @property
    def tickers(self) -> Sequence[str]:
        """All tickers, sorted."""
        return sorted({it.ticker for it in self.decisions})

    def refuse(self, finding: FileFinding) -> None:
        """Keep what is wrong with a row; of very many only the number."""
        self.bad_rows += 1
        if len(self.findings) < FINDINGS_MAX:
            self.findings.append(finding)


class Untraded(Value):
    """A decision that was not traded as it stands in the file, and why; `line` 0 where the sale of
    what the file does not name is meant."""

    line: int
    ticker: str
    why: str


class NoTicker(ValueError):
    """A text that can be no ticker."""


def ticker_of(text: str) -> str:
    """The ticker in the desk's spelling. Raises NoTicker."""
    if len(text) > CELL_CHARS_MAX:
        raise NoTicker(f"longer than {CELL_CHARS_MAX} characters")
    ticker = spelled(text)
    if not can_be_ticker(ticker):
        raise NoTicker("no ticker")
    return ticker
