"""A strategy on one page: `strategies/<name>/report.html`.

Pure: results in, one HTML text out, the same for the same results. It asks for nothing (its policy
allows no script and no request), and every text of a model or a person is escaped.
"""

from collections.abc import Sequence
from datetime import date
from html import escape
from pathlib import Path

from contracts.gate import GateCheck, GateResult
from contracts.strategy_cycle import StrategyDesign
from contracts.strategy_result import (
    BacktestResult,
    FoldResult,
    PricesShown,
    StrategyAssessment,
    TradeShown,
    TrainingResult,
    Verdict,
)
from libs.facts import amounts
from libs.report.chart import Chart, Line, Trade
from libs.runtime.strategy_files import text_of

STYLE = Path(__file__).with_name("strategy.css")
NOT_DEFINED = "none"
POLICY = "default-src 'none'; style-src 'unsafe-inline'"
DATES_MAX = 6
MONTHS = (1, 2, 3, 6, 12, 24, 60, 120)
"""Stretches between two labels of days."""
YEAR = 12
"""Names along a chart: as many as a telephone has room for."""
COLOURS = {Verdict.PROMISING: "gain", Verdict.MEDIOCRE: "hold", Verdict.POOR: "loss"}


def page(
    design: StrategyDesign,
    training: TrainingResult,
    backtest: BacktestResult | None = None,
    assessment: StrategyAssessment | None = None,
) -> str:
    """The whole page; what the cycle has not come to is left out."""
    parts = [
        _header(design, training, backtest, assessment),
        _tiles(training, backtest),
        *([_assessment(assessment)] if assessment else []),
        *([_equity(backtest)] if backtest else []),
        *([_trades(backtest)] if backtest else []),
        _training(training),
        _gates([result.gate for result in (training, backtest) if result and result.gate]),
        _design(design, training),
    ]
    title = escape(design.spec.name)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{STYLE.read_text(encoding='utf-8')}</style></head>"
        f"<body><main>{''.join(parts)}</main></body></html>\n"
    )


# --- what it came to -----------------------------------------------------------------------------


def _header(
    design: StrategyDesign,
    training: TrainingResult,
    backtest: BacktestResult | None,
    assessment: StrategyAssessment | None,
) -> str:
    spec = design.spec
    failed = [
        result.gate
        for result in (training, backtest)
        if result and result.gate and not result.gate.passed
    ]
    badge = ""
    if failed:
        badge = _badge(f"stopped by the {failed[0].gate} gate", "loss")
    elif assessment:
        badge = _badge(assessment.verdict.value, COLOURS[assessment.verdict])
    tickers = ", ".join(spec.universe[:8]) + (" …" if len(spec.universe) > 8 else "")
    told = (
        f"{tickers}; as of {design.as_of}; learned on {spec.train.first} to {spec.train.last}, "
        f"tried on {spec.held_out.first} to {spec.held_out.last}, none of it learned from"
    )
    return (
        f"<header><h1>{escape(spec.name)}</h1><p>{badge}</p><p>{escape(spec.hypothesis)}</p>"
        f'<p class="soft">{escape(told)}</p></header>'
    )


def _badge(text: str, colour: str) -> str:
    return f'<span class="badge {colour}">{escape(text)}</span>'


def _tiles(training: TrainingResult, backtest: BacktestResult | None) -> str:
    better = "gain" if training.skill > 0 else "loss"
    tiles = [
        _tile("right out of sample", _part(training.accuracy), better)
        + _under(f"base rate {_part(training.base_rate)}"),
    ]
    if backtest:
        luck = f"of {backtest.trials} tried" if backtest.trials > 1 else "the first one tried"
        won = backtest.win_rate
        earned = backtest.total_return, backtest.benchmark_return
        ratios = backtest.sharpe_ratio, backtest.benchmark_sharpe_ratio
        closed = "none closed" if won is None else f"{_part(won)} of them won"
        tiles = [
            _tile("return", _signed(backtest.total_return), _beside(*earned))
            + _under(f"buy and hold {_signed(backtest.benchmark_return)}"),
            _tile("Sharpe ratio", _ratio(backtest.sharpe_ratio), _beside(*ratios))
            + _under(f"buy and hold {_ratio(backtest.benchmark_sharpe_ratio)}"),
            _tile("deepest fall", _part(backtest.max_drawdown))
            + _under(f"invested {_part(backtest.exposure)} on average"),
            _tile("trades", f"{backtest.total_trades:,}") + _under(closed),
            _tile("deflated Sharpe", _part(backtest.deflated_sharpe))
            + _under(f"1 - chance of as much by luck, {luck}"),
            *tiles,
        ]
    return f'<div class="tiles">{"".join(f"<div class=tile>{each}</div>" for each in tiles)}</div>'


