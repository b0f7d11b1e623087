"""The analyst by rules: all market tools on the plan's assets, then scores by stated thresholds."""

from collections.abc import Iterator, Mapping

from pydantic import JsonValue

from contracts.reasons import ReasonDraft, Speaks
from contracts.research import FindingDraft, PlanDraft, ResearchDraft
from contracts.sentiment import Candidate, SignalDigest
from libs.llm.rules.lexicon import tone
from libs.llm.rules.rule_set import EvidenceIndex, RuleSet, TaskData, ToolRequest, labelled
from libs.llm.rules.technical import VOTES_MAX, risk_score, vote, voted_values

HISTORY_DAYS = 63
"""A quarter of sessions: the fall from its high is what a holder of today feels."""
NEWS_ITEMS = 10
TICKER_TOOLS: tuple[tuple[str, Mapping[str, JsonValue]], ...] = (
    ("get_stock_price", {}),
    ("get_technical_indicators", {}),
    ("get_stock_history", {"days": HISTORY_DAYS}),
    ("get_fundamentals", {}),
    ("get_filings", {}),
    ("get_news", {"max_items": NEWS_ITEMS}),
    ("get_earnings", {}),
)
EARNINGS_DAYS = 7
"""A report due within a week can move the price by more than its trend."""
EARNINGS_RISK = 1.0
SCALES = {
    # About the long-run average of large shares, and twice that.
    "pe_ratio": (15.0, 30.0),
    # At 15 % a year profit doubles in five years; a falling one is a reason of its own.
    "profit_growth_pct": (15.0, 0.0),
    "profit_margin_pct": (15.0, 5.0),
    # Below half it is easily carried; above two, lenders own more than holders.
    "debt_to_equity": (0.5, 2.0),
}
"""Fundamentals that are scored: beyond the first they are good, beyond the second poor."""
GRAVE_ITEMS = {
    "1.03": "bankruptcy",
    "2.04": "its lenders want their money back",
    "2.06": "a large write-down",
    "3.01": "it may lose its listing",
    "4.02": "its accounts cannot be relied on",
}
"""Items of an 8-K that holders have to fear, and why."""
GRAVE_RISK = 2.0
"""Such a filing weighs twice as much as a report that is due: it has happened."""
FILED_DAYS = 30
"""As long as a dated event may be the reason for a risk."""
HEADLINES_READ = 3
FUNDAMENTALS_NEUTRAL = 5.0
FUNDAMENTALS_STEP = FUNDAMENTALS_NEUTRAL / len(SCALES)
"""All figures good is 10, all poor is 0, one that is not known moves nothing."""
SEARCHED_CHARS_MAX = 60


def ask(task: TaskData) -> tuple[ToolRequest, ...]:
    """Seven tools a ticker, the calendar, and peers of the leading sector: 72 calls at most."""
    plan = PlanDraft.model_validate(task["plan"])
    asks = [
        ToolRequest(tool, {"ticker": ticker, **extra})
        for tool, extra in TICKER_TOOLS
        for ticker in plan.assets
    ]
    sector = _candidates(task)[plan.assets[0]].sector if plan.assets[0] in _candidates(task) else ""
    search = (
        [ToolRequest("search_eu_stocks", {"query": sector[:SEARCHED_CHARS_MAX]})] if sector else []
    )
    return (*asks, ToolRequest("get_earnings_calendar", {}), *search)


def answer(task: TaskData, evidence: EvidenceIndex) -> ResearchDraft:
    """A finding for every asset that has a price."""
    plan = PlanDraft.model_validate(task["plan"])
    candidates = _candidates(task)
    priced = [name for name in plan.assets if evidence.number(name, "close") is not None]
    findings = tuple(_finding(name, candidates, evidence) for name in priced)
    return ResearchDraft(
        tickers=findings,
        research_notes=labelled("scores by stated thresholds, each reason a fact that moved one"),
    )


def _candidates(task: TaskData) -> dict[str, Candidate]:
    digest = SignalDigest.model_validate(task["signal_digest"])
    return {candidate.ticker: candidate for candidate in digest.candidates}


def _finding(
    ticker: str, candidates: Mapping[str, Candidate], evidence: EvidenceIndex
) -> FindingDraft:
    votes = vote(voted_values(ticker, evidence))
    # 5 is no direction; each of the five votes moves it by one.
    technical = 5.0 + 5.0 * votes.net / VOTES_MAX if votes.cast else 0.0
    fundamental, figures = _fundamentals(ticker, evidence)
    risk, risks = risk_score(ticker, evidence)
    due, catalyst = _due(ticker, evidence)
    grave = _grave_filings(ticker, evidence)
    risk += EARNINGS_RISK * bool(due) + GRAVE_RISK * bool(grave)
    sector = candidates[ticker].sector if ticker in candidates else "unknown"
    return FindingDraft(
        ticker=ticker,
        fundamental_score=fundamental,
        technical_score=round(technical, 2),
        risk_score=min(risk, 10.0),
        reasons=(
            *votes.reasons(ticker, evidence),
            *risks,
            *grave,
            *figures,
            *due,
            *_reported(ticker, evidence),
            *_news(ticker, evidence),
        ),
        catalyst=catalyst,
        sector_peers=_peers(ticker, sector, candidates, evidence),
    )


