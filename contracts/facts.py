"""Facts about a ticker that the desk has from its own sources: no model is asked for them."""

import operator
from datetime import date, datetime
from enum import StrEnum

from pydantic import Field

from contracts.exit_signal import SIGNALS_MAX, ExitSignal
from contracts.types import Amount, Currency, Lot, Score10, ShortText, Ticker, Value, is_single

RISK_UNKNOWN = 10.0
"""The measured risk of what cannot be measured: the worst, whatever an account's limit is."""
UNKNOWN_SECTOR = "unknown"
"""All tickers without a known sector count as one sector of this name."""
EVENTS_MAX = 60
MOVES_TICKERS_MAX = 100
"""Tickers whose movements are measured at once; what is beyond them counts as not measured."""
MOVES_PAIRS_MAX = MOVES_TICKERS_MAX * (MOVES_TICKERS_MAX - 1) // 2
CATALYST_DAYS_MAX = 30
"""How far from as_of a dated event may lie, either way, to be the reason for a risk."""


class EventKind(StrEnum):
    """The kind of an event that happened, or is announced to happen, to a company on a day."""

    HEADLINE = "headline"
    FILING = "filing"
    REPORT = "report"
    ANNOUNCED = "announced"


class DatedEvent(Value):
    """Something of one ticker with a date, known at `known_at` and so at as_of.

    `on` is the day it happened, or of an announced one the day it is expected. `text` of a headline
    is untrusted. The `id` is made from the rest: whoever asks the same source finds the same.
    """

    id: ShortText
    ticker: Ticker
    kind: EventKind
    on: date
    known_at: datetime
    text: ShortText = ""

    @property
    def line(self) -> str:
        """The event in one line."""
        return (
            f"{self.kind.value} of {self.on}: {self.text}"
            if self.text
            else (f"{self.kind.value} of {self.on}")
        )


class ReportAhead(Value):
    """A report that a company has announced: its day, and how many sessions from as_of on it is
    away; 1 is the next session, 0 is as_of itself, after its close.
    """

    on: date
    sessions: int = Field(ge=0)


class Moves(Value):
    """How tickers moved together: forecasts from the daily returns of `sessions` sessions.

    `volatility_pct` is a year's; `correlations` are the lower triangle without its diagonal, row by
    row in the order of `tickers`. Both are of a covariance that is shrunk towards a scaled identity
    (Ledoit and Wolf 2004). A ticker that is not there has no history that could be measured.
    """

    sessions: int = Field(default=0, ge=0)
    tickers: tuple[Ticker, ...] = Field(default=(), max_length=MOVES_TICKERS_MAX)
    volatility_pct: tuple[float, ...] = Field(default=(), max_length=MOVES_TICKERS_MAX)
    correlations: tuple[float, ...] = Field(default=(), max_length=MOVES_PAIRS_MAX)


class TickerFacts(Value):
    """One ticker at as_of's close, as the market source has it.

    `price` is the close in `currency`. `measured_risk` is code's own score, 0 to 10 (docs/risk.md),
    and `risk_reason` what was measured. `atr` is the average true range of 14 sessions, in
    `currency`; None where the history is too short. `events` are those that may stand as a
    catalyst. `report` is the next report that is announced, and `has_reports` whether the source
    knows of this ticker's reports at all. `issuer` is the same for all share classes
    of one company; empty where the source does not know it. `lot` is how many
    shares are bought together. `exits` are the account's exit rules
    that decide, as they judge a position that is bought at this close; None where they cannot be
    read. `exits_note` says why their file cannot be used now, where rules read before it judged.
    """

    ticker: Ticker
    name: ShortText = ""
    exchange: ShortText = ""
    currency: Currency
    sector: ShortText = UNKNOWN_SECTOR
    price: Amount = Field(gt=0)
    measured_risk: Score10
    risk_reason: ShortText = ""
    atr: Amount | None = Field(default=None, ge=0)
    report: ReportAhead | None = None
    has_reports: bool = False
    issuer: ShortText = ""
    lot: Lot = Field(default=1, exclude_if=is_single)
    exits: tuple[ExitSignal, ...] | None = Field(default=(), max_length=SIGNALS_MAX)
    exits_note: ShortText = Field(default="", exclude_if=operator.not_)
    events: tuple[DatedEvent, ...] = Field(default=(), max_length=EVENTS_MAX)
