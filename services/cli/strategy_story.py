"""A strategy cycle on one screen: the design, what training and backtest found, what is thought."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from contracts.operation import OperationView
from services.cli import amounts
from services.cli.terminal import STATUS_MARKS, STATUS_STYLES, facts, write

NOT_DEFINED = "not defined"
Row = tuple[str, Text]


def tell(node: OperationView, console: Console) -> None:
    """The cycle's parent operation, as it is at the end."""
    mark, style = STATUS_MARKS[node.status.value], STATUS_STYLES[node.status.value]
    took = amounts.between(node.started_at, node.finished_at)
    head = f"{mark} strategy cycle {amounts.short(node.op_id)} {node.status.value}"
    console.print(Text(f"{head} in {took}" if took else head, style=style))
    write(facts(_rows(node)), console)


def tell_phase(found: Mapping[str, Any], console: Console) -> None:
    """Where the strategy cycle is, in a line or two."""
    if found["operation_id"] is None:
        console.print("idle: no strategy cycle yet; start one: deskbus agent trigger --wait")
        return
    name = found["metadata"].get("strategy_name") or "not named yet"
    short = amounts.short(found["operation_id"])
    if found["phase"] is None:
        why = f": {found['error_message']}" if found["error_message"] else ""
        line = f"idle; {short} ({name}) {found['operation_status']}{why}"
        console.print(line, soft_wrap=True)
        return
    progress = found["progress"]
    console.print(f"active: {found['phase']}; {short} ({name})")
    if progress["step"]:
        console.print(f"{progress['percentage']:.0f}% {progress['step']}", style="dim")


def _rows(node: OperationView) -> Sequence[Row]:
    told: Mapping[str, Any] = node.metadata
    rows: list[Row] = []
    if node.error_message:
        rows.append(("why", Text(node.error_message)))
    if "strategy_name" in told:
        rows.append(("strategy", Text(f"{told['strategy_name']}  {told['strategy_path']}")))
    if int(told.get("attempts", 1)) > 1:
        rows.append(("design", Text(f"{told['attempt']} of at most {told['attempts']}")))
    rows += _training(told.get("training_result"))
    rows += _backtest(told.get("backtest_result"))
    if "assessment_verdict" in told:
        line = f"{told['assessment_verdict']}  {told['assessment_path']}"
        rows.append(("assessment", Text(line)))
    rows.append(("cost", Text(amounts.cost(node.tokens, node.cost_usd))))
    return rows


def _training(found: Mapping[str, Any] | None) -> Sequence[Row]:
    if found is None:
        return ()
    line = (
        f"accuracy {_part(found['accuracy'])} out of sample, "
        f"base rate {_part(found['base_rate'])}; "
        f"loss {found['initial_loss']:.3f} to {found['final_loss']:.3f}"
    )
    return (("training", Text(line)), *_gate(found["gate"]))


def _backtest(found: Mapping[str, Any] | None) -> Sequence[Row]:
    if found is None:
        return ()
    first = (
        f"return {_part(found['total_return'])}, buy and hold {_part(found['benchmark_return'])}; "
        f"Sharpe {_ratio(found['sharpe_ratio'])}, buy and hold "
        f"{_ratio(found['benchmark_sharpe_ratio'])}"
    )
    second = (
        f"deepest fall {_part(found['max_drawdown'])}; {found['total_trades']} trades, "
        f"{_part(found['win_rate'])} won; turnover {found['turnover']:.1f} a year"
    )
    return (("backtest", Text(first)), ("", Text(second)), *_gate(found["gate"]))


def _gate(gate: Mapping[str, Any] | None) -> Sequence[Row]:
    checks = gate["checks"] if gate else ()
    return [
        (
            "" if place else "gate",
            Text(
                f"{'✓' if each['passed'] else '✗'} {each['reason']}",
                style="green" if each["passed"] else "red",
            ),
        )
        for place, each in enumerate(checks)
    ]


def _part(value: float | None) -> str:
    return NOT_DEFINED if value is None else f"{value:.1%}"


def _ratio(value: float | None) -> str:
    return NOT_DEFINED if value is None else f"{value:.2f}"
