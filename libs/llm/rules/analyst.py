"""The analyst by rules: all market tools on the plan's assets, then scores by stated thresholds."""

from collections.abc import Mapping, Sequence
from datetime import date

from pydantic import JsonValue

from contracts.research import FindingDraft, PlanDraft, ResearchDraft
from contracts.sentiment import Candidate, SignalDigest
from libs.llm.rules.rule_set import Ask, Found, RuleSet, TaskData, numbers, said
from libs.llm.rules.technical import VOTES_MAX, risk_score, vote

HISTORY_DAYS = 63
"""A quarter of sessions: the fall from its high is what a holder of today feels."""
NEWS_ITEMS = 10
TICKER_TOOLS: tuple[tuple[str, Mapping[str, JsonValue]], ...] = (
    ("get_stock_price", {}),
    ("get_technical_indicators", {}),
    ("get_stock_history", {"days": HISTORY_DAYS}),
    ("get_fundamentals", {}),
    ("get_news", {"max_items": NEWS_ITEMS}),
    ("get_earnings", {}),
)
EARNINGS_DAYS = 7
"""A report due within a week can move the price by more than its trend."""
EARNINGS_RISK = 1.0
PE_CHEAP, PE_DEAR = 15.0, 30.0
"""About the long-run average of large shares, and twice that."""
MARGIN_GOOD_PCT, MARGIN_POOR_PCT = 15.0, 5.0
DEBT_LOW, DEBT_HIGH = 0.5, 2.0
"""Debt to equity below half is easily carried; above two, lenders own more than holders."""
FUNDAMENTALS_NEUTRAL = 5.0
FUNDAMENTALS_STEP = 1.5
SEARCHED_CHARS_MAX = 60


def ask(task: TaskData) -> tuple[Ask, ...]:
    """Six tools a ticker, the calendar, and peers of the leading sector: 62 calls at most."""
    plan = PlanDraft.model_validate(task["plan"])
    each = [
        Ask(tool, {"ticker": ticker, **extra})
        for tool, extra in TICKER_TOOLS
        for ticker in plan.assets
    ]
    sector = _candidates(task)[plan.assets[0]].sector if plan.assets[0] in _candidates(task) else ""
    search = [Ask("search_eu_stocks", {"query": sector[:SEARCHED_CHARS_MAX]})] if sector else []
    return (*each, Ask("get_earnings_calendar", {}), *search)


def answer(task: TaskData, found: Found) -> ResearchDraft:
    """A finding for every asset that has a price; the notes name the others and what was absent."""
    plan = PlanDraft.model_validate(task["plan"])
    as_of = date.fromisoformat(str(task["as_of"]))
    candidates = _candidates(task)
    priced = [name for name in plan.assets if found.result("get_stock_price", name)]
    findings = tuple(_finding(name, candidates, found, as_of) for name in priced)
    return ResearchDraft(
        tickers=findings,
        research_notes=said(_notes(plan.assets, priced, found)),
    )


def _candidates(task: TaskData) -> dict[str, Candidate]:
    digest = SignalDigest.model_validate(task["signal_digest"])
    return {candidate.ticker: candidate for candidate in digest.candidates}


def _finding(
    ticker: str, candidates: Mapping[str, Candidate], found: Found, as_of: date
) -> FindingDraft:
    values = numbers(found.result("get_technical_indicators", ticker).get("values"))
    votes = vote(values)
    # 5 is no direction; each of the five votes moves it by one.
    technical = 5.0 + 5.0 * votes.net / VOTES_MAX if votes.cast else 0.0
    fundamental, fundamental_words = _fundamentals(ticker, found)
    outlook, catalyst, days_to_earnings = _earnings(ticker, found, as_of)
    risk, risk_words = risk_score(values, _drawdown_pct(ticker, found))
    if days_to_earnings is not None:
        risk = min(risk + EARNINGS_RISK, 10.0)
        risk_words += f", earnings in {days_to_earnings} days"
    sector = candidates[ticker].sector if ticker in candidates else "unknown"
    return FindingDraft(
        ticker=ticker,
        fundamental_score=fundamental,
        technical_score=round(technical, 2),
        risk_score=risk,
        news_summary=said(_news(ticker, found)),
        earnings_outlook=said(outlook),
        catalyst=catalyst,
        sector_peers=_peers(ticker, sector, candidates, found),
        summary=said(
            f"technical {technical:.1f}: {'; '.join(votes.words) or 'no indicators'}. "
            f"Fundamental {fundamental:.1f}: {fundamental_words}. Risk {risk:.1f}: {risk_words}."
        ),
        evidence=found.ids(ticker)[:20],
    )


