"""Checks of a plan, a quant's answer or a finding, and the facts that belong to it. Pure."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pydantic import JsonValue

from contracts.account import Portfolio
from contracts.constraints import words_of
from contracts.facts import CATALYST_DAYS_MAX, DatedEvent, ReportAhead, TickerFacts
from contracts.reasons import CORRECTED_MAX, Reason
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
from contracts.types import Failure, shortened
from libs.facts.compose import NO_REASON, Cited, Prose, argued, own_words, settled, stated
from libs.facts.fact import FactIndex
from libs.facts.market import FIGURES
from libs.llm.naming import THIS_TICKER, repeated, strangers
from libs.llm.provider import ToolEvidence
from libs.market.absence import none_of
from libs.market.errors import NotInSource

HEADLINE = "headline"
EARNINGS = frozenset({"days_to_report", "eps_estimate", "eps_actual", "report", "announced"})
"""Quantities that are told as a finding's outlook on earnings."""
FUNDAMENTALS = frozenset(FIGURES)
EVIDENCE_MAX = 20
ABSENT_CHARS_MAX = 2_000
"""What the tools could not say, all of it."""
NOTES_CHARS_MAX = 4_000
"""The analyst's notes, which stand in one text with that."""
WHY_NOT_CHARS_MAX = 300
"""What one tool could not say, behind a finding's reasons."""


def plan_problems(
    draft: PlanDraft, digest: SignalDigest, portfolio: Portfolio, assets_max: int
) -> tuple[str, ...]:
    """Assets must be candidates of the digest or held, each once, and no more than `assets_max`."""
    held = [position.ticker for position in portfolio.positions]
    offered = [*dict.fromkeys((*digest.tickers, *held))]
    too_many = (f"assets: at most {assets_max} tickers can be looked into; leave some out",)
    return (
        *strangers("assets", draft.assets, offered, "neither in the digest nor held"),
        *repeated("assets", draft.assets),
        *(too_many if len(draft.assets) > assets_max else ()),
    )


def plan_fields(draft: PlanDraft) -> dict[str, Any]:
    """The fields of the plan: the draft's, with its limits and remarks in words."""
    fields = {name: getattr(draft, name) for name in type(draft).model_fields}
    limits, remarks = fields.pop("limits"), fields.pop("remarks")
    return {**fields, "constraints": words_of(limits, remarks)}


def quant_problems(draft: QuantDraft, evidence: Sequence[ToolEvidence]) -> tuple[str, ...]:
    """One view for each asset whose indicators were computed, and for no other."""
    known = tickers_of(evidence)
    views = [view.ticker for view in draft.assets]
    return (
        *(f"assets: {name} has indicators but no view" for name in known if name not in views),
        *strangers("assets", views, known, "no indicators to judge by"),
        *repeated("assets", views),
    )


def research_problems(draft: ResearchDraft, evidence: Sequence[ToolEvidence]) -> tuple[str, ...]:
    """Each finding is about a ticker that a tool answered for, and there is one of each; none at
    all is no answer where tools did answer."""
    tickers = tickers_of(evidence)
    names = [finding.ticker for finding in draft.tickers]
    none = (f"tickers: no finding, and tools answered for {', '.join(tickers)}",)
    return (
        *(none if tickers and not draft.tickers else ()),
        *strangers("tickers", names, tickers, "no tool answered for it"),
        *repeated("tickers", names),
    )


