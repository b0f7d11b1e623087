"""The tickers of a story as tables: what was found and decided, and which rule cut what."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from contracts.account import Side
from libs.facts import amounts
from libs.report.rules import Finding
from libs.report.sections import Listed
from libs.report.tickers import Row
from libs.report.tones import tone
from services.cli.shell.terminal import TONE_STYLES, rest, table

GAP = 2
KEEP = 9
"""Columns that never go, unless they are empty."""
ALWAYS = ("ticker", "wanted")


@dataclass(frozen=True)
class Column:
    """One column; `keep` is how late it goes where the line is too narrow, `KEEP` is never."""

    title: str
    keep: int
    cell: Callable[[Row], Text]
    is_number: bool = True


def drawn(rows: Sequence[Row], width: int) -> Table:
    """One line a ticker. What has no value at all is left out, then what matters least."""
    columns = [kind for kind in _columns(rows) if kind.title in ALWAYS or _has(kind, rows)]
    while _width(columns, rows) > width and any(kind.keep < KEEP for kind in columns):
        columns.remove(min(columns, key=lambda kind: kind.keep))
    grid = table(*((kind.title, "right") if kind.is_number else kind.title for kind in columns))
    for column in grid.columns:
        column.no_wrap = True
    for row in rows:
        grid.add_row(*(kind.cell(row) for kind in columns))
    return grid


def _has(column: Column, rows: Sequence[Row]) -> bool:
    return any(column.cell(row).plain not in ("", amounts.UNKNOWN) for row in rows)


def _width(columns: Sequence[Column], rows: Sequence[Row]) -> int:
    widest = (max(len(c.title), *(c.cell(row).cell_len for row in rows)) for c in columns)
    return sum(widest) + GAP * (len(columns) - 1)


def _columns(rows: Sequence[Row]) -> Sequence[Column]:
    currencies = {row.finding.currency for row in rows if row.finding}
    currency = currencies.pop() if len(currencies) == 1 else ""
    return (
        Column("ticker", KEEP, lambda r: Text(r.ticker, "bold" if r.pick else ""), is_number=False),
        Column(f"close {currency}".rstrip(), 6, partial(_price, column=currency)),
        Column("sentiment", 7, _mood),
        Column("quant", KEEP, _quant, is_number=False),
        Column("RSI 14", 5, _indicator("rsi_14", "{:.0f}".format)),
        Column("to SMA 200", 2, _to_average),
        Column("3 months", 3, _indicator("momentum_3m_pct", amounts.gain_percent)),
        Column("volatility", 1, _indicator("volatility_3m_pct", amounts.percent)),
        Column("fund", 4, lambda r: _score(r.fundamental)),
        Column("tech", 7, lambda r: _score(r.technical)),
        Column("risk", 8, lambda r: _score(r.finding.risk if r.finding else None)),
        Column("wanted", KEEP, _wanted),
        Column("allowed", KEEP, lambda r: Text(r.allowed, TONE_STYLES[r.allowed_tone])),
        Column("shares", KEEP, _shares),
    )


def _price(row: Row, *, column: str) -> Text:
    return Text(amounts.price(row.finding.close, column) if row.finding else "")


def _mood(row: Row) -> Text:
    mood = row.mood
    if mood is None:
        return Text(amounts.UNKNOWN)
    style = "green" if mood.score > 0 else "red" if mood.score < 0 else "dim"
    return Text(f"{mood.score:+.2f}", style)


def _quant(row: Row) -> Text:
    """`bullish 0.36`: the direction and how sure of it the quant is, 0 to 1."""
    view = row.signal
    if view is None:
        return Text()
    return Text(f"{view.signal.value} {view.confidence:.2f}", TONE_STYLES[tone(view.signal)])


def _indicator(name: str, text_of: Callable[[float], str]) -> Callable[[Row], Text]:
    def cell(row: Row) -> Text:
        value = row.signal.technical_indicators.get(name) if row.signal else None
        return Text(amounts.UNKNOWN if value is None else text_of(value))

    return cell


def _to_average(row: Row) -> Text:
    values = row.signal.technical_indicators if row.signal else {}
    close, average = values.get("close"), values.get("sma_200")
    if not close or not average:
        return Text(amounts.UNKNOWN)
    return Text(amounts.gain_percent((close / average - 1) * 100))


def _score(score: float | None) -> Text:
    """`8.0`; a dash where there was nothing to score."""
    return Text(amounts.UNKNOWN if score is None else f"{score:.1f}")


def _wanted(row: Row) -> Text:
    if row.pick is None:
        return Text(amounts.UNKNOWN, style="dim")
    return Text(row.wanted, style="green" if row.pick.action is Side.BUY else "red")


def _shares(row: Row) -> Text:
    style = "red" if row.is_refused else ""
    return Text("" if row.shares is None else amounts.quantity(row.shares), style)


def ruled(findings: Listed[Finding]) -> Iterable[RenderableType]:
    """The rules' cuts and vetoes: the value against the limit, one line for equal findings."""
    grid = table("tickers", "outcome", "rule", "value", "limit")
    grid.columns[3].no_wrap = False
    for rule in findings.shown:
        grid.add_row(
            Text(rule.names, style="bold"),
            Text(rule.check.outcome.value, style=TONE_STYLES[rule.tone]),
            rule.check.rule,
            Text(amounts.plain(rule.check.value)),
            Text(amounts.plain(rule.check.limit)),
        )
    yield grid
    yield from (Text(line, style="dim") for line in rest(findings))