def _fundamentals(
    ticker: str, evidence: EvidenceIndex
) -> tuple[float | None, tuple[ReasonDraft, ...]]:
    """0 to 10, 5 where the figures are ordinary; None where none that is scored is known."""
    known = {name: evidence.number(ticker, name) for name in SCALES}
    if all(value is None for value in known.values()):
        return None, ()
    steps = {name: _step(value, *SCALES[name]) for name, value in known.items()}
    reasons = tuple(
        reason
        for name, step in steps.items()
        if step
        for reason in evidence.reason(
            ticker, name, speaks=Speaks.FOR if step > 0 else Speaks.AGAINST
        )
    )
    return FUNDAMENTALS_NEUTRAL + FUNDAMENTALS_STEP * sum(steps.values()), reasons


def _grave_filings(ticker: str, evidence: EvidenceIndex) -> tuple[ReasonDraft, ...]:
    """Filings of the last weeks about what holders have to fear, the newest first."""
    return tuple(
        ReasonDraft(fact=name, speaks=Speaks.AGAINST, why=why)
        for name, text, age in _filings(ticker, evidence)
        for item, why in GRAVE_ITEMS.items()
        if age <= FILED_DAYS and f" {item} " in text
    )


def _filings(ticker: str, evidence: EvidenceIndex) -> Iterator[tuple[str, str, int]]:
    """The facts of filings: name, text, and days since each was filed."""
    rows = evidence.result("get_filings", ticker).get("items")
    ages = {
        str(row["text"]): row["age_days"]
        for row in (rows if isinstance(rows, list) else ())
        if isinstance(row, dict) and isinstance(row["age_days"], int)
    }
    for name, text in evidence.texts(ticker, "filing"):
        yield name, text, ages.get(text, FILED_DAYS + 1)


def _step(value: float | None, good: float, poor: float) -> int:
    """1 beyond `good`, -1 beyond `poor`, whichever of the two is the higher."""
    if value is None:
        return 0
    if good > poor:
        return -_step(value, poor, good)
    return 1 if value < good else -1 if value > poor else 0


def _news(ticker: str, evidence: EvidenceIndex) -> tuple[ReasonDraft, ...]:
    """The newest headlines with a tone."""
    toned = [(name, tone(title)) for name, title in evidence.texts(ticker, "headline")]
    return tuple(
        ReasonDraft(fact=name, speaks=Speaks.FOR if value > 0 else Speaks.AGAINST)
        for name, value in toned[:HEADLINES_READ]
        if value
    )


def _due(ticker: str, evidence: EvidenceIndex) -> tuple[tuple[ReasonDraft, ...], str]:
    """A report within a week as a reason, and the name of its event; nothing where none is due."""
    days = evidence.number(ticker, "days_to_report")
    if days is None or not 0 <= days <= EARNINGS_DAYS:
        return (), ""
    event = next((name for name, _ in evidence.texts(ticker, "announced")), "")
    why = "it can move the price by more than its trend"
    return evidence.reason(ticker, "days_to_report", speaks=Speaks.AGAINST, why=why), event


def _reported(ticker: str, evidence: EvidenceIndex) -> tuple[ReasonDraft, ...]:
    """The last report against what was expected of it, where it was another."""
    actual = next(iter(evidence.texts(ticker, "eps_actual")), None)
    if actual is None:
        return ()
    name, value = actual
    day = name.partition("@")[2]
    beside = f"eps_estimate@{day}"
    expected = evidence.number(ticker, beside)
    if expected is None or expected == float(value):
        return ()
    side = Speaks.FOR if float(value) > expected else Speaks.AGAINST
    return (ReasonDraft(fact=name, beside=f"{ticker}.{beside}", speaks=side),)


def _peers(
    ticker: str, sector: str, candidates: Mapping[str, Candidate], evidence: EvidenceIndex
) -> tuple[str, ...]:
    """Candidates and search results of the same sector; an unknown sector has no peers."""
    if sector == "unknown":
        return ()
    same = [item.ticker for item in candidates.values() if item.sector == sector]
    same += [name for name, its in evidence.all_of("sector") if its == sector]
    return tuple(name for name in dict.fromkeys(same) if name != ticker)[:20]


RULES = RuleSet(answer=answer, ask=ask)