def quant_report(
    draft: QuantDraft, evidence: Sequence[ToolEvidence], facts: FactIndex
) -> dict[str, Any]:
    """The fields of the quant's report: its judgements, with the texts that code writes of them."""
    computed = {
        item.result["ticker"]: item.result
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
        corrected += (f"{view.ticker}: {text}" for text in fell)
        text = argued(reasons, facts, view.ticker)
        own = computed.get(view.ticker, {})
        texts[f"assets.{place}.reasoning"] = text
        views.append(
            AssetView(
                ticker=view.ticker,
                signal=view.signal,
                confidence=view.confidence,
                reasons=reasons,
                reasoning=text.text or _no_reason(view.ticker, evidence),
                technical_indicators=_numbers(own.get("values")),
                currency=own.get("currency"),
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


def _no_reason(ticker: str, evidence: Sequence[ToolEvidence]) -> str:
    """The words of a view that names no fact: as much as code can say."""
    results = (item.result for item in evidence if isinstance(item.result, dict))
    absent = next(
        (result.get("absent") for result in results if result.get("ticker") == ticker), None
    )
    if not isinstance(absent, dict) or not absent:
        return NO_REASON
    return f"{NO_REASON}; the history is too short for {len(absent)} of its indicators"


def research_report(
    draft: ResearchDraft,
    evidence: Sequence[ToolEvidence],
    facts: FactIndex,
    known: Mapping[str, TickerFacts | Failure],
    offered: Iterable[str],
) -> dict[str, Any]:
    """The fields of the analyst's report: its judgements, the facts that the desk has of each
    ticker (`known`), and the texts that code writes of both.

    What is left out of the draft is told: a finding on a ticker that the market has no facts of, a
    peer that neither the digest (`offered`) nor a result names, a catalyst that is no dated event
    of the ticker. Without them a finding carries less, never more.
    """
    peers = {*offered, *(fact.key.entity for fact in facts.by_name.values())}
    findings: list[ResearchFinding] = []
    corrected: list[str] = []
    texts: dict[str, Prose] = {}
    for finding in draft.tickers:
        ticker = known[finding.ticker]
        if isinstance(ticker, Failure):
            corrected.append(f"{finding.ticker}: the finding was left out: {ticker.message}")
            continue
        reasons, fell = settled(finding.reasons, facts)
        own_texts = finding_texts(finding.ticker, reasons, evidence, facts, ticker.report)
        texts |= {f"tickers.{len(findings)}.{name}": text for name, text in own_texts.items()}
        event = _event_named(finding.catalyst, facts, ticker.events)
        strangers = [name for name in finding.sector_peers if name not in peers]
        corrected += (
            f"{finding.ticker}: {text}"
            for text in (*fell, *_left_out(finding, ticker, event, strangers))
        )
        its = {
            **{name: text.text for name, text in own_texts.items()},
            "reasons": reasons,
            "evidence": _calls(reasons, facts),
            "sector_peers": tuple(n for n in finding.sector_peers if n not in strangers),
        }
        findings.append(_with_facts(finding, ticker, event, its))
    words = own_words(draft.research_notes[:NOTES_CHARS_MAX])
    absent = _absent(evidence)
    texts["research_notes"] = words.say(f"{'. ' if words.text and absent else ''}{absent}")
    cited = Cited.of(texts)
    return {
        "tickers": tuple(findings),
        "research_notes": texts["research_notes"].text,
        "sectors_analyzed": tuple(sorted({finding.sector for finding in findings})),
        "figures": cited.figures,
        "loose": cited.loose,
        "corrected": tuple(corrected[:CORRECTED_MAX]),
    }


def _absent(evidence: Sequence[ToolEvidence]) -> str:
    """The answers of tools that could say nothing, in their words, each once."""
    words = (
        str(error.get("message", "")).replace(THIS_TICKER, item.about)
        for item in evidence
        if isinstance(item.result, dict) and isinstance(error := item.result.get("error"), dict)
    )
    return shortened(". ".join(dict.fromkeys(words)), ABSENT_CHARS_MAX)


def _calls(reasons: Sequence[Reason], facts: FactIndex) -> tuple[str, ...]:
    """The tool results that these reasons stand on."""
    named = (facts.by_name[name] for r in reasons for name in (r.fact, r.beside) if name)
    return tuple(dict.fromkeys(fact.call for fact in named if fact.call))[:EVIDENCE_MAX]


def finding_texts(
    ticker: str,
    reasons: Sequence[Reason],
    evidence: Sequence[ToolEvidence],
    facts: FactIndex,
    report: ReportAhead | None = None,
) -> dict[str, Prose]:
    """A finding's texts by their fields: what its reasons say of news, of earnings, of the rest.

    Where they say nothing of one of these, code says what there is, or which of three absences it
    is: the source has nothing, it did not answer, or it was not looked up. `report` is the next one
    that the market source knows, whether the analyst looked it up or not.
    """
    parts: dict[str, list[Reason]] = {"news_summary": [], "earnings_outlook": [], "summary": []}
    for reason in reasons:
        quantity = facts.by_name[reason.fact].key.quantity
        part = (
            "news_summary"
            if quantity == HEADLINE
            else "earnings_outlook"
            if quantity in EARNINGS
            else "summary"
        )
        parts[part].append(reason)
    texts = {name: argued(some, facts, ticker) for name, some in parts.items()}
    own = {fact.key.quantity for fact in facts.of_entity(ticker)}
    if not texts["news_summary"].text:
        texts["news_summary"].say(
            "none of its headlines was a reason"
            if HEADLINE in own
            else absence("get_news", ticker, evidence, "news", "headlines")
        )
    if not texts["earnings_outlook"].text:
        due = [fact for fact in facts.of_entity(ticker) if fact.key.quantity == "days_to_report"]
        texts["earnings_outlook"] = (
            stated(due[:1], ticker)
            if due
            else Prose(f"next report on {report.on}")
            if report
            else Prose(absence("get_earnings", ticker, evidence, "earnings", "next report date"))
        )
    if not texts["summary"].text:
        texts["summary"].say(f"{NO_REASON}.")
    if not own & FUNDAMENTALS:
        why = absence("get_fundamentals", ticker, evidence, "", "figures")
        texts["summary"].say(f" Fundamentals: {why}.")
    return texts


def absence(tool: str, ticker: str, evidence: Sequence[ToolEvidence], what: str, none: str) -> str:
    """Why nothing of a ticker is known by a tool: that its source has no `none` of it where it
    answered, else that it did not answer and why, or that it was not looked up."""
    asked = [item.result for item in evidence if item.tool == tool and ticker == _about(item)]
    results = [result for result in asked if isinstance(result, dict)]
    answer = next((result for result in results if "error" not in result), None)
    if answer is not None:
        return _none_in({**answer, "ticker": ticker}, none)
    error = next((result["error"] for result in results), None)
    if not isinstance(error, dict):
        return f"{what} not looked up".lstrip()
    message = shortened(str(error.get("message", "")), WHY_NOT_CHARS_MAX)
    return message if error.get("code") == NotInSource.code else f"no answer: {message}"


def _none_in(answer: Mapping[str, Any], none: str) -> str:
    """The words of an answer that is no error and has no fact; of figures its own note."""
    figures = answer.get("figures")
    if isinstance(figures, dict):
        notes = figures.get("notes")
        if isinstance(notes, list) and notes:
            return str(notes[0])
        return "what was reported has none of the usual figures"
    if "figures" in answer and (note := answer.get("note")):
        return str(note)
    return none_of(none, answer)


def _about(item: ToolEvidence) -> str:
    """The ticker that a result is about; of an error the one that was asked about."""
    own = item.result.get("ticker") if isinstance(item.result, dict) else None
    return str(own or item.about)


def _event_named(text: str, facts: FactIndex, events: Sequence[DatedEvent]) -> DatedEvent | None:
    """The event of the fact that the analyst named, or whose own id it said."""
    fact = facts.get(text)
    names = {f"{fact.key.quantity}-{fact.key.mark}"} if fact else {*text.split()}
    return next((event for event in events if event.id in names), None)


def _left_out(
    finding: FindingDraft,
    known: TickerFacts,
    event: DatedEvent | None,
    strangers: Sequence[str],
) -> Iterator[str]:
    if finding.catalyst.strip() and event is None:
        yield (
            f"the catalyst was left out: it names none of the {len(known.events)} dated events of "
            f"{finding.ticker} within {CATALYST_DAYS_MAX} days of as_of"
        )
    if strangers:
        yield f"{', '.join(strangers)} left out of its peers: no result and no digest names it"


def _with_facts(
    finding: FindingDraft,
    known: TickerFacts,
    event: DatedEvent | None,
    composed: Mapping[str, Any],
) -> ResearchFinding:
    return ResearchFinding(
        ticker=finding.ticker,
        fundamental_score=finding.fundamental_score,
        technical_score=finding.technical_score,
        risk_score=finding.risk_score,
        catalyst=event.line if event else "",
        catalyst_event=event,
        name=known.name,
        exchange=known.exchange,
        current_price=known.price,
        currency=known.currency,
        sector=known.sector,
        measured_risk=known.measured_risk,
        measured_risk_reason=known.risk_reason,
        atr=known.atr,
        report=known.report,
        has_reports=known.has_reports,
        issuer=known.issuer,
        lot=known.lot,
        exits=known.exits,
        exits_note=known.exits_note,
        **composed,
    )


def _numbers(values: JsonValue) -> dict[str, float]:
    figures = values if isinstance(values, dict) else {}
    return {name: float(value) for name, value in figures.items() if isinstance(value, int | float)}


def tickers_of(evidence: Iterable[ToolEvidence]) -> tuple[str, ...]:
    """The tickers that at least one result is about, in order."""
    names = [
        str(item.result["ticker"])
        for item in evidence
        if isinstance(item.result, dict) and "ticker" in item.result
    ]
    return tuple(dict.fromkeys(names))
