"""What is wrong with a plan, a quant's answer or a finding beyond its schema. Pure."""

from collections.abc import Collection, Iterable, Sequence
from datetime import date

from pydantic import JsonValue

from contracts.account import Portfolio
from contracts.research import PlanDraft, QuantDraft, ResearchDraft
from contracts.sentiment import SignalDigest
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
    as_of: date,
    evidence: Sequence[Evidence],
    offered: Collection[str] = (),
) -> tuple[str, ...]:
    """Findings stand on evidence: each about a ticker that a tool answered for, citing results.

    Peers are tickers of a result, or of those `offered` by the digest: a name that stands only in
    the words of a headline is none.
    """
    peers = {*offered, *read([Given(e.id, e.tool, e.result) for e in evidence]).tickers}
    known = {item.id for item in evidence if not is_error(item.result)}
    tickers = tickers_of(evidence)
    wrong_date = () if draft.analysis_date == as_of else (f"analysis_date: must be {as_of}",)
    return (
        *wrong_date,
        *(
            f"tickers: no tool answered for {finding.ticker}"
            for finding in draft.tickers
            if finding.ticker not in tickers
        ),
        *(
            f"tickers: {finding.ticker} has the peer {peer}, which no result and no digest names"
            for finding in draft.tickers
            for peer in finding.sector_peers
            if peer not in peers
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
