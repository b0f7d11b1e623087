"""Which candidates make the digest, in which order, and what is dropped with which reason. Pure."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pydantic import AwareDatetime, Field

from contracts.reasons import CORRECTED_MAX, Reason
from contracts.sentiment import (
    CANDIDATES_MAX,
    ONE_SOURCE_SCORE_MAX,
    QUOTES_MAX,
    Candidate,
    DroppedTicker,
    DropRule,
    Headline,
    SentimentDraft,
    SignalDigest,
    Slot,
    SourceReport,
    TickerSentiment,
    UnscoredTicker,
)
from contracts.types import Failure, Name, ShortText, Ticker, Value, shortened
from libs.facts.compose import NO_REASON, Cited, argued, own_words, settled
from libs.facts.fact import FactIndex
from libs.llm.naming import repeated, strangers
from libs.runtime.untrusted import clean_line

SCREENER, NEWS, EARNINGS = "screener", "news", "earnings"
UNHEARD = "unknown"
"""The mood where too little was heard."""
UNANSWERED = "the model gave no score of it"
SLOT_SHARES: Mapping[str, float] = {SCREENER: 0.4, EARNINGS: 0.1}
"""Shares of the digest kept for a source's own finds; what it does not fill goes to the others."""
DROPPED_MAX = 500
REASON_CHARS_MAX = 400
HEADLINE_CHARS_MAX = 200
SHORT_CHARS_MAX = 300


class Mention(Value):
    """One source names one ticker: `score` 0..1 within that source, `mentions` where it counts.

    `known_at` is the time of the newest datum it rests on; a mention without one is dropped.
    """

    ticker: Ticker
    name: ShortText = ""
    sector: ShortText = "unknown"
    score: float = Field(ge=0.0, le=1.0)
    mentions: int = Field(default=0, ge=0)
    reason: ShortText = ""
    known_at: AwareDatetime | None = None


class SourceAnswer(Value):
    """One source's answer: its mentions, those not fit for use, or why it could not answer; and
    what is to be known of the prices that it saw."""

    name: Name
    mentions: tuple[Mention, ...] = ()
    dropped: tuple[DroppedTicker, ...] = ()
    error: Failure | None = None
    price_notes: tuple[ShortText, ...] = ()

    @property
    def report(self) -> SourceReport:
        """The answer as the digest tells it."""
        return SourceReport(name=self.name, ok=self.error is None, error=self.error)


@dataclass(frozen=True)
class Selection:
    """The candidates in their order, and the tickers that were named and left out."""

    candidates: tuple[Candidate, ...]
    dropped: tuple[DroppedTicker, ...]


def select(
    answers: Sequence[SourceAnswer], requested: Sequence[str] | None, refused: Mapping[str, str]
) -> Selection:
    """At most CANDIDATES_MAX candidates: those of two or more sources first, then by slots.

    `wanted` restricts them to a universe; `refused` are its tickers that the market does not know,
    with the reason.
    """
    merged = _in_requested_order(_merge(answers), requested or ())
    chosen = _choose(sorted(merged, key=_rank))
    tickers = {candidate.ticker for candidate in chosen}
    named = {candidate.ticker for candidate in merged}
    unfit = {item.ticker for answer in answers for item in answer.dropped}
    known = named | unfit | refused.keys()
    unnamed = [name for name in requested or () if name not in known]
    dropped = [
        *(dropped_by(DropRule.ASKED_WITHOUT_PRICE, *entry) for entry in refused.items()),
        *_unfit(answers, named | refused.keys()),
        *(dropped_by(DropRule.UNNAMED, name, "no source named it") for name in unnamed),
        *(
            dropped_by(DropRule.FULL, item.ticker, f"below the best {CANDIDATES_MAX}")
            for item in sorted(merged, key=_rank)
            if item.ticker not in tickers
        ),
    ]
    return Selection(tuple(chosen), tuple(dropped[:DROPPED_MAX]))


