"""What is wrong with a plan, a quant's answer or a finding, and which facts belong to it. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any

from pydantic import JsonValue

from contracts.account import Portfolio
from contracts.facts import CATALYST_DAYS_MAX, DatedEvent, TickerFacts
from contracts.grounding import CORRECTED_MAX
from contracts.research import (
    AssetView,
    FindingDraft,
    PlanDraft,
    QuantDraft,
    QuantSignal,
    ResearchDraft,
    ResearchFinding,
)
from contracts.sentiment import SignalDigest
from contracts.types import Failure
from libs.facts.compose import Cited, argued, own_words, settled
from libs.facts.fact import Facts
from libs.llm.provider import Evidence
from libs.quant.grounding.facts import Given, read

NO_REASON = "no reason was given"
"""Stands where a judgement names no fact."""


def plan_problems(
    draft: PlanDraft, digest: SignalDigest, portfolio: Portfolio, assets_max: int
) -> tuple[str, ...]:
    """Assets must be candidates of the digest or held, each once, and no more than `assets_max`."""
    count = len(draft.assets)
    too_many = (f"assets: {count} of them, at most {assets_max} can be looked into",)
    offered = {item.ticker for item in digest.candidates}
    offered |= {position.ticker for position in portfolio.positions}
    return (
        *(
            f"assets: {name} is neither in the digest nor held"
            for name in draft.assets
            if name not in offered
        ),
        *_twice("assets", draft.assets),
        *(too_many if count > assets_max else ()),
    )


def quant_problems(draft: QuantDraft, evidence: Sequence[Evidence]) -> tuple[str, ...]:
    """One view for each asset whose indicators were computed, and for no other."""
    given = tickers_of(evidence)
    views = [view.ticker for view in draft.assets]
    return (
        *(f"assets: {name} has indicators but no view" for name in given if name not in views),
        *(f"assets: {name} has no indicators to judge by" for name in views if name not in given),
        *_twice("assets", views),
    )


def research_problems(
    draft: ResearchDraft,
    evidence: Sequence[Evidence],
) -> tuple[str, ...]:
    """Findings stand on evidence: each about a ticker that a tool answered for, citing results."""
    known = {item.id for item in evidence if not is_error(item.result)}
    tickers = tickers_of(evidence)
    return (
        *(
            f"tickers: no tool answered for {finding.ticker}"
            for finding in draft.tickers
            if finding.ticker not in tickers
        ),
        *_twice("tickers", [finding.ticker for finding in draft.tickers]),
        *(
            f"tickers: {finding.ticker} cites {cited[:20]}, which is no result"
            for finding in draft.tickers
            for cited in finding.evidence
            if cited not in known
        ),
        *(
            f"tickers: {finding.ticker} cites no evidence"
            for finding in draft.tickers
            if not finding.evidence
        ),
    )


def quant_report(draft: QuantDraft, evidence: Sequence[Evidence], facts: Facts) -> dict[str, Any]:
    """The fields of the quant's report: its judgements, with the texts that code writes of them."""
    values = {
        item.result["ticker"]: _numbers(item.result.get("values"))
        for item in evidence
        if isinstance(item.result, dict) and "ticker" in item.result
    }
    counts = Counter(view.signal for view in draft.assets)
    counted = ", ".join(f"{counts[kind]} {kind.value}" for kind in QuantSignal if counts[kind])
    whole = own_words(draft.answer)
    whole.say(": " if whole.text else "").say(f"{counted} of {len(draft.assets)}")
    texts = {"reasoning": whole}
    views: list[AssetView] = []
    corrected: list[str] = []
    for place, view in enumerate(draft.assets):
        reasons, fell = settled(view.reasons, facts)
        corrected += (f"{view.ticker}: {each}" for each in fell)
        text = argued(reasons, facts, view.ticker)
        texts[f"assets.{place}.reasoning"] = text
        views.append(
            AssetView(
                ticker=view.ticker,
                signal=view.signal,
                confidence=view.confidence,
                reasons=reasons,
                reasoning=text.text or _no_reason(view.ticker, evidence),
                technical_indicators=values.get(view.ticker, {}),
            )
        )
    cited = Cited.of(texts)
    return {
        "signal": draft.signal,
        "confidence": draft.confidence,
        "reasoning": whole.text,
        "assets": tuple(views),
        "technical_indicators": views[0].technical_indicators if len(views) == 1 else {},
        "figures": cited.figures,
        "loose": cited.loose,
        "corrected": tuple(corrected[:CORRECTED_MAX]),
    }


