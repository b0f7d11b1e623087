"""Facts about a ticker that the desk has from its own sources: no model is asked for them."""

from datetime import date, datetime
from enum import StrEnum

from pydantic import Field

from contracts.types import Amount, Currency, Score10, ShortText, Ticker, Value

RISK_UNKNOWN = 10.0
"""The measured risk of what cannot be measured: the worst, whatever an account's limit is."""
UNKNOWN_SECTOR = "unknown"
"""All tickers without a known sector count as one sector of this name."""
EVENTS_MAX = 60
CATALYST_DAYS_MAX = 30
"""How far from as_of a dated event may lie, either way, to be the reason for a risk."""


class EventKind(StrEnum):
    """What happened, or is announced to happen, to a company on a day."""

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


class TickerFacts(Value):
    """One ticker at as_of's close, as the market source has it.

    `price` is the close in `currency`. `measured_risk` is code's own score, 0 to 10 (docs/risk.md),
    and `risk_reason` what was measured. `events` are those that may stand as a catalyst.
    """

    ticker: Ticker
    name: ShortText = ""
    exchange: ShortText = ""
    currency: Currency
    sector: ShortText = UNKNOWN_SECTOR
    price: Amount = Field(gt=0)
    measured_risk: Score10
    risk_reason: ShortText = ""
    events: tuple[DatedEvent, ...] = Field(default=(), max_length=EVENTS_MAX)
