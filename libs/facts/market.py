"""Facts of the market tools' results: one function a tool, in a table.

What is worth a name is named here, the weightiest of a ticker first, with what findings usually
need computed beforehand: changes, the distance from extremes. The rest of a result is for reading.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import islice
from typing import Any

from pydantic import JsonValue

from contracts.plugins import function_of
from libs.facts.fact import DAY, DAYS, PERCENT, PLAIN, SHARES, TEXT, Fact, FactValue, Key
from libs.facts.written import number

Result = Mapping[str, Any]

INDICATORS: Mapping[str, tuple[str, str, str]] = {
    "close": ("close", "money", "close"),
    "sma_50": ("sma_50", "money", "50-day average"),
    "sma_200": ("sma_200", "money", "200-day average"),
    "momentum_3m_pct": ("change_63d_pct", PERCENT, "3 months"),
    "momentum_1m_pct": ("change_21d_pct", PERCENT, "1 month"),
    "rsi_14": ("rsi_14", PLAIN, "RSI 14"),
    "macd_histogram": ("macd_histogram", "money", "MACD histogram"),
    "volatility_3m_pct": ("volatility_3m_pct", PERCENT, "volatility a year"),
    "sma_20": ("sma_20", "money", "20-day average"),
    "atr_14": ("atr_14", "money", "average true range (14)"),
    "bollinger_upper": ("bollinger_upper", "money", "upper Bollinger band"),
    "bollinger_lower": ("bollinger_lower", "money", "lower Bollinger band"),
    "bollinger_middle": ("bollinger_middle", "money", "middle Bollinger band"),
    "macd": ("macd", "money", "MACD"),
    "macd_signal": ("macd_signal", "money", "MACD signal"),
    "ema_12": ("ema_12", "money", "12-day exponential average"),
    "ema_26": ("ema_26", "money", "26-day exponential average"),
}
"""Indicators by the name that the tool gives them: the fact's quantity, unit and label."""
SIGNED = frozenset({"momentum_3m_pct", "momentum_1m_pct"})
"""Indicators that are a change."""
FIGURES: Mapping[str, tuple[str, str]] = {
    "pe_ratio": (PLAIN, "P/E"),
    "profit_margin_pct": (PERCENT, "profit margin"),
    "debt_to_equity": (PLAIN, "debt to equity"),
    "operating_margin_pct": (PERCENT, "operating margin"),
    "dividend_yield_pct": (PERCENT, "dividend yield"),
    "market_cap": ("money", "market value"),
    "eps_ttm": ("money", "earnings per share (12 months)"),
    "revenue_ttm": ("money", "revenue (12 months)"),
    "shares_outstanding": (SHARES, "shares outstanding"),
    "profit_growth_pct": (PERCENT, "profit growth on the year"),
    "revenue_growth_pct": (PERCENT, "revenue growth on the year"),
}
ANNUAL_DAYS_MAX, QUARTERLY_DAYS_MAX = 456, 182
"""A year, or a quarter, and the 90 days or so that the next report may take: by then it was due."""
NEWS_DAYS_MAX = 92
OWN_FACTS_MAX = 20
OWN_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
"""How a value of a user's tool is named to be a fact."""
AGE_DAYS_MAX: Mapping[str, int] = {
    "earnings per share (fiscal year)": ANNUAL_DAYS_MAX,
    "filing": ANNUAL_DAYS_MAX,
    "last report": QUARTERLY_DAYS_MAX,
    "reported EPS": QUARTERLY_DAYS_MAX,
    "expected EPS": QUARTERLY_DAYS_MAX,
    "headline": NEWS_DAYS_MAX,
}
"""By the label of a fact with a date of its own: how old it may be at as_of. An older one says
nothing of the company as it is, and is not offered."""
CHANGES: Mapping[int, str] = {1: "1 day", 5: "1 week", 21: "1 month", 63: "3 months"}
"""Changes that are computed of a history: over so many sessions, and what they are called."""


def indicator(name: str, value: float, currency: str) -> str:
    """An indicator's value with its unit; of a ticker that trades in `currency`."""
    _, unit, _ = INDICATORS.get(name, ("", PLAIN, ""))
    return number(value, currency if unit == "money" else unit, signed=name in SIGNED)


@dataclass(frozen=True)
class ToolAnswer:
    """One tool result and the id by which it is called."""

    call: str
    tool: str
    result: JsonValue


