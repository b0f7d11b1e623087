"""What is wrong with a plan, a quant's answer or a finding, and which facts belong to it. Pure."""

from collections.abc import Iterable, Mapping, Sequence, Set

from pydantic import JsonValue

from contracts.account import Portfolio
from contracts.facts import CATALYST_DAYS_MAX, DatedEvent, TickerFacts
from contracts.grounding import CORRECTED_MAX
from contracts.research import (
    AssetView,
    FindingDraft,
    PlanDraft,
    QuantDraft,
    ResearchDraft,
    ResearchFinding,
)
from contracts.sentiment import SignalDigest
from contracts.types import Failure
from libs.llm.provider import Evidence
from libs.quant.grounding.facts import Given, read


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


def with_indicators(
    draft: QuantDraft, evidence: Sequence[Evidence]
) -> tuple[tuple[AssetView, ...], dict[str, float]]:
    """The views with the indicators that were computed; those of the only asset for the whole."""
    values = {
        item.result["ticker"]: _numbers(item.result.get("values"))
        for item in evidence
        if isinstance(item.result, dict) and "ticker" in item.result
    }
    views = tuple(
        AssetView(**dict(view), technical_indicators=values.get(view.ticker, {}))
        for view in draft.assets
    )
    return views, views[0].technical_indicators if len(views) == 1 else {}


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
