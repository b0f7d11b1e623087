"""The candidates of a cycle and the sentiment of each."""

import operator
from datetime import datetime
from enum import StrEnum
from typing import ClassVar

from pydantic import Field

from contracts.cycle import CycleRequest
from contracts.message import Command, Contract
from contracts.reasons import REASONS_MAX, Reason, Reasoned, Reasons, Words
from contracts.stages import Stage
from contracts.types import Confidence, Failure, Mood, Name, ShortText, Text, Ticker, Value

CANDIDATES_MAX = 25
QUOTES_MAX = 5


class Headline(Value):
    """One piece of news, known at `published_at`. Its text is untrusted."""

    title: ShortText
    source: ShortText = ""
    published_at: datetime
    url: ShortText = ""


class Slot(StrEnum):
    """By which rule a candidate has its place.

    `confirmed`: two or more sources named it. `kept`: in a slot that is kept for its source.
    `free`: in one of those that are kept for nobody, or that others left.
    """

    CONFIRMED = "confirmed"
    KEPT = "kept"
    FREE = "free"


class Candidate(Value):
    """A ticker worth a look: which sources named it, with what score (0..1) and why.

    `slot` is None where an older release chose.
    """

    ticker: Ticker
    name: ShortText = ""
    sector: ShortText = "unknown"
    sources: tuple[Name, ...]
    mentions: int = Field(default=0, ge=0)
    scores: dict[Name, float] = Field(default_factory=dict)
    reasons: dict[Name, ShortText] = Field(default_factory=dict)
    headlines: tuple[Headline, ...] = Field(default=(), max_length=10)
    slot: Slot | None = None


class DropRule(StrEnum):
    """By which rule a ticker was left out.

    `asked_without_price`, `named_without_price`: of the universe, or named by a source, but without
    a price at as_of. `undated`: nothing says that the mention was known. `outside_universe`: not
    asked for. `unnamed`: asked for, but no source named it. `full`: the digest was.
    """

    ASKED_WITHOUT_PRICE = "asked_without_price"
    NAMED_WITHOUT_PRICE = "named_without_price"
    UNDATED = "undated"
    OUTSIDE_UNIVERSE = "outside_universe"
    UNNAMED = "unnamed"
    FULL = "full"


class DroppedTicker(Value):
    """A ticker that was named or asked for and left out, and why.

    `rule` is None where an older release dropped it.
    """

    ticker: Ticker
    reason: ShortText
    rule: DropRule | None = None


NOT_IN_SOURCE = "not_in_source"
"""The code of a market source that has no data of this sort, which is an answer."""


class SourceReport(Value):
    """Whether a candidate source answered. `unanswered` are candidates without its answer: their
    headlines are unknown, which is not "none"."""

    name: Name
    ok: bool
    error: Failure | None = None
    unanswered: tuple[Ticker, ...] = Field(
        default=(), max_length=CANDIDATES_MAX, exclude_if=operator.not_
    )

    @property
    def lacks(self) -> bool:
        """Whether the market source has no data of this sort."""
        return self.error is not None and self.error.code == NOT_IN_SOURCE

    @property
    def silence(self) -> str:
        """Why there is no answer: the source has no such data, or could not be read; empty where
        it answered."""
        if self.error is None:
            return ""
        return self.error.message if self.lacks else f"no answer: {self.error.message}"


class SignalDigest(Contract):
    """The candidates of one cycle, best first, shared by all its pipelines."""

    candidates: tuple[Candidate, ...] = Field(max_length=CANDIDATES_MAX)
    dropped: tuple[DroppedTicker, ...] = Field(default=(), max_length=500)
    sources: tuple[SourceReport, ...] = ()
    market_source: ShortText = ""

    @property
    def tickers(self) -> tuple[str, ...]:
        """The candidates' tickers, best first."""
        return tuple(candidate.ticker for candidate in self.candidates)


class MoodDraft(Value):
    """How one ticker's headlines speak of it: -1 (bad) to 1 (good), and by which of them."""

    ticker: Ticker
    score: Mood
    confidence: Confidence
    reasons: Reasons


class SentimentDraft(Value):
    """The sentiment agent's judgement of the tickers with headlines: ranked, best first."""

    tickers: tuple[MoodDraft, ...] = Field(max_length=CANDIDATES_MAX)
    market_mood: Words
    notes: Words = ""


class TickerSentiment(Value):
    """How one ticker is spoken of, with the mentions that the sources counted.

    Code composed `rationale` from the `reasons`; `key_quotes` are the titles of the ticker's own
    headlines that they name.
    """

    ticker: Ticker
    score: Mood
    confidence: Confidence
    reasons: tuple[Reason, ...] = Field(default=(), max_length=REASONS_MAX)
    key_quotes: tuple[ShortText, ...] = Field(default=(), max_length=QUOTES_MAX)
    rationale: Text = ""
    mentions: int = Field(default=0, ge=0)


class UnscoredTicker(Value):
    """A candidate without a score, and why. This is not a score of 0."""

    ticker: Ticker
    reason: ShortText


class SentimentReport(Reasoned):
    """How the digest's candidates are spoken of: each is scored, or `unscored` with the reason.

    Where none has a headline no model is asked, and all are unscored.
    """

    tickers: tuple[TickerSentiment, ...] = Field(max_length=CANDIDATES_MAX)
    market_mood: ShortText
    notes: Text = ""
    unscored: tuple[UnscoredTicker, ...] = Field(default=(), max_length=CANDIDATES_MAX)


class BuildDigest(Command):
    """Find the candidates. One for the whole cycle."""

    request: CycleRequest


class ScoreSentiment(Command):
    """Read the digest's headlines and rank its tickers."""

    STAGE: ClassVar[Stage | None] = "sentiment"

    signal_digest: SignalDigest


ONE_SOURCE_SCORE_MAX = 0.5
"""Headlines of a single source, however many, move a score no further than this."""
