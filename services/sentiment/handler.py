"""What the sentiment service answers: the digest of a cycle, and each pipeline's view of it."""

from collections.abc import Mapping, Sequence

from contracts.sentiment import (
    BuildDigest,
    ScoreSentiment,
    SentimentDraft,
    SentimentReport,
    SignalDigest,
)
from libs.llm.agent import Role
from libs.llm.loop import generate
from libs.llm.prompt import task_for
from libs.market.source import MarketData
from libs.runtime.errors import DeskError
from libs.runtime.journal import Journal
from services.sentiment import logic
from services.sentiment.reads import ask_sources, headlines_of, refused_tickers
from services.sentiment.sources import CandidateSource


class NoCandidates(DeskError):
    """No source named a ticker that can be traded at as_of."""

    code = "no_candidates"


class UnknownSource(DeskError):
    """A request names a candidate source that this desk does not have."""

    code = "unknown_source"


async def build_digest(
    command: BuildDigest,
    journal: Journal,
    *,
    market: MarketData,
    sources: Mapping[str, CandidateSource],
) -> SignalDigest:
    """The candidates of a cycle. NoCandidates where nothing is left, with all the reasons."""
    request = command.request
    chosen = _chosen(request.sources, sources)
    refused: dict[str, str] = {}
    if request.universe is not None:
        refused = await refused_tickers(journal, market, command.as_of, request.universe)
    wanted = _wanted(request.universe, refused)
    answers = await ask_sources(journal, chosen, command.as_of, wanted)
    selection = logic.select(answers, request.universe, refused)
    if not selection.candidates:
        raise NoCandidates(_why_none(selection, answers))
    found = selection.candidates
    if any(answer.name == logic.NEWS and answer.error is None for answer in answers):
        names = [candidate.ticker for candidate in found]
        headlines = await headlines_of(journal, market, command.as_of, names)
        found = logic.with_headlines(found, headlines)
    return SignalDigest.of(
        command,
        candidates=found,
        dropped=selection.dropped,
        sources=tuple(answer.report for answer in answers),
        market_source=market.label.description,
    )


async def score_sentiment(
    command: ScoreSentiment, journal: Journal, *, role: Role
) -> SentimentReport:
    """How the digest's tickers are spoken of, by the pipeline's model."""
    digest = command.signal_digest
    draft = await generate(
        role.played_for(command),
        task_for(command, signal_digest=digest),
        SentimentDraft,
        journal,
        check=lambda draft, _: logic.sentiment_problems(draft, digest),
    )
    return SentimentReport.of(command, **dict(draft))


def _chosen(names: Sequence[str], sources: Mapping[str, CandidateSource]) -> list[CandidateSource]:
    unknown = [name for name in names if name not in sources]
    if unknown:
        raise UnknownSource(
            f"no candidate source is named {', '.join(unknown)}; there are {', '.join(sources)}"
        )
    return [sources[name] for name in names] if names else list(sources.values())


def _wanted(universe: Sequence[str] | None, refused: Mapping[str, str]) -> list[str] | None:
    return None if universe is None else [name for name in universe if name not in refused]


def _why_none(selection: logic.Selection, answers: Sequence[logic.SourceAnswer]) -> str:
    parts = [f"{item.ticker}: {item.reason}" for item in selection.dropped[:10]]
    parts += [
        f"source {answer.name}: {answer.error.message if answer.error else 'named nothing'}"
        for answer in answers
    ]
    return f"no ticker is left to look at ({'; '.join(parts)}); widen the universe"
