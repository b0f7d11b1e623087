"""A strategy on one page: `strategies/<name>/report.html`.

Pure: results in, one HTML text out, the same for the same results. The page runs no script and
makes no request, and every text of a model or a person is escaped (templates/strategy.html).
"""

from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal
from functools import cache
from itertools import accumulate
from pathlib import Path

from jinja2 import Environment
from markupsafe import Markup

from contracts.strategy_cycle import StrategyDesign
from contracts.strategy_result import (
    BacktestResult,
    PricesShown,
    StrategyAssessment,
    TradeShown,
    TrainingResult,
    Verdict,
)
from libs.facts import amounts
from libs.quant.ticks import priced
from libs.report import ending
from libs.report.cited import pieces
from libs.report.strategies.chart import Chart, ChartLine, Trade
from libs.report.strategies.files import text_of
from libs.report.templates import templates_in

TEMPLATES = Path(__file__).with_name("templates")
NOT_DEFINED = "\N{EN DASH}"
TICKERS_MAX = 8
DATES_MAX = 6
"""Labels along a chart: as many as a telephone has room for."""
MONTHS = (1, 2, 3, 6, 12, 24, 60, 120)
"""Stretches between two labels of days."""
YEAR = 12
COLOURS = {Verdict.PROMISING: "gain", Verdict.MEDIOCRE: "hold", Verdict.POOR: "loss"}


def page(
    design: StrategyDesign,
    training: TrainingResult,
    backtest: BacktestResult | None = None,
    assessment: StrategyAssessment | None = None,
) -> str:
    """The whole page; steps that the cycle has not reached are left out."""
    gates = [result.gate for result in (training, backtest) if result and result.gate]
    stopped_by = next((gate.gate for gate in gates if not gate.passed), "")
    return (
        _templates()
        .get_template("strategy.html")
        .render(
            style=Markup((TEMPLATES / "strategy.css").read_text(encoding="utf-8")),  # noqa: S704 - ours
            design=design,
            spec=design.spec,
            spec_text=text_of(design.spec),
            training=training,
            backtest=backtest,
            assessment=assessment,
            verdict_colour=COLOURS[assessment.verdict] if assessment else "",
            gates=gates,
            stopped_by=stopped_by,
            loss=_loss(training),
            equity=_equity(backtest) if backtest else None,
            drawdown=_drawdown(backtest) if backtest else None,
            prices=_prices(backtest) if backtest else (),
        )
    )


@cache
def _templates() -> Environment:
    templates = templates_in(TEMPLATES)
    templates.globals.update(
        TICKERS_MAX=TICKERS_MAX, beside=beside, pieces=pieces, at=_at, unit=unit
    )
    templates.filters.update(share=share, gain=gain, ratio=ratio, colour=colour)
    templates.filters.update(gain_percent=amounts.gain_percent, in_words=ending.in_words)
    return templates


def share(value: float | None) -> str:
    """A fraction as a percentage."""
    return NOT_DEFINED if value is None else amounts.percent(value * 100)


def gain(value: float | None) -> str:
    """A return, a fraction, as a percentage with its sign."""
    return NOT_DEFINED if value is None else amounts.gain_percent(value * 100)


def ratio(value: float | Decimal | None) -> str:
    """A ratio with two decimals."""
    return NOT_DEFINED if value is None else f"{value:.2f}"


def colour(value: float | None) -> str:
    """The class of a figure by its sign."""
    return "" if not value else "gain" if value > 0 else "loss"


def beside(value: float | None, held: float | None) -> str:
    """The class of a figure beside buy-and-hold's: a gain that buy-and-hold beats is none."""
    is_behind = value is not None and value > 0 and held is not None and value < held
    return "" if is_behind else colour(value)


def drawdowns(equity: Sequence[float]) -> Sequence[float]:
    """At each place the distance from the highest value so far, as a fraction of it, at most 0."""
    highest = accumulate(equity, max)
    return [
        value / peak - 1 if peak > 0 else 0.0 for value, peak in zip(equity, highest, strict=True)
    ]


