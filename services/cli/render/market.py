"""The market tools' answers about a ticker, as a person reads them."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from libs.facts import amounts
from libs.facts.fact import PLAIN
from libs.facts.market import INDICATORS, indicator
from libs.facts.written import number
from libs.market.absence import none_of
from libs.quant.ticks import priced
from services.cli.render import figures

HEADLINES_SHOWN = 5
FILINGS_SHOWN = 5

Result = Mapping[str, Any]


def answer(tool: str, result: Result) -> RenderableType:
    """One tool's answer."""
    return ANSWERS[tool](result)


def _price(result: Result) -> RenderableType:
    parts = [amounts.price(priced(result["price"], result["currency"]))]
    if result["day_change_pct"] is not None:
        parts.append(f"{amounts.gain_percent(result['day_change_pct'])} on the day")
    return Text(", ".join([*parts, f"{result['volume']:,} shares traded"]))


def _indicators(result: Result) -> RenderableType:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column()
    grid.add_column(justify="right", no_wrap=True)
    for name, value in result["values"].items():
        if value is not None:
            grid.add_row(INDICATORS[name][2], indicator(name, value, result["currency"]))
    absent = [
        Text(f"{INDICATORS[name][2]}: none; {why}", "dim") for name, why in result["absent"].items()
    ]
    return Group(Text(f"of {amounts.count(result['bars'], 'session')}"), grid, *absent)


def _filings(result: Result) -> RenderableType:
    return _dated(
        (item["filed"], f"{item['text']} ({amounts.count(item['age_days'], 'day')} ago)")
        for item in result["items"][:FILINGS_SHOWN]
    ) or Text(none_of("filings", result))


def _news(result: Result) -> RenderableType:
    return _dated(
        (f"{item['known_at'][:16].replace('T', ' ')} UTC", item["title"])
        for item in result["items"][:HEADLINES_SHOWN]
    ) or Text(none_of("headlines", result))


def _earnings(result: Result) -> RenderableType:
    rows = []
    if report := result["last_reported"]:
        rows.append((report, f"{_a_share(report['eps_actual'], report)}"))
    if report := result["upcoming"]:
        rows.append((report, "next report"))
    return _dated(
        (report["report_date"], f"{text}, period to {report['period_end']}{_expected(report)}")
        for report, text in rows
    ) or Text(none_of("upcoming or reported earnings", result))


def _expected(report: Result) -> str:
    estimate = report["eps_estimate"]
    return "" if estimate is None else f"; {_a_share(estimate, report)} expected"


def _a_share(amount: float, report: Result) -> str:
    """`31.50 GBX a share`; without a currency where the source names none."""
    written = number(amount, report.get("currency") or PLAIN)
    return f"{written} a share"


def _dated(rows: Iterable[tuple[str, str]]) -> Table | None:
    """Days at the left, and what stands beside each wraps beside it; None without any."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column()
    for day, text in rows:
        grid.add_row(day, Text(text))
    return grid if grid.row_count else None


ANSWERS: Mapping[str, Callable[[Result], RenderableType]] = {
    "get_stock_price": _price,
    "get_technical_indicators": _indicators,
    "get_fundamentals": figures.shown,
    "get_filings": _filings,
    "get_earnings": _earnings,
    "get_news": _news,
}
"""How each tool's answer is shown."""