def dropped_by(rule: DropRule, ticker: str, reason: str) -> DroppedTicker:
    """A dropped ticker with its rule and, cut to what a digest holds, its reason."""
    return DroppedTicker(ticker=ticker, reason=shortened(reason, REASON_CHARS_MAX), rule=rule)


def with_headlines(
    candidates: Sequence[Candidate], headlines: Mapping[str, Sequence[Headline]]
) -> tuple[Candidate, ...]:
    """The candidates with what was written about each."""
    return tuple(
        candidate.model_copy(update={"headlines": tuple(headlines.get(candidate.ticker, ()))})
        for candidate in candidates
    )


def headline(title: str, source: str, url: str, published_at: datetime) -> Headline:
    """A headline whose untrusted text is one clean line of bounded length."""
    return Headline(
        title=clean_line(title, HEADLINE_CHARS_MAX),
        source=clean_line(source, HEADLINE_CHARS_MAX),
        url=clean_line(url, SHORT_CHARS_MAX),
        published_at=published_at,
    )


def with_voice(digest: SignalDigest) -> SignalDigest:
    """The digest with those of its candidates that have a headline."""
    voiced = tuple(candidate for candidate in digest.candidates if candidate.headlines)
    return digest.model_copy(update={"candidates": voiced})


def unscored(digest: SignalDigest, scored: Set[str] = frozenset()) -> tuple[UnscoredTicker, ...]:
    """The digest's candidates without a score, each with the reason."""
    silent = {ticker: source.silence for source in digest.sources for ticker in source.unanswered}

    def why(candidate: Candidate) -> str:
        if candidate.headlines:
            return UNANSWERED
        if candidate.ticker in silent:
            return shortened(f"headlines: {silent[candidate.ticker]}", REASON_CHARS_MAX)
        return "no headline was known at as_of"

    return tuple(
        UnscoredTicker(ticker=candidate.ticker, reason=why(candidate))
        for candidate in digest.candidates
        if candidate.ticker not in scored
    )


def sentiment_problems(draft: SentimentDraft, digest: SignalDigest) -> tuple[str, ...]:
    """The problems of a report: tickers nobody offered, or twice."""
    names = [view.ticker for view in draft.tickers]
    return (
        *strangers("tickers", names, digest.tickers, "not in the digest"),
        *repeated("tickers", names),
    )


def sentiment_report(
    draft: SentimentDraft, digest: SignalDigest, facts: FactIndex
) -> dict[str, Any]:
    """The fields of the report: the model's judgements with the digest's facts, the texts that code
    writes of them, and what of the draft did not count.

    Whatever the model says: one hostile headline must not carry a ticker, so a score goes no
    further from 0 than headlines of a single source may move it.
    """
    known = {candidate.ticker: candidate for candidate in digest.candidates}
    mood, notes = own_words(draft.market_mood), own_words(draft.notes)
    texts = {"market_mood": mood, "notes": notes}
    views: list[TickerSentiment] = []
    corrected: list[str] = []
    for place, view in enumerate(draft.tickers):
        candidate = known[view.ticker]
        score, cut = _within_its_sources(view.score, candidate)
        reasons, fell = settled(view.reasons, facts)
        corrected += (f"{view.ticker}: {text}" for text in (*cut, *fell))
        text = argued(reasons, facts, view.ticker)
        texts[f"tickers.{place}.rationale"] = text
        views.append(
            TickerSentiment(
                ticker=view.ticker,
                score=score,
                confidence=view.confidence,
                reasons=reasons,
                key_quotes=_quoted(reasons, facts, view.ticker),
                rationale=text.text or NO_REASON,
                mentions=candidate.mentions,
            )
        )
    cited = Cited.of(texts)
    return {
        "tickers": tuple(views),
        "market_mood": mood.text or UNHEARD,
        "notes": notes.text,
        "figures": cited.figures,
        "loose": cited.loose,
        "corrected": tuple(corrected[:CORRECTED_MAX]),
    }