def date_ticks(days: Sequence[date]) -> Sequence[tuple[int, str]]:
    """The first sessions of as many equal stretches of months as can be read side by side."""
    for months in MONTHS:
        places = [at for at, day in enumerate(days) if _begins(days, at, months, day)]
        if len(places) <= DATES_MAX:
            break
    return [(at, f"{days[at]:%Y}" if months >= YEAR else f"{days[at]:%b %Y}") for at in places]


def _begins(days: Sequence[date], at: int, months: int, day: date) -> bool:
    """Whether a stretch of months begins with this session; the first one always does."""
    before = None if not at else days[at - 1]
    return before is None or _month(day) // months != _month(before) // months


def _month(day: date) -> int:
    return day.year * YEAR + day.month - 1


def _equity(backtest: BacktestResult) -> Chart:
    return Chart(
        [ChartLine(backtest.benchmark, "hold"), ChartLine(backtest.equity, "own")],
        _day_titles(backtest),
        _short,
        date_ticks(backtest.sessions),
        label="Equity and buy-and-hold",
        tall=True,
    )


def _drawdown(backtest: BacktestResult) -> Chart:
    line = ChartLine(drawdowns(backtest.equity), "loss", filled=True)
    ticks = date_ticks(backtest.sessions)
    return Chart([line], _day_titles(backtest), "{:.0%}".format, ticks, label="Drawdown")


def _day_titles(backtest: BacktestResult) -> Sequence[str]:
    rows = zip(
        backtest.sessions,
        backtest.equity,
        backtest.benchmark,
        drawdowns(backtest.equity),
        strict=True,
    )
    return [
        f"{day}: {equity:,.0f} {unit(backtest.currencies)}; buy-and-hold {held:,.0f}; "
        f"{amounts.percent(fall * 100)} from the highest before"
        for day, equity, held, fall in rows
    ]


def _prices(backtest: BacktestResult) -> Sequence[tuple[str, Chart]]:
    if not backtest.trades:
        return ()
    places = {day: place for place, day in enumerate(backtest.sessions)}
    return [(shown.ticker, _priced(shown, backtest, places)) for shown in backtest.prices]


def _priced(shown: PricesShown, backtest: BacktestResult, places: dict[date, int]) -> Chart:
    last = len(backtest.sessions) - 1
    trades = [
        Trade(
            (places[trade.entry], trade.entry_price),
            (places[trade.exit], trade.exit_price)
            if trade.exit and trade.exit_price
            else (last, shown.closes[-1]),
            colour(trade.profit),
            _trade_title(trade, backtest),
        )
        for trade in backtest.trades
        if trade.ticker == shown.ticker
    ]
    return Chart(
        [ChartLine(shown.closes, "plain")],
        [
            f"{day}: {_at(close, shown.ticker, backtest)}"
            for day, close in zip(backtest.sessions, shown.closes, strict=False)
        ],
        _short,
        date_ticks(backtest.sessions),
        trades,
        label=f"{shown.ticker}: closes and trades",
    )


def _trade_title(trade: TradeShown, backtest: BacktestResult) -> str:
    price, entry = trade.exit_price, _at(trade.entry_price, trade.ticker, backtest)
    end = "still open" if price is None else f"{trade.exit} at {_at(price, trade.ticker, backtest)}"
    change = amounts.gain_percent(trade.return_pct)
    return f"{trade.side} {trade.entry} at {entry}, {end}: {change}"


def _at(price: float, ticker: str, backtest: BacktestResult) -> str:
    return amounts.price(priced(price, backtest.currencies[ticker]))


def unit(currencies: Mapping[str, str]) -> str:
    """The unit of a backtest's sums: its currency; with several, that one counts as another."""
    several = sorted(set(currencies.values()))
    return several[0] if len(several) == 1 else f"{', '.join(several)} (one counts as one other)"


def _loss(training: TrainingResult) -> Chart:
    steps = len(training.loss_curve) - 1
    return Chart(
        [ChartLine(training.loss_curve, "own")],
        [f"after {place} of {steps}: {loss:.4f}" for place, loss in enumerate(training.loss_curve)],
        "{:.3f}".format,
        [(0, "start"), (steps, f"{steps}")],
        label="Training loss",
    )


def _short(value: float) -> str:
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if abs(value) >= 10 * size or (letter == "M" and abs(value) >= size):
            return f"{value / size:,.4g}{letter}"
    return f"{value:,.4g}"