def market_facts(results: Sequence[ToolAnswer]) -> tuple[Fact, ...]:
    """The facts of these results, in their order; errors and other tools' results have none, and
    what is too old for its kind is left out."""
    usable = [
        (item.call, layout, item.result)
        for item in results
        if isinstance(item.result, dict) and "error" not in item.result
        if (layout := LAYOUTS.get(item.tool, _own if "plugin" in item.result else None))
    ]
    return tuple(
        fact
        for call, layout, result in usable
        for seal in (_Seal.of(call, result),)
        for fact in layout(seal, result)
        if _is_fresh(fact, seal.session)
    )


def _is_fresh(fact: Fact, session: str) -> bool:
    limit = AGE_DAYS_MAX.get(fact.label)
    if limit is None or fact.key.on is None or not session:
        return True
    return (date.fromisoformat(session[:10]) - fact.key.on).days <= limit


@dataclass(frozen=True)
class _Seal:
    """The source, session and ticker that all facts of one result share."""

    call: str
    ticker: str
    source: str
    session: str
    currency: str

    @classmethod
    def of(cls, call: str, result: Result) -> "_Seal":
        """As the result has it."""
        return cls(
            call,
            str(result.get("ticker") or "market"),
            str(result.get("source", "")),
            str(result.get("session") or result.get("as_of", "")),
            str(result.get("currency", PLAIN)),
        )

    def fact(
        self,
        quantity: str,
        value: FactValue,
        unit: str,
        label: str,
        *,
        on: date | None = None,
        mark: str = "",
        known: str = "",
    ) -> Fact:
        """A fact of this result."""
        key = Key(self.ticker, quantity, on, mark)
        unit = self.currency if unit == "money" else unit
        return Fact(key, value, unit, label, self.source, known or self.session, self.call)


def _price(seal: _Seal, result: Result) -> Iterator[Fact]:
    yield seal.fact("close", float(result["price"]), "money", "close")
    if result.get("day_change_pct") is not None:
        yield seal.fact("change_1d_pct", float(result["day_change_pct"]), PERCENT, CHANGES[1])
    yield seal.fact("volume", int(result["volume"]), SHARES, "volume")


def _indicators(seal: _Seal, result: Result) -> Iterator[Fact]:
    values = result["values"]
    for name, (quantity, unit, label) in INDICATORS.items():
        if values.get(name) is not None:
            yield seal.fact(quantity, float(values[name]), unit, label)


def _history(seal: _Seal, result: Result) -> Iterator[Fact]:
    columns, rows = result["columns"], result["rows"]
    place = {name: columns.index(name) for name in ("session", "close", "high", "low")}
    days = [date.fromisoformat(row[place["session"]]) for row in rows]
    closes = [float(row[place["close"]]) for row in rows]
    if not closes or closes[-1] <= 0:
        return
    for sessions, label in CHANGES.items():
        if len(closes) > sessions:
            before, on = closes[-1 - sessions], days[-1 - sessions]
            change = round((closes[-1] / before - 1) * 100, 4)
            yield seal.fact(f"change_{sessions}d_pct", change, PERCENT, label)
            yield seal.fact("close", before, "money", "close", on=on)
    span = f"{len(closes)}-session"
    yield seal.fact("recent_high", max(closes), "money", f"{span} high")
    yield seal.fact("recent_low", min(closes), "money", f"{span} low")
    fall = round((1 - closes[-1] / max(closes)) * 100, 4)
    yield seal.fact("below_high_pct", fall, PERCENT, f"below its {span} high by")


def _fundamentals(seal: _Seal, result: Result) -> Iterator[Fact]:
    if result.get("sector"):
        yield seal.fact("sector", str(result["sector"]), TEXT, "sector")
    figures = result.get("figures")
    if not figures:
        return
    known = str(figures["known_at"])
    for name, (unit, label) in FIGURES.items():
        if figures.get(name) is None:
            continue
        money = str(figures["currency"]) if unit == "money" else unit
        yield seal.fact(name, figures[name], money, label, known=known)
    if figures.get("eps_fiscal_year") is not None:
        ended = date.fromisoformat(str(figures["fiscal_year_end"]))
        label, unit = "earnings per share (fiscal year)", str(figures["currency"])
        eps = float(figures["eps_fiscal_year"])
        yield seal.fact("eps_fiscal_year", eps, unit, label, on=ended, known=known)
    if figures.get("age_days") is not None:
        label = "age of its figures"
        yield seal.fact("figures_age", int(figures["age_days"]), DAYS, label, known=known)


