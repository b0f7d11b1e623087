"""A strategy on one screen: its design, training, backtest and assessment."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from rich.console import Console
from rich.text import Text

from contracts.gate import GateResult
from contracts.operation import OperationView
from contracts.strategy_query import BacktestFigures, StrategyView, TrainingFigures
from libs.facts import amounts
from libs.report import ending
from libs.report.cited import pieces
from libs.report.tones import MARKS
from services.cli.render import chart
from services.cli.render.cited import cited
from services.cli.shell.terminal import (
    LABEL_WIDTH,
    STATUS_STYLES,
    TONE_STYLES,
    facts,
    write,
)

NOT_DEFINED = "not defined"
CHART_WIDTH_MAX = 72
Row = tuple[str, Text]


def tell(node: OperationView, view: StrategyView | None, console: Console) -> None:
    """A cycle's end: its parent operation, and the strategy of its newest design, if any."""
    mark, style = MARKS[node.status.value], STATUS_STYLES[node.status.value]
    took = amounts.between(node.started_at, node.finished_at)
    head = f"{mark} strategy cycle {amounts.short(node.op_id)} {node.status.value}"
    console.print(Text(f"{head} in {took}" if took else head, style=style))
    metadata: Mapping[str, Any] = node.metadata
    rows: list[Row] = []
    if node.error_message:
        rows.append(("why", Text(amounts.plain(node.error_message))))
    if int(metadata.get("attempts", 1)) > 1:
        rows.append(("design", Text(f"{metadata['attempt']} of at most {metadata['attempts']}")))
    rows += _rows(view, console) if view else ()
    rows.append(("cost", Text(amounts.cost(node.tokens, node.cost_usd))))
    write(facts(rows), console)


def show(view: StrategyView, console: Console) -> None:
    """One strategy as its newest run left it."""
    console.print(Text.assemble((view.name, "bold"), "  ", end_of(view)))
    runs = f"; the newest of {view.runs} runs" if view.runs > 1 else ""
    about = f"as of {amounts.session(view.as_of)}, cycle {amounts.short(view.cycle_id)}{runs}"
    rows: list[Row] = [("run", Text(about))]
    if view.reason and not view.ended.endswith("_gate"):
        rows.append(("why", Text(amounts.plain(view.reason))))
    write(facts([*rows, *_rows(view, console)]), console)


def end_of(view: StrategyView) -> Text:
    """How far it came, in its colour."""
    ended = ending.of_strategy(view)
    return Text(ended.words, style=TONE_STYLES[ended.tone])


def tell_phase(output: Mapping[str, Any], console: Console) -> None:
    """Where the strategy cycle is, in a line or two."""
    if output["operation_id"] is None:
        console.print("idle: no strategy cycle yet; start one: deskbus agent trigger --wait")
        return
    name = output["metadata"].get("strategy_name") or "not named yet"
    short = amounts.short(output["operation_id"])
    if output["phase"] is None:
        why = f": {output['error_message']}" if output["error_message"] else ""
        line = f"idle; {short} ({name}) {output['operation_status']}{ending.in_words(why)}"
        console.print(line, soft_wrap=True)
        return
    progress = output["progress"]
    console.print(f"active: {output['phase']}; {short} ({name})")
    if progress["step"]:
        console.print(f"{progress['percentage']:.0f}% {progress['step']}", style="dim")


def _rows(view: StrategyView, console: Console) -> Sequence[Row]:
    folder = view.path.removesuffix(".yaml")
    universe = ", ".join(view.universe[:8]) + (", …" if len(view.universe) > 8 else "")
    rows: list[Row] = [
        ("strategy", Text(f"{view.name}  {view.path}")),
        ("", Text(amounts.plain(view.hypothesis), style="dim")),
        ("model", Text(f"{model_of(view)} on {', '.join(view.features)}")),
        ("", Text(f"{universe}; {view.horizon_bars} sessions ahead", style="dim")),
    ]
    rows += _training(view.training) if view.training else ()
    rows += _backtest(view.backtest, console) if view.backtest else ()
    if view.assessment:
        rows.append(("assessment", Text.assemble(end_of(view), f"  {folder}/assessment.json")))
        for mark, name in (("+", "strengths"), ("-", "weaknesses"), ("→", "suggestions")):
            for place, point in enumerate(getattr(view.assessment, name)):
                words = cited(pieces(view.assessment, f"{name}.{place}", point))
                rows.append(("", Text.assemble(f"{mark} ", words)))
    if view.training:
        rows.append(("report", Text(f"{folder}/report.html")))
    return rows


def _training(figures: TrainingFigures) -> Sequence[Row]:
    line = (
        f"out-of-sample accuracy {part(figures.accuracy)}, base rate {part(figures.base_rate)}; "
        f"loss {figures.initial_loss:.3f} to {figures.final_loss:.3f}"
    )
    return (("training", Text(line)), *_gate(figures.gate))


def _backtest(figures: BacktestFigures, console: Console) -> Sequence[Row]:
    first = (
        f"return {gain(figures.total_return)}, buy-and-hold {gain(figures.benchmark_return)}; "
        f"Sharpe {ratio(figures.sharpe_ratio)}, "
        f"buy-and-hold {ratio(figures.benchmark_sharpe_ratio)}"
    )
    second = (
        f"max drawdown {part(figures.max_drawdown)}; {figures.total_trades} trades, "
        f"{_won(figures)}; turnover {figures.turnover:.1f} per year"
    )
    tried = f"best of {figures.trials} trials" if figures.trials > 1 else "trial 1"
    third = f"deflated Sharpe {part(figures.deflated_sharpe)} (1 - chance of it by luck; {tried})"
    return (
        ("backtest", Text(first)),
        ("", Text(second)),
        ("", Text(third)),
        *_equity(figures.equity, console),
        *_gate(figures.gate),
    )


def _won(figures: BacktestFigures) -> str:
    return "no closed trades" if figures.win_rate is None else f"{part(figures.win_rate)} won"


def _equity(values: Sequence[float], console: Console) -> Sequence[Row]:
    room = min(console.width - LABEL_WIDTH - 4, CHART_WIDTH_MAX)
    drawn = chart.drawn([Decimal(str(v)) for v in values], room, chart.levels(console.encoding))
    return [
        ("" if place else "equity", Text(line, style="cyan", no_wrap=True))
        for place, line in enumerate(drawn)
    ]


def _gate(gate: GateResult | None) -> Sequence[Row]:
    return [
        (
            "" if place else "gate",
            Text(
                f"{'✓' if check.passed else '✗'} {ending.in_words(check.reason)}",
                style="green" if check.passed else "red",
            ),
        )
        for place, check in enumerate(gate.checks if gate else ())
    ]


def part(value: float | None) -> str:
    """`12.3%`."""
    return NOT_DEFINED if value is None else amounts.percent(value * 100)


def gain(value: float | None) -> str:
    """`+12.30%`: a return."""
    return NOT_DEFINED if value is None else amounts.gain_percent(value * 100)


def model_of(view: StrategyView) -> str:
    """`gradient boosting`."""
    return view.model.replace("_", " ")


def ratio(value: float | None) -> str:
    """`0.85`."""
    return NOT_DEFINED if value is None else f"{value:.2f}"