def _tile(name: str, value: str, colour: str = "") -> str:
    return f'<span class="soft">{escape(name)}</span><b class="{colour}">{escape(value)}</b>'


def _under(text: str) -> str:
    return f'<span class="soft">{escape(text)}</span>'


def _assessment(found: StrategyAssessment) -> str:
    columns = "".join(
        f"<div><h3>{name.capitalize()}</h3><ul>"
        + "".join(f"<li>{escape(point)}</li>" for point in getattr(found, name))
        + "</ul></div>"
        for name in ("strengths", "weaknesses", "suggestions")
    )
    badge = _badge(found.verdict.value, COLOURS[found.verdict])
    return _section("Assessment", f'{badge}<div class="columns">{columns}</div>')


# --- backtest ------------------------------------------------------------------------------------


def _equity(found: BacktestResult) -> str:
    days, equity, held = found.sessions, found.equity, found.benchmark
    falls = _falls(equity)

    def said(place: int) -> str:
        return (
            f"{days[place]}: {equity[place]:,.0f}; buy and hold {held[place]:,.0f}; "
            f"{amounts.percent(falls[place] * 100)} from the highest before"
        )

    ticks = _dates(days)
    curve = Chart(
        [Line(held, "hold"), Line(equity, "own")],
        said,
        _short,
        ticks,
        label="Equity and buy and hold",
        tall=True,
    )
    fall = Chart([Line(falls, "loss", filled=True)], said, "{:.0%}".format, ticks, label="Drawdown")
    key = (
        '<p class="key"><b class="own">strategy</b>, <b class="hold">buy and hold</b> of the same '
        "tickers, both after costs</p>"
    )
    return _section(
        "Equity on the held-out period",
        f"{key}{curve.html()}<h3>Below the highest equity before</h3>{fall.html()}",
    )


def _falls(equity: Sequence[float]) -> Sequence[float]:
    highest, found = equity[0], []
    for value in equity:
        highest = max(highest, value)
        found.append(value / highest - 1 if highest > 0 else 0.0)
    return found


def _trades(found: BacktestResult) -> str:
    if not found.trades:
        return _section("Trades", "<p>It never traded.</p>")
    key = (
        '<p class="key">A line from entry to exit (the larger dot): '
        '<b class="gain">with a profit</b>, <b class="loss">with a loss</b></p>'
    )
    places = {day: place for place, day in enumerate(found.sessions)}
    drawn = "".join(_priced(each, found, places) for each in found.prices)
    newest = (
        f"The newest {len(found.trades)} of {found.total_trades:,}"
        if found.total_trades > len(found.trades)
        else f"All {len(found.trades)}"
    )
    head = ("ticker", "side", "entry", "at", "exit", "at", "return", "profit")
    table = _table(head, [_trade_row(each) for each in reversed(found.trades)])
    listed = f"<details><summary>{newest} trades as a table</summary>{table}</details>"
    return _section("Trades", f"{key if found.prices else ''}{drawn}{listed}")


def _priced(shown: PricesShown, found: BacktestResult, places: dict[date, int]) -> str:
    last = len(found.sessions) - 1
    trades = [
        Trade(
            (places[each.entry], each.entry_price),
            (places[each.exit], each.exit_price)
            if each.exit and each.exit_price
            else (last, shown.closes[-1]),
            _colour(each.profit),
            _said(each),
        )
        for each in found.trades
        if each.ticker == shown.ticker
    ]
    chart = Chart(
        [Line(shown.closes, "plain")],
        lambda place: f"{found.sessions[place]}: {shown.closes[place]:,.2f}",
        _short,
        _dates(found.sessions),
        trades,
        label=f"{shown.ticker}: closes and trades",
    )
    return f"<h3>{escape(shown.ticker)}</h3>{chart.html()}"


def _said(trade: TradeShown) -> str:
    end = f"{trade.exit} at {trade.exit_price:,.2f}" if trade.exit else "still open"
    gain = amounts.gain_percent(trade.return_pct)
    return f"{trade.side} {trade.entry} at {trade.entry_price:,.2f}, {end}: {gain}"


def _trade_row(trade: TradeShown) -> Sequence[str]:
    return (
        escape(trade.ticker),
        trade.side,
        str(trade.entry),
        f"{trade.entry_price:,.2f}",
        str(trade.exit or "open"),
        f"{trade.exit_price:,.2f}" if trade.exit_price else "",
        f'<span class="{_colour(trade.profit)}">{amounts.gain_percent(trade.return_pct)}</span>',
        f"{trade.profit:+,.0f}",
    )


# --- training, gates, design ---------------------------------------------------------------------


