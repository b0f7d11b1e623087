"""The words on how an account did: figures beside its benchmark, round trips. Pure."""

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal

from contracts.performance import (
    CANDIDATES,
    CASH,
    PerformanceFigures,
    PerformanceView,
    RoundTrip,
    TradeFigures,
)
from libs.facts import amounts

SOLD_BY = {
    "stop": "stop",
    "signal": "exit signal",
    "by_hand": "sold by hand",
    "decision": "trader's decision",
    "split": "paid out at a split",
}

Row = tuple[str, str, str]
"""A figure's label, the account's and the benchmark's."""


def benchmark(view: PerformanceView) -> str:
    """`equal parts of AAPL MSFT, bought at the first decision`; what the account is beside."""
    if view.benchmark == CASH:
        return "cash"
    if view.benchmark == CANDIDATES:
        held = " ".join(view.benchmark_tickers)
        return f"equal parts of {held}, bought at the first decision" if held else "buy-and-hold"
    return f"{view.benchmark}, bought at the opening"


def figures(view: PerformanceView) -> Sequence[Row]:
    """Return and risk, the account beside its benchmark."""
    own, beside = _figures(view.account), _figures(view.compared)
    return [(label, own[label], beside[label]) for label in own]


def _figures(of: PerformanceFigures | None) -> Mapping[str, str]:
    """Each figure by its label; unknown where it is not defined."""

    def text(name: str, write: Callable[[Decimal], str]) -> str:
        value: Decimal | None = None if of is None else getattr(of, name)
        return amounts.UNKNOWN if value is None else write(value)

    return {
        "Return": text("return_pct", amounts.gain_percent),
        "Annual return": text("annual_pct", amounts.gain_percent),
        "Volatility, annual": text("volatility_pct", amounts.percent),
        "Sharpe ratio": text("sharpe", ratio),
        "Sortino ratio": text("sortino", ratio),
        "Max drawdown": text("max_drawdown_pct", amounts.percent),
    }


def ratio(value: Decimal) -> str:
    """`0.54`, `-1.20`."""
    return f"{amounts.rounded(value, Decimal('0.01')):f}"


def trading(of: TradeFigures, currency: str) -> Sequence[tuple[str, str]]:
    """The sums of the round trips, a label and a text each."""

    return [
        ("Round trips", f"{of.closed} closed, {of.open} open"),
        *_closed(of),
        (
            "Average exposure",
            amounts.UNKNOWN if of.exposure_pct is None else amounts.percent(of.exposure_pct),
        ),
        (
            "Turnover a year",
            amounts.UNKNOWN if of.turnover is None else f"{ratio(of.turnover)} times equity",
        ),
        ("Fees", amounts.money(of.fees, currency)),
    ]


def _closed(of: TradeFigures) -> Sequence[tuple[str, str]]:
    """The sums of the closed ones, in words where there is none to count."""
    if of.best is None or of.worst is None or of.win_rate_pct is None or of.sessions_held is None:
        return [("Win rate, best, worst", "none has closed yet")]

    def of_some(value: Decimal | None, none: str, write: Callable[[Decimal], str]) -> str:
        return none if value is None else write(value)

    return [
        ("Win rate", f"{amounts.percent(of.win_rate_pct)} ({of.won} of {of.closed})"),
        ("Average win", of_some(of.mean_win, "none was won", amounts.change)),
        ("Average loss", of_some(of.mean_loss, "none was lost", amounts.change)),
        ("Best, worst", f"{amounts.change(of.best)}, {amounts.change(of.worst)}"),
        ("Profit factor", of_some(of.profit_factor, "none was lost", ratio)),
        ("Average holding time", amounts.count(round(of.sessions_held), "session")),
    ]


def why_sold(trip: RoundTrip) -> str:
    """`exit signal: momentum, regime`; empty while it is held and nothing was sold."""
    return "" if trip.sold_by is None else sold_by(trip.sold_by, trip.rules)


def sold_by(cause: str, rules: Sequence[str]) -> str:
    """The cause of a sale: `exit signal: momentum, regime`, `stop`."""
    of = f": {', '.join(rules).replace('_', ' ')}" if cause == "signal" and rules else ""
    return f"{SOLD_BY[cause]}{of}"


def years(view: PerformanceView) -> Sequence[tuple[str, Sequence[Decimal | None], Decimal]]:
    """Each year with its twelve months' returns in percent, None where the account saw none, and
    its own return."""
    of = {it.month: it.return_pct for it in view.months}
    return [
        (it.year, [of.get(f"{it.year}-{month:02}") for month in range(1, 13)], it.return_pct)
        for it in view.years
    ]
