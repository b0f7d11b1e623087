"""Handlers of the sentiment service: the digest of a cycle, and each pipeline's view of it."""

from collections.abc import Mapping, Sequence

from contracts.provider import PipelineProblem, ProvidersQuery, ProvidersView
from contracts.reach import OutOfReach, ReachQuery, ReachView
from contracts.sentiment import (
    BuildDigest,
    ScoreSentiment,
    SentimentDraft,
    SentimentReport,
    SignalDigest,
    SourceReport,
)
from libs.facts.desk import digest_facts
from libs.llm.agent import Role
from libs.llm.loop import generate
from libs.llm.prompt import digest_for_prompt, task_for
from libs.llm.provider import Provider
from libs.llm.reasoning import Reasoning
from libs.llm.registry import least_of, problem_of, standings, unproven_of
from libs.market.source import MarketData
from libs.runtime.errors import DeskError
from libs.runtime.journal import Journal
from libs.runtime.model_settings import EndpointSettings
from libs.runtime.nearest import did_you_mean, nearest
from services.sentiment import logic
from services.sentiment.reads import (
    Sources,
    ask_sources,
    headlines_of,
    out_of_reach,
    refused_tickers,
)

NOT_ASKED = "no candidate has a headline, so no model was asked"
"""The note where no headline was heard."""


class NoCandidates(DeskError):
    """No source found a ticker that can be traded at as_of."""

    code = "no_candidates"


class SourcesFailed(DeskError):
    """No candidate source could answer."""

    code = "sources_failed"


class UnknownCandidateSource(DeskError):
    """A request names a candidate source that this desk does not have."""

    code = "unknown_source"


async def tell_providers(
    query: ProvidersQuery,
    *,
    providers: Mapping[str, Provider],
    endpoints: Mapping[str, EndpointSettings],
) -> ProvidersView:
    """Which providers this desk can use. Every pipeline begins in this service, with its keys."""
    problems = [
        (pipeline, problem_of(providers, pipeline) or await unproven_of(providers, pipeline))
        for pipeline in query.pipelines
    ]
    return ProvidersView(
        needs=least_of(providers, [pipeline for pipeline, error in problems if error is None]),
        providers=standings(providers, endpoints),
        problems=tuple(
            PipelineProblem(pipeline=pipeline.name, code=error.code, message=error.message)
            for pipeline, error in problems
            if error is not None
        ),
    )


async def tell_reach(
    query: ReachQuery, *, market: MarketData, sources: Sources, tickers: Sequence[str]
) -> ReachView:
    """Answer which names in a request do not exist, as far as it can be said in REACH_S_MAX."""
    return ReachView(
        sources=tuple(
            _out_of_reach(name, sources) for name in query.sources if name not in sources.by_name
        ),
        tickers=await out_of_reach(market, query.as_of, query.universe, tickers),
    )


def _out_of_reach(name: str, sources: Sources) -> OutOfReach:
    near = nearest(name, sources.by_name)
    text = f"{_no_such_source((name,), sources)}{did_you_mean(near)}"
    return OutOfReach(name=name, code=UnknownCandidateSource.code, message=text, nearest=near)


async def build_digest(
    command: BuildDigest,
    journal: Journal,
    *,
    market: MarketData,
    sources: Sources,
) -> SignalDigest:
    """The candidates of a cycle.

    A source that fails is told in the digest; SourcesFailed where all do. NoCandidates where
    nothing is left, with all the reasons. Headlines are looked up whichever source named a ticker.
    """
    request = command.request
    chosen = _chosen(request.sources, sources)
    refused: dict[str, str] = {}
    if request.universe is not None:
        refused = await refused_tickers(journal, market, command.as_of, request.universe)
    tickers = _wanted(request.universe, refused)
    answers = await ask_sources(journal, sources, chosen, command.as_of, tickers)
    if all(answer.error is not None for answer in answers):
        raise SourcesFailed(
            f"every candidate source failed ({_answers_text(answers)}); choose others"
        )
    selection = logic.select(answers, request.universe, refused)
    if not selection.candidates:
        raise NoCandidates(_why_none(selection, answers))
    candidates = selection.candidates
    reports = [answer.report for answer in answers]
    names = [candidate.ticker for candidate in candidates]
    headlines = await headlines_of(journal, market, command.as_of, names)
    candidates = logic.with_headlines(candidates, headlines.found)
    untold = headlines.failure
    if untold is not None:
        if untold not in [report.error for report in reports]:
            reports.append(SourceReport(name="headlines", ok=False, error=untold))
        silent = {"unanswered": tuple(name for name in names if name not in headlines.found)}
        reports = [r.model_copy(update=silent) if r.error == untold else r for r in reports]
    return SignalDigest.of(
        command,
        candidates=candidates,
        dropped=selection.dropped,
        sources=tuple(reports),
        market_source=", ".join((market.label.in_words, *_price_notes(answers))),
    )


def _price_notes(answers: Sequence[logic.SourceAnswer]) -> Sequence[str]:
    """What is to be known of the prices of the session: from the record, as it was read then."""
    return next((answer.price_notes for answer in answers if answer.price_notes), ())


async def score_sentiment(
    command: ScoreSentiment, journal: Journal, *, role: Role
) -> SentimentReport:
    """How the digest's tickers are spoken of, by the pipeline's model.

    It is asked about those with headlines; where there are none it is not asked at all.
    """
    digest = command.signal_digest
    voiced = logic.with_voice(digest)
    if not voiced.candidates:
        return SentimentReport.of(
            command,
            tickers=(),
            market_mood=logic.UNHEARD,
            notes=NOT_ASKED,
            unscored=logic.unscored(digest),
        )
    task = task_for(
        command,
        facts=digest_facts(voiced),
        about=voiced.tickers,
        signal_digest=digest_for_prompt(voiced),
    )
    reasoning = Reasoning[SentimentDraft](
        task, lambda draft, _: logic.sentiment_problems(draft, voiced)
    )
    draft = await generate(role.played_for(command), task, SentimentDraft, journal, check=reasoning)
    return SentimentReport.of(
        command,
        unscored=logic.unscored(digest, {view.ticker for view in draft.tickers}),
        **logic.sentiment_report(draft, voiced, reasoning.facts),
    )


def _chosen(names: Sequence[str], sources: Sources) -> list[str]:
    unknown = [name for name in names if name not in sources.by_name]
    if unknown:
        raise UnknownCandidateSource(_no_such_source(unknown, sources))
    return list(dict.fromkeys(names or sources.by_name))


def _no_such_source(names: Sequence[str], sources: Sources) -> str:
    known = ", ".join(sources.by_name)
    return f"no candidate source is named {', '.join(names)}; there are {known}"


def _wanted(universe: Sequence[str] | None, refused: Mapping[str, str]) -> list[str] | None:
    return None if universe is None else [name for name in universe if name not in refused]


def _why_none(selection: logic.Selection, answers: Sequence[logic.SourceAnswer]) -> str:
    parts = [f"{item.ticker}: {item.reason}" for item in selection.dropped[:10]]
    why = "; ".join([*parts, _answers_text(answers)])
    return f"no ticker is left to look at ({why}); widen the universe"


def _answers_text(answers: Sequence[logic.SourceAnswer]) -> str:
    return "; ".join(
        f"source {answer.name}: {answer.error.message if answer.error else 'named nothing'}"
        for answer in answers
    )