def _training(found: TrainingResult) -> str:
    steps = len(found.loss_curve) - 1
    curve = Chart(
        [Line(found.loss_curve, "own")],
        lambda place: f"after {place} of {steps}: {found.loss_curve[place]:.4f}",
        "{:.3f}".format,
        [(0, "start"), (steps, f"{steps}")],
        label="Training loss",
    )
    head = ("tried on", "rows", "accuracy", "base rate", "difference", "log-loss", "of base rate")
    rows = [_fold_row(each) for each in found.folds]
    told = (
        f"Each fold is tried on what lies after all that it has learned. Accuracy in percent, the "
        f"difference in points. Loss of the final fit on {found.rows:,} rows: from "
        f"{found.initial_loss:.3f} to {found.final_loss:.3f}, {_part(found.loss_decrease)} less."
    )
    body = f'<p class="soft">{told}</p>{_table(head, rows)}<h3>Training loss</h3>{curve.html()}'
    return _section("Training", body)


def _fold_row(fold: FoldResult) -> Sequence[str]:
    skill = fold.accuracy - fold.base_rate
    return (
        f"{fold.test.first} to {fold.test.last}",
        f"{fold.test_rows:,}",
        _part(fold.accuracy),
        _part(fold.base_rate),
        f'<span class="{_colour(skill)}">{skill * 100:+.1f}</span>',
        f"{fold.log_loss:.4f}",
        f"{fold.base_log_loss:.4f}",
    )


def _gates(gates: Sequence[GateResult]) -> str:
    rows = [_check_row(gate, check) for gate in gates for check in gate.checks]
    profile = f"profile {gates[0].profile}" if gates else "no gate was asked"
    table = _table(("gate", "", "rule"), rows, of="words")
    return _section("Gates", f'<p class="soft">{escape(profile)}</p>{table}')


def _check_row(gate: GateResult, check: GateCheck) -> Sequence[str]:
    mark, colour = ("passed", "gain") if check.passed else ("failed", "loss")
    return (
        gate.gate,
        f'<span class="{colour}">{mark}</span>',
        escape(check.reason),
    )


def _design(design: StrategyDesign, training: TrainingResult) -> str:
    spec = design.spec
    hashes = "".join(
        f"<li>{name} <code>{value}</code></li>"
        for name, value in (
            ("spec", design.spec_sha256),
            ("prices", training.data_sha256),
            ("model", training.model_sha256),
        )
    )
    return _section(
        "Design",
        f"<details><summary>The spec: {escape(spec.model.kind)}, {len(spec.features)} features"
        f"</summary><pre>{escape(text_of(spec))}</pre></details>"
        f"<details><summary>SHA-256 of what was used</summary><ul>{hashes}</ul></details>",
    )


# --- how things are written ----------------------------------------------------------------------


def _section(title: str, body: str) -> str:
    return f"<section><h2>{escape(title)}</h2>{body}</section>"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], of: str = "figures") -> str:
    """Cells are HTML already; a table is `of` figures or words."""
    heads = "".join(f"<th>{name}</th>" for name in head)
    lines = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f'<div class="scroll"><table class="{of}"><tr>{heads}</tr>{lines}</table></div>'


def _dates(days: Sequence[date]) -> Sequence[tuple[int, str]]:
    """The first sessions of as many equal stretches of months as can be read beside one another."""
    for months in MONTHS:
        found = [at for at, day in enumerate(days) if _begins(days, at, months, day)]
        if len(found) <= DATES_MAX:
            break
    return [(at, f"{days[at]:%Y}" if months >= YEAR else f"{days[at]:%b %Y}") for at in found]


def _begins(days: Sequence[date], at: int, months: int, day: date) -> bool:
    """Whether a stretch of months begins with this session; the first one always does."""
    before = None if not at else days[at - 1]
    return before is None or _month(day) // months != _month(before) // months


def _month(day: date) -> int:
    return day.year * YEAR + day.month - 1


def _short(value: float) -> str:
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if abs(value) >= 10 * size or (letter == "M" and abs(value) >= size):
            return f"{value / size:,.4g}{letter}"
    return f"{value:,.4g}"


def _part(value: float | None) -> str:
    return NOT_DEFINED if value is None else amounts.percent(value * 100)


def _signed(value: float) -> str:
    return amounts.gain_percent(value * 100)


def _ratio(value: float | None) -> str:
    return NOT_DEFINED if value is None else f"{value:.2f}"


def _beside(value: float | None, held: float | None) -> str:
    """The colour of a figure beside that of holding the same: what holding beats is no gain."""
    is_behind = value is not None and value > 0 and held is not None and value < held
    return "" if is_behind else _colour(value)


def _colour(value: float | None) -> str:
    return "" if not value else "gain" if value > 0 else "loss"
