"""The market tools' answers about a ticker, as a person reads them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from libs.facts import amounts
from libs.facts.fact import PLAIN
from libs.facts.market import FIGURES, INDICATORS, indicator
from libs.facts.written import number
from libs.market.absence import none_of
from libs.quant.ticks import priced

HEADLINES_SHOWN = 5
FILINGS_SHOWN = 5

OF_THE_YEAR = "eps_fiscal_year"
SHOWN = {
    **FIGURES,
    OF_THE_YEAR: ("money", "earnings per share (fiscal year)"),
    "dividend_per_share_ttm": ("money", "dividends per share (12 months)"),
}
"""The figures of a company: the unit and the name of each."""

CHANGES = frozenset({"revenue_growth_pct", "profit_growth_pct"})

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
    rows = [
        (INDICATORS[name][2], indicator(name, value, result["currency"]))
        for name, value in result["values"].items()
        if value is not None
    ]
    absent = {INDICATORS[name][2]: why for name, why in result["absent"].items()}
    sessions = Text(f"of {amounts.count(result['bars'], 'session')}")
    return Group(sessions, _beside(rows, right=True), *_absent(absent))


def _figures(result: Result) -> RenderableType:
    """Whose figures, the figures, why others are absent, and what a reader has to know of them."""
    of = result["figures"]
    if of is None:
        return Text(result["note"], "yellow")
    head = [f"period to {of['period_end']}, {amounts.count(of['age_days'], 'day')} old"]
    if of.get("filed"):
        head.append(f"{of['form']} filed {of['filed']} ({of['accession']})")
    head.append(f"known {_minute(of['known_at'])}")
    if result.get("sector"):
        head.append(str(result["sector"]))
    labels = {name: label for name, (_, label) in SHOWN.items()}
    if of.get("fiscal_year_end"):
        age = amounts.count(of["fiscal_year_age_days"], "day")
        labels[OF_THE_YEAR] += f" to {of['fiscal_year_end']} ({age} old)"
    rows = []
    for name, (kind, _) in SHOWN.items():
        if (value := of.get(name)) is not None:
            unit = of["currency"] if kind == "money" else kind
            rows.append((labels[name], number(value, unit, signed=name in CHANGES)))
    absent = {SHOWN[name][1] if name in SHOWN else name: why for name, why in of["absent"].items()}
    notes = [Text(note, "yellow") for note in of["notes"]]
    return Group(Text("; ".join(head)), _beside(rows, right=True), *_absent(absent), *notes)


def _absent(why: Mapping[str, str]) -> Sequence[Text]:
    return [Text(f"{name}: none; {text}", "dim") for name, text in why.items()]


def _minute(moment: str) -> str:
    return f"{moment[:16].replace('T', ' ')} UTC"


def _filings(result: Result) -> RenderableType:
    rows = (
        (item["filed"], f"{item['text']} ({amounts.count(item['age_days'], 'day')} ago)")
        for item in result["items"][:FILINGS_SHOWN]
    )
    return _beside(rows, none=none_of("filings", result))


def _news(result: Result) -> RenderableType:
    rows = (
        (_minute(item["known_at"]), item["title"]) for item in result["items"][:HEADLINES_SHOWN]
    )
    return _beside(rows, none=none_of("headlines", result))


def _earnings(result: Result) -> RenderableType:
    texts = []
    if report := result["last_reported"]:
        texts.append((report, _a_share(report["eps_actual"], report)))
    if report := result["upcoming"]:
        texts.append((report, "next report"))
    rows = (
        (report["report_date"], f"{text}, period to {report['period_end']}{_expected(report)}")
        for report, text in texts
    )
    return _beside(rows, none=none_of("upcoming or reported earnings", result))


def _expected(report: Result) -> str:
    estimate = report["eps_estimate"]
    return "" if estimate is None else f"; {_a_share(estimate, report)} expected"


def _a_share(amount: float, report: Result) -> str:
    """`31.50 GBX a share`; without a currency where the source names none."""
    written = number(amount, report.get("currency") or PLAIN)
    return f"{written} a share"


def _beside(
    rows: Iterable[tuple[str, str]], *, right: bool = False, none: str = ""
) -> RenderableType:
    """Labels at the left, and what stands beside each wraps beside it, or stands at the right;
    without any the words for `none`."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=not right)
    grid.add_column(justify="right" if right else "left", no_wrap=right)
    for label, text in rows:
        grid.add_row(label, Text(text))
    return grid if grid.row_count else Text(none)


ANSWERS: Mapping[str, Callable[[Result], RenderableType]] = {
    "get_stock_price": _price,
    "get_technical_indicators": _indicators,
    "get_fundamentals": _figures,
    "get_filings": _filings,
    "get_earnings": _earnings,
    "get_news": _news,
}
"""How each tool's answer is shown."""
