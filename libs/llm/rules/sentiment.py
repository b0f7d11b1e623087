"""Sentiment by rules: the lexicon's tone of each headline, no source heard above its share."""

from collections.abc import Sequence

from contracts.reasons import REASONS_MAX, ReasonDraft, Speaks
from contracts.sentiment import ONE_SOURCE_SCORE_MAX, MoodDraft, SentimentDraft, SignalDigest
from libs.llm.rules.lexicon import tone
from libs.llm.rules.rule_set import (
    EvidenceIndex,
    Published,
    RuleSet,
    TaskData,
    confidence,
    labelled,
)

HEADLINES_FOR_FULL_CONFIDENCE = 5
"""Five headlines that agree are a mood; one is an anecdote."""
MOOD_SCORE_MIN = 0.15
"""A mean tone nearer to 0 than this is no mood."""
UNHEARD = "no headline could be scored; the ranking is the digest's order"


def answer(task: TaskData, evidence: EvidenceIndex) -> SentimentDraft:
    """Tickers by score times confidence, best first."""
    digest = SignalDigest.model_validate(task["signal_digest"])
    views = [_view(name, evidence.headlines(name)) for name in digest.tickers]
    ranked = sorted(views, key=lambda view: -view.score * view.confidence)
    confident = [view for view in views if view.confidence > 0]
    notes = "the tone of headlines by a lexicon" if confident else UNHEARD
    return SentimentDraft(
        tickers=tuple(ranked), market_mood=_mood(confident), notes=labelled(notes)
    )


def _view(ticker: str, headlines: Sequence[Published]) -> MoodDraft:
    tones = [(headline, tone(headline.title)) for headline in headlines]
    toned = [(headline, value) for headline, value in tones if value]
    # Headlines without a word of the lexicon were read and said nothing: no confidence in a score.
    sure = len(toned) / max(HEADLINES_FOR_FULL_CONFIDENCE, len(tones)) if toned else 0.0
    weightiest = sorted(toned, key=lambda pair: -abs(pair[1]))
    return MoodDraft(
        ticker=ticker,
        score=round(_score(tones), 3),
        confidence=confidence(sure),
        reasons=tuple(_reason(*pair) for pair in weightiest[:REASONS_MAX]),
    )


def _reason(headline: Published, value: float) -> ReasonDraft:
    good = value > 0
    return ReasonDraft(
        fact=headline.name,
        speaks=Speaks.FOR if good else Speaks.AGAINST,
        why="good words" if good else "bad words",
    )


def _score(tones: Sequence[tuple[Published, float]]) -> float:
    """The mean over sources of each source's mean tone, capped where only one was heard."""
    sources: dict[str, list[float]] = {}
    for headline, value in tones:
        sources.setdefault(headline.publisher, []).append(value)
    means = [sum(values) / len(values) for values in sources.values()]
    score = sum(means) / len(means)
    if len(means) == 1:
        return max(-ONE_SOURCE_SCORE_MAX, min(ONE_SOURCE_SCORE_MAX, score))
    return score


def _mood(views: Sequence[MoodDraft]) -> str:
    if not views:
        return "unknown"
    mean = sum(view.score for view in views) / len(views)
    if abs(mean) < MOOD_SCORE_MIN:
        return "neutral"
    return "positive" if mean > 0 else "negative"


RULES = RuleSet(answer=answer)