def _filings(seal: _Seal, result: Result) -> Iterator[Fact]:
    for item in result["items"]:
        kind, _, mark = str(item["event"]).partition("-")
        on = date.fromisoformat(str(item["filed"]))
        known, text = str(item["known_at"]), str(item["text"])
        yield seal.fact(kind, text, TEXT, "filing", on=on, mark=mark, known=known)


def _news(seal: _Seal, result: Result) -> Iterator[Fact]:
    for item in result["items"]:
        kind, _, mark = str(item["event"]).partition("-")
        on = date.fromisoformat(str(item["known_at"])[:10])
        known, title = str(item["known_at"]), str(item["title"])
        fact = seal.fact(kind, title, TEXT, "headline", on=on, mark=mark, known=known)
        by = str(item.get("publisher") or fact.source)
        # Many feeds begin the summary with the title.
        summary = str(item.get("summary", "")).removeprefix(str(fact.value)).lstrip(" .:;,-")
        yield replace(fact, note=summary, source=by)


def _earnings(seal: _Seal, result: Result) -> Iterator[Fact]:
    as_of = date.fromisoformat(str(result["as_of"]))
    if result.get("upcoming"):
        yield from _due(seal, result["upcoming"], as_of, seal.ticker)
    reported = result.get("last_reported")
    if reported:
        known = str(reported["known_at"])
        kind, _, mark = str(reported["event"]).partition("-")
        on = date.fromisoformat(str(reported["report_date"]))
        yield seal.fact(kind, on, DAY, "last report", on=on, mark=mark, known=known)
        for name, label in (("eps_actual", "reported EPS"), ("eps_estimate", "expected EPS")):
            if reported.get(name) is not None:
                unit = str(reported.get("currency") or PLAIN)
                yield seal.fact(name, float(reported[name]), unit, label, on=on, known=known)


def _due(seal: _Seal, report: Result, as_of: date, ticker: str) -> Iterator[Fact]:
    known = str(report["known_at"])
    kind, _, mark = str(report["event"]).partition("-")
    on = date.fromisoformat(str(report["report_date"]))
    its = replace(seal, ticker=ticker)
    yield its.fact("days_to_report", (on - as_of).days, DAYS, "next report in", known=known)
    yield its.fact(kind, on, DAY, "next report", on=on, mark=mark, known=known)
    if report.get("eps_estimate") is not None:
        estimate = float(report["eps_estimate"])
        unit = str(report.get("currency") or PLAIN)
        yield its.fact("eps_estimate", estimate, unit, "expected EPS", known=known)


def _calendar(seal: _Seal, result: Result) -> Iterator[Fact]:
    as_of = date.fromisoformat(str(result["as_of"]))
    for entry in result["entries"]:
        yield from _due(seal, entry, as_of, str(entry["ticker"]))


def _listings(seal: _Seal, result: Result) -> Iterator[Fact]:
    for match in result["matches"]:
        its = replace(seal, ticker=str(match["ticker"]))
        yield its.fact("sector", str(match["sector"]), TEXT, "sector")


def _own(seal: _Seal, result: Result) -> Iterator[Fact]:
    """Of a tool of the user's: the numbers at the top of its answer, each under the tool's name.
    They are as good as the tool."""
    tool = function_of(str(result["plugin"]))
    numbers = {
        name: value
        for name, value in result["values"].items()
        if isinstance(value, int | float)
        and not isinstance(value, bool)
        and OWN_NAME.fullmatch(name)
    }
    for name, value in islice(numbers.items(), OWN_FACTS_MAX):
        unit = PERCENT if name.endswith("_pct") else PLAIN
        label = f"{tool} {name.removesuffix('_pct')}".replace("_", " ")
        yield seal.fact(f"{tool}.{name}", value, unit, label)


LAYOUTS: Mapping[str, Callable[[_Seal, Result], Iterator[Fact]]] = {
    "get_stock_price": _price,
    "get_technical_indicators": _indicators,
    "get_stock_history": _history,
    "get_fundamentals": _fundamentals,
    "get_filings": _filings,
    "get_news": _news,
    "get_earnings": _earnings,
    "get_earnings_calendar": _calendar,
    "search_eu_stocks": _listings,
}
"""What lays out each tool's results."""
