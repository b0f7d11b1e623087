"""How an account did, on a screen: figures beside its benchmark, round trips, months. Pure."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from decimal import Decimal

from contracts.performance import CANDIDATES, CASH, PerformanceView, RoundTrip, TradeFigures
from libs.facts import amounts
from libs.quant import ticks
from libs.report import cutoff
from libs.report import view as cells
from libs.report.tones import Tone
from libs.report.view import BLANK, Cell, Column, Facts, NoRows, Row, Table, Text

MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")

SOLD_BY = {
    "stop": "stop",
    "signal": "exit signal",
    "by_hand": "sold by hand",
    "decision": "trader's decision",
    "split": "paid out at a split",
}


def benchmark(view: PerformanceView) -> str:
    """`equal parts of AAPL MSFT, bought at the first decision`; what the account is beside."""
    if view.benchmark == CASH:
        return "cash"
    if view.benchmark == CANDIDATES:
        held = " ".join(view.benchmark_tickers)
        return f"equal parts of {held}, bought at the first decision" if held else "buy-and-hold"
    return f"{view.benchmark}, bought at the opening"


EXPOSED = "at the same exposure: each session as much of it as the account held at the close before"


def heading(view: PerformanceView) -> str:
    """`Fri 2012-06-29 to Wed 2012-10-31, amounts in USD`, all figures as of the last close."""
    if view.first is None:
        return cutoff.NO_CLOSE
    since = f"from {amounts.session(view.first)}"
    return f"{cutoff.as_of(view.last, view.currency or '')}, {since}"


def notes(view: PerformanceView) -> tuple[Text, ...]:
    """A note of what the figures do not count yet."""
    later = cutoff.not_counted(view.not_counted, view.currency or "")
    return cells.notes(later, tone=Tone.BUSY)


def figures(view: PerformanceView) -> Table:
    """Return and risk, the account beside its benchmark."""
    of = (view.account, view.compared, view.exposed)
    rows = (
        ("Return", "return_pct", cells.gain_percent),
        ("Annual return", "annual_pct", cells.gain_percent),
        ("Volatility, annual", "volatility_pct", cells.percent),
        ("Sharpe ratio", "sharpe", cells.ratio),
        ("Sortino ratio", "sortino", cells.ratio),
        ("Max drawdown", "max_drawdown_pct", cells.percent),
    )
    return cells.table(
        ("Figure", "Account", "Benchmark", "At the same exposure"),
        (
            (label, own, *(cell.toned(None) for cell in others))
            for label, name, write in rows
            for own, *others in [[write(getattr(it, name) if it else None) for it in of]]
        ),
        title="Return and risk",
        notes=(
            *cells.notes(f"benchmark: {benchmark(view)}", EXPOSED if view.exposed else ""),
            *cells.notes(view.benchmark_message, tone=Tone.WARN),
        ),
    )


def trading(of: TradeFigures, currency: str) -> Facts:
    """The sums of the round trips. What is not defined is said in words."""
    turnover = (
        amounts.UNKNOWN if of.turnover is None else f"{cells.ratio(of.turnover).text} times equity"
    )
    return Facts(
        (
            ("Round trips", cells.say(f"{of.closed} closed, {of.open} open")),
            *_closed(of, currency),
            ("Average exposure", cells.percent(of.exposure_pct)),
            ("Turnover a year", cells.say(turnover)),
            ("Fees", cells.money(of.fees, currency)),
        ),
        title="Trading",
        currency=currency,
    )


def _closed(of: TradeFigures, currency: str) -> Sequence[tuple[str, Cell]]:
    """The sums of the closed ones, in words where there is none to count."""
    if of.best is None or of.worst is None or of.win_rate_pct is None or of.sessions_held is None:
        return [("Win rate, best, worst", cells.say("none has closed yet"))]

    def of_some(value: Decimal | None, none: str) -> Cell:
        return cells.say(none) if value is None else cells.gain(value, currency)

    factor = (
        cells.say("none was lost") if of.profit_factor is None else cells.ratio(of.profit_factor)
    )
    best_worst = ", ".join(
        amounts.change(ticks.priced(one, currency), currency) for one in (of.best, of.worst)
    )
    return [
        ("Win rate", cells.say(win_rate(of.won, of.closed))),
        ("Average win", of_some(of.mean_win, "none was won")),
        ("Average loss", of_some(of.mean_loss, "none was lost")),
        ("Best, worst", cells.say(best_worst)),
        ("Profit factor", factor),
        ("Average holding time", cells.count(round(of.sessions_held), "session")),
    ]


def win_rate(won: int, closed: int) -> str:
    """`50% (1 of 2)`: of closed round trips; `-` where none is closed."""
    if not closed:
        return amounts.UNKNOWN
    return f"{amounts.percent(Decimal(won * 100) / closed)} ({won:,} of {closed:,})"


PART = "*"
"""Marks an exit price that is of a part of the position only."""
TRIPS = (
    "Ticker",
    "Opened",
    "Closed",
    Column("Sessions", spare=4),
    Column("Shares", spare=5),
    "Entry",
    "Exit",
    "P&L",
    Column("Return", spare=3),
    Column("Exit reason", wraps=True),
    Column("Entry decision", spare=2),
    Column("Exit decision", spare=1),
)


def trips(view: PerformanceView, account: str, of: Sequence[RoundTrip] | None = None) -> Table:
    """Round trips, open ones first; P&L is after fees, of open ones at the close."""
    shown = view.trips if of is None else of
    unit = view.currency or ""
    is_open = any(trip.closed is None for trip in shown)
    partly = any(_is_partly_sold(trip) for trip in shown)
    return cells.table(
        TRIPS,
        (_trip(trip, account, unit) for trip in shown),
        title="Round trips",
        currency=unit,
        empty=NoRows(view.message or "No round trips yet."),
        notes=(
            *cells.notes(
                f"P&L after fees; open ones {cutoff.as_of(view.last)}, unrealised included"
                if is_open
                else "",
                f"{PART} the average price of the part that was sold; the rest is held"
                if partly
                else "",
            ),
        ),
    )


def _trip(trip: RoundTrip, account: str, unit: str) -> Row:
    leaves = cells.price(ticks.priced(trip.exit_price, unit)) if trip.exit_price else BLANK
    if _is_partly_sold(trip):
        leaves = replace(leaves, text=f"{leaves.text}{PART}")
    elif trip.closed is None:
        leaves = BLANK
    entry = trip.entry_price
    return cells.row(
        cells.ticker(trip.ticker, account),
        _day(trip.opened),
        _day(trip.closed) if trip.closed else cells.say("open"),
        cells.count(trip.sessions) if trip.closed else BLANK,
        cells.shares(trip.quantity if trip.closed else trip.held),
        cells.unknown() if entry is None else cells.price(ticks.priced(entry, unit)),
        leaves,
        cells.gain(trip.gain, unit),
        cells.gain_percent(trip.gain_pct),
        why_sold(trip),
        cells.decision(trip.entry_cycle_id, trip.entry_pipeline),
        cells.decision(trip.exit_cycle_id, trip.exit_pipeline),
        key=trip.ticker,
    )


def _is_partly_sold(trip: RoundTrip) -> bool:
    return trip.closed is None and trip.sold > 0


def _day(day: date) -> Cell:
    """A date without its weekday: a row has two of them."""
    return Cell(day.isoformat(), day)


def tickers(view: PerformanceView, account: str) -> Table:
    """The P&L of each ticker, the largest first."""
    unit = view.currency or ""
    more = f"{view.tickers_more:,} more tickers are not listed." if view.tickers_more else ""
    return cells.table(
        ("Ticker", "Round trips", "P&L after fees"),
        (
            (
                cells.ticker(it.ticker, account),
                cells.count(it.trips),
                cells.gain(it.gain, unit),
            )
            for it in view.tickers
        ),
        title="P&L by ticker",
        currency=unit,
        notes=cells.notes(more),
    )


def why_sold(trip: RoundTrip) -> str:
    """`exit signal: momentum, regime`; of an open one `21 of 99: exit signal: momentum`, as only so
    many shares were sold; empty where none was."""
    if trip.sold_by is None:
        return ""
    cause = sold_by(trip.sold_by, trip.rules)
    if not _is_partly_sold(trip):
        return cause if trip.closed else ""
    return f"{amounts.quantity(trip.sold)} of {amounts.quantity(trip.quantity)}: {cause}"


def sold_by(cause: str, rules: Sequence[str]) -> str:
    """The cause of a sale: `exit signal: momentum, regime`, `stop`."""
    of = f": {', '.join(rules).replace('_', ' ')}" if cause == "signal" and rules else ""
    return f"{SOLD_BY[cause]}{of}"


def months(view: PerformanceView) -> Table:
    """A row a year with its twelve months; a cell says nothing where the account saw none."""
    of = {it.month: it.return_pct for it in view.months}

    def cell(year: str, month: int) -> Cell:
        pct = of.get(f"{year}-{month:02}")
        if pct is None:
            return BLANK
        exact = cells.gain_percent(pct)
        return replace(exact, text=f"{amounts.rounded(pct, Decimal('0.1')):+f}", about=exact.text)

    return cells.table(
        (
            "Year",
            *MONTHS,
            "Whole year",
        ),
        (
            (
                it.year,
                *(cell(it.year, month) for month in range(1, 13)),
                cells.gain_percent(it.return_pct),
            )
            for it in view.years
        ),
        title="Monthly returns",
        notes=cells.notes("in percent"),
    )


def by_month(view: PerformanceView) -> Table:
    """A row a month, beside the benchmark: where there is no room for twelve columns."""
    return cells.table(
        ("Month", "Account", "Benchmark"),
        (
            (
                it.month,
                cells.gain_percent(it.return_pct),
                cells.gain_percent(it.benchmark_pct).toned(None),
            )
            for it in view.months
        ),
        title="Monthly returns",
    )