def _fundamentals(ticker: str, found: Found) -> tuple[float, str]:
    """0 to 10, 5 where the figures are ordinary; 0 with the reason where there are no figures."""
    figures = numbers(found.result("get_fundamentals", ticker).get("figures"))
    if not figures:
        why = found.why_not("get_fundamentals") or "nothing had been reported at as_of"
        return 0.0, f"no fundamentals, so nothing is scored ({why})"
    steps = [
        _step(figures.get("pe_ratio"), good_below=PE_CHEAP, poor_above=PE_DEAR),
        -_step(
            figures.get("profit_margin_pct"), good_below=MARGIN_POOR_PCT, poor_above=MARGIN_GOOD_PCT
        ),
        _step(figures.get("debt_to_equity"), good_below=DEBT_LOW, poor_above=DEBT_HIGH),
    ]
    names = ("pe_ratio", "profit_margin_pct", "debt_to_equity")
    words = ", ".join(f"{name} {figures[name]:.2f}" for name in names if name in figures)
    return FUNDAMENTALS_NEUTRAL + FUNDAMENTALS_STEP * sum(steps), words or "no usable figures"


def _step(value: float | None, *, good_below: float, poor_above: float) -> int:
    if value is None:
        return 0
    return 1 if value < good_below else -1 if value > poor_above else 0


def _drawdown_pct(ticker: str, found: Found) -> float | None:
    history = found.result("get_stock_history", ticker)
    columns, rows = history.get("columns"), history.get("rows")
    if not isinstance(columns, list) or not isinstance(rows, list) or not rows:
        return None
    place = columns.index("close")
    closes = [float(str(row[place])) for row in rows if isinstance(row, list)]
    return (1 - closes[-1] / max(closes)) * 100


def _news(ticker: str, found: Found) -> str:
    news = found.result("get_news", ticker)
    items = news.get("items")
    if not isinstance(items, list):
        return found.why_not("get_news") or "no news was asked for"
    titles = [str(item.get("title", "")) for item in items[:3] if isinstance(item, dict)]
    return "; ".join(f'"{title}"' for title in titles) or "no headlines known at as_of"


def _earnings(ticker: str, found: Found, as_of: date) -> tuple[str, str, int | None]:
    """The outlook in words; the event and the days to it where a report is due within a week."""
    earnings = found.result("get_earnings", ticker)
    if not earnings:
        return found.why_not("get_earnings") or "earnings were not asked for", "", None
    upcoming = earnings.get("upcoming")
    if not isinstance(upcoming, dict):
        return "no report date known at as_of", "", None
    due = date.fromisoformat(str(upcoming["report_date"]))
    days = (due - as_of).days
    words = f"report due {due}, estimate {upcoming.get('eps_estimate')}"
    if not 0 <= days <= EARNINGS_DAYS:
        return words, "", None
    return words, str(upcoming["event"]), days


def _peers(
    ticker: str, sector: str, candidates: Mapping[str, Candidate], found: Found
) -> tuple[str, ...]:
    """Candidates and search results of the same sector; an unknown sector has no peers."""
    if sector == "unknown":
        return ()
    same = [item.ticker for item in candidates.values() if item.sector == sector]
    matches = found.result("search_eu_stocks").get("matches")
    listed = matches if isinstance(matches, list) else []
    same += [
        str(item["ticker"])
        for item in listed
        if isinstance(item, dict) and item.get("sector") == sector
    ]
    return tuple(name for name in dict.fromkeys(same) if name != ticker)[:20]


def _notes(assets: Sequence[str], priced: Sequence[str], found: Found) -> str:
    parts = [f"{len(priced)} of {len(assets)} assets researched"]
    missing = [name for name in assets if name not in priced]
    if missing:
        parts.append(f"no price for {', '.join(missing)}: {found.why_not('get_stock_price')}")
    absent = {
        tool: found.why_not(tool)
        for tool in ("get_fundamentals", "get_news", "get_earnings", "search_eu_stocks")
        if not found.result(tool)
    }
    parts += [f"{tool}: {why}" for tool, why in absent.items() if why]
    return ". ".join(parts)


RULES = RuleSet(answer=answer, ask=ask)