def _within_its_sources(score: float, candidate: Candidate) -> tuple[float, tuple[str, ...]]:
    """A score as far as its sources may move it, and in a sentence that it was cut."""
    if len({headline.source for headline in candidate.headlines}) > 1:
        return score, ()
    limited = max(-ONE_SOURCE_SCORE_MAX, min(ONE_SOURCE_SCORE_MAX, score))
    note = f"one source only: score {score:g} cut to {limited:g}"
    return limited, () if limited == score else (note,)


def _quoted(reasons: Sequence[Reason], facts: FactIndex, ticker: str) -> tuple[str, ...]:
    """The titles of the ticker's own headlines that these reasons name."""
    named = (
        facts.by_name[name] for reason in reasons for name in (reason.fact, reason.beside) if name
    )
    titles = (str(fact.value) for fact in named if fact.is_published and fact.key.entity == ticker)
    return tuple(dict.fromkeys(titles))[:QUOTES_MAX]


def _unfit(answers: Sequence[SourceAnswer], known: Set[str]) -> list[DroppedTicker]:
    """Mentions by sources that were in vain, once a ticker, without those of which something else
    is told.
    """
    dropped = {item.ticker: item for answer in answers for item in answer.dropped}
    return [item for ticker, item in dropped.items() if ticker not in known]


def _merge(answers: Sequence[SourceAnswer]) -> list[Candidate]:
    mentions: dict[str, dict[str, Mention]] = {}
    for answer in answers:
        for mention in answer.mentions:
            mentions.setdefault(mention.ticker, {})[answer.name] = mention
    return [_candidate(ticker, by_source) for ticker, by_source in mentions.items()]


def _candidate(ticker: str, by_source: Mapping[str, Mention]) -> Candidate:
    mentions = by_source.values()
    return Candidate(
        ticker=ticker,
        name=next((item.name for item in mentions if item.name), ""),
        sector=next((item.sector for item in mentions if item.sector != "unknown"), "unknown"),
        sources=tuple(by_source),
        mentions=sum(item.mentions for item in mentions),
        scores={name: round(item.score, 4) for name, item in by_source.items()},
        reasons={name: item.reason for name, item in by_source.items() if item.reason},
    )


def _in_requested_order(
    candidates: Sequence[Candidate], requested: Sequence[str]
) -> Sequence[Candidate]:
    """In the request's order, by which equals rank: so renaming them all changes nothing. Where it
    names none there is no other order than the alphabet's that all answers have in common."""
    places = {ticker: place for place, ticker in enumerate(requested)}
    return sorted(candidates, key=lambda item: (places.get(item.ticker, len(places)), item.ticker))


def _rank(candidate: Candidate) -> tuple[int, float, int]:
    best = sum(candidate.scores.values())
    return (-len(candidate.sources), -best, -candidate.mentions)


def _choose(ranked: Sequence[Candidate]) -> list[Candidate]:
    """Confirmed ones, then each source's kept slots, then whoever ranks next."""
    chosen = _in(Slot.CONFIRMED, [item for item in ranked if len(item.sources) > 1])
    single = [item for item in ranked if len(item.sources) == 1]
    chosen = chosen[:CANDIDATES_MAX]
    for source, share in SLOT_SHARES.items():
        taken = sum(source in item.sources for item in chosen)
        slots = min(round(CANDIDATES_MAX * share) - taken, CANDIDATES_MAX - len(chosen))
        own = [item for item in single if item.sources == (source,)]
        chosen += _in(Slot.KEPT, own[: max(slots, 0)])
    named = {item.ticker for item in chosen}
    rest = [item for item in single if item.ticker not in named]
    # News fills what is kept for nobody before a source gets more than its share.
    rest.sort(key=lambda item: item.sources[0] in SLOT_SHARES)
    return [*chosen, *_in(Slot.FREE, rest)][:CANDIDATES_MAX]


def _in(slot: Slot, items: Sequence[Candidate]) -> list[Candidate]:
    return [item.model_copy(update={"slot": slot}) for item in items]