def _no_reason(ticker: str, evidence: Sequence[Evidence]) -> str:
    """What stands where a view names no fact: so much that code can say."""
    results = (item.result for item in evidence if isinstance(item.result, dict))
    absent = next((each.get("absent") for each in results if each.get("ticker") == ticker), None)
    if not isinstance(absent, dict) or not absent:
        return NO_REASON
    return f"{NO_REASON}; the history is too short for {len(absent)} of its indicators"


def peers_named(evidence: Sequence[Evidence], offered: Iterable[str]) -> Set[str]:
    """Tickers that may be called peers: of a result, or `offered` by the digest. A name that stands
    only in the words of a headline is none.
    """
    return {*offered, *read([Given(e.id, e.tool, e.result) for e in evidence]).tickers}


def findings_of(
    draft: ResearchDraft, facts: Mapping[str, TickerFacts | Failure], peers: Set[str]
) -> tuple[tuple[ResearchFinding, ...], tuple[str, ...]]:
    """The findings with the facts of their tickers, and what was left out of the draft, with why.

    A finding on a ticker that the market has no facts of is left out, a peer that nobody named, and
    a catalyst that is no dated event of the ticker: without them a finding carries less, never
    more.
    """
    kept: list[ResearchFinding] = []
    corrected: list[str] = []
    for finding in draft.tickers:
        known = facts[finding.ticker]
        if isinstance(known, Failure):
            corrected.append(f"{finding.ticker}: the finding was left out: {known.message}")
            continue
        event = _event_named(finding.catalyst, known.events)
        if finding.catalyst.strip() and event is None:
            corrected.append(_no_event(finding, known))
        strangers = [name for name in finding.sector_peers if name not in peers]
        if strangers:
            corrected.append(
                f"{finding.ticker}: {', '.join(strangers)} left out of its peers: no result and no "
                "digest names it"
            )
        kept.append(_with_facts(finding, known, event, strangers))
    return tuple(kept), tuple(corrected[:CORRECTED_MAX])


def _with_facts(
    finding: FindingDraft, known: TickerFacts, event: DatedEvent | None, strangers: Sequence[str]
) -> ResearchFinding:
    judged = dict(finding)
    judged["catalyst"] = event.told if event else ""
    judged["sector_peers"] = tuple(n for n in finding.sector_peers if n not in strangers)
    return ResearchFinding(
        **judged,
        name=known.name,
        exchange=known.exchange,
        current_price=known.price,
        currency=known.currency,
        sector=known.sector,
        measured_risk=known.measured_risk,
        measured_risk_reason=known.risk_reason,
        catalyst_event=event,
    )


def _event_named(said: str, events: Sequence[DatedEvent]) -> DatedEvent | None:
    """The first event whose id stands in what the analyst said: words beside it change nothing."""
    return next((each for each in events if each.id in said.split()), None)


def _no_event(finding: FindingDraft, known: TickerFacts) -> str:
    return (
        f"{finding.ticker}: the catalyst was left out: it names none of the {len(known.events)} "
        f"dated events of {finding.ticker} within {CATALYST_DAYS_MAX} days of as_of"
    )


def _numbers(values: JsonValue) -> dict[str, float]:
    given = values if isinstance(values, dict) else {}
    return {name: float(value) for name, value in given.items() if isinstance(value, int | float)}


def tickers_of(evidence: Iterable[Evidence]) -> tuple[str, ...]:
    """The tickers that at least one result is about, in order."""
    names = [
        str(item.result["ticker"])
        for item in evidence
        if isinstance(item.result, dict) and "ticker" in item.result
    ]
    return tuple(dict.fromkeys(names))


def is_error(result: JsonValue) -> bool:
    """Whether a tool result says that the tool could not answer."""
    return isinstance(result, dict) and "error" in result


def _twice(field: str, names: Sequence[str]) -> tuple[str, ...]:
    return tuple(
        f"{field}: {name} comes twice" for name in dict.fromkeys(names) if names.count(name) > 1
    )
