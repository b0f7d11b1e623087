"""Sentiment by rules: the lexicon's tone of each headline, no source heard above its share."""

from collections.abc import Sequence

from contracts.sentiment import (
    ONE_SOURCE_SCORE_MAX,
    Candidate,
    Headline,
    MoodDraft,
    SentimentDraft,
    SignalDigest,
)
from libs.llm.rules.rule_set import Found, RuleSet, TaskData, confidence, said
from libs.quant.lexicon import tone

HEADLINES_FOR_FULL_CONFIDENCE = 5
"""Five headlines that agree are a mood; one is an anecdote."""
MOOD_SCORE_MIN = 0.15
"""A mean tone nearer to 0 than this is no mood."""
QUOTES_MAX = 3


def answer(task: TaskData, found: Found) -> SentimentDraft:
    """Tickers by score times confidence, best first."""
    del found
    digest = SignalDigest.model_validate(task["signal_digest"])
    views = [_view(candidate) for candidate in digest.candidates]
    ranked = sorted(views, key=lambda view: -view.score * view.confidence)
    heard = [view for view in views if view.confidence > 0]
    return SentimentDraft(
        tickers=tuple(ranked), market_mood=_mood(heard), notes=said(_notes(views, heard))
    )


def _view(candidate: Candidate) -> MoodDraft:
    tones = [(headline, tone(headline.title)) for headline in candidate.headlines]
    toned = [(headline, value) for headline, value in tones if value]
    score = _score(tones)
    # Headlines without a word of the lexicon were read and said nothing: no confidence in a score.
    sure = len(toned) / max(HEADLINES_FOR_FULL_CONFIDENCE, len(tones)) if toned else 0.0
    return MoodDraft(
        ticker=candidate.ticker,
        score=round(score, 3),
        confidence=confidence(sure),
        key_quotes=tuple(headline.title for headline, _ in toned[:QUOTES_MAX]),
        rationale=said(f"lexicon tone, {len(toned)} scored of {len(tones)} headlines"),
    )


def _score(tones: Sequence[tuple[Headline, float]]) -> float:
    """The mean over sources of each source's mean tone, capped where only one was heard."""
    sources: dict[str, list[float]] = {}
    for headline, value in tones:
        sources.setdefault(headline.source, []).append(value)
    means = [sum(values) / len(values) for values in sources.values()]
    score = sum(means) / len(means)
    if len(means) == 1:
        return max(-ONE_SOURCE_SCORE_MAX, min(ONE_SOURCE_SCORE_MAX, score))
    return score


def _mood(heard: Sequence[MoodDraft]) -> str:
    if not heard:
        return "unknown"
    mean = sum(view.score for view in heard) / len(heard)
    if abs(mean) < MOOD_SCORE_MIN:
        return "neutral"
    return "positive" if mean > 0 else "negative"


def _notes(views: Sequence[MoodDraft], heard: Sequence[MoodDraft]) -> str:
    if not heard:
        return "no headline could be scored; the ranking is the digest's order"
    return f"{len(heard)} scored by headlines; {len(views)} tickers in all"


RULES = RuleSet(answer=answer)
