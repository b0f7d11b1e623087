"""A strategy on one screen: its design, training, backtest and assessment."""

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from rich.text import Text as Line

from contracts.http import AgentStatus
from contracts.operation import OperationView
from contracts.strategy_query import StrategyView
from libs.facts import amounts
from libs.report import ending
from libs.report.cited import pieces
from libs.report.strategies import tables
from libs.report.tones import MARKS
from libs.report.view import Facts, Text, say
from services.cli.render.chart import TerminalChart
from services.cli.render.cited import cited
from services.cli.render.described import Shown
from services.cli.shell.terminal import STATUS_STYLES, TONE_STYLES

POINTS = {"strengths": "+", "weaknesses": "-", "suggestions": "→"}


def ended(node: OperationView, view: StrategyView | None) -> Iterable[Shown]:
    """A cycle's end: its parent operation, and the strategy of its newest design, if any."""
    status = node.status.value
    took = amounts.between(node.started_at, node.finished_at)
    head = f"{MARKS[status]} strategy cycle {amounts.short(node.op_id)} {status}"
    about = {"why": node.error_message or "", "cost": amounts.cost(node.tokens, node.cost_usd)}
    metadata: Mapping[str, Any] = node.metadata
    if int(metadata.get("attempts", 1)) > 1:
        about["design"] = f"{metadata['attempt']} of at most {metadata['attempts']}"
    parts = _screen(view, about) if view else [_facts(about)]
    title = Line(f"{head} in {took}" if took else head, STATUS_STYLES[status])
    return [title, *parts]


def screen(view: StrategyView) -> Iterable[Shown]:
    """One strategy as its newest run left it."""
    runs = f"; the newest of {view.runs} runs" if view.runs > 1 else ""
    about = {"run": f"as of {amounts.session(view.as_of)}, cycle {amounts.short(view.cycle_id)}"}
    about["run"] += runs
    if not view.ended.endswith("_gate"):
        about["why"] = view.reason or ""
    title = Line.assemble((view.name, "bold"), "  ", end_of(view))
    return [title, *_screen(view, about)]


def end_of(view: StrategyView) -> Line:
    """How far it came, in its colour."""
    ended = ending.of_strategy(view)
    return Line(ended.words, style=TONE_STYLES[ended.tone])


def phase(of: AgentStatus) -> Iterable[Shown]:
    """Where the strategy cycle is, in a line or two."""
    short, name = amounts.short(of.operation_id), of.metadata.get("strategy_name")
    cycle = f"{short} ({name or 'not named yet'})"
    if of.operation_id is None:
        yield "idle: no strategy cycle yet; start one: deskbus agent trigger --wait"
    elif of.phase is None:
        why = f": {of.error_message}" if of.error_message else ""
        yield f"idle; {cycle} {of.operation_status}{ending.in_words(why)}"
    else:
        yield f"active: {of.phase}; {cycle}"
        if of.progress.step:
            yield Text(f"{of.progress.percentage:.0f}% {of.progress.step}")


def _facts(rows: Mapping[str, str]) -> Facts:
    return Facts(tuple((label, say(text)) for label, text in rows.items() if text))


def _screen(view: StrategyView, about: Mapping[str, str]) -> Iterable[Shown]:
    folder = view.path.removesuffix(".yaml")
    universe = ", ".join(view.universe[:8]) + (", …" if len(view.universe) > 8 else "")
    design = {
        "strategy": f"{view.name}  {view.path}",
        "hypothesis": view.hypothesis,
        "model": f"{view.model.replace('_', ' ')} on {', '.join(view.features)}",
        "universe": f"{universe}; {view.horizon_bars} sessions ahead",
        "report": f"{folder}/report.html" if view.training else "",
    }
    yield _facts({**about, **design})
    if view.training:
        yield tables.figures(view)
    if view.backtest:
        equity = [Decimal(str(value)) for value in view.backtest.equity]
        if len(equity) > 1:
            yield TerminalChart(equity, "{:,.0f}".format, "equity over the backtest")
    yield from tables.checks(view)
    if view.assessment:
        yield Line.assemble("\nassessment  ", end_of(view), f"  {folder}/assessment.json")
        for name, mark in POINTS.items():
            for place, point in enumerate(getattr(view.assessment, name)):
                words = cited(pieces(view.assessment, f"{name}.{place}", point))
                yield Line.assemble(f"  {mark} ", words)
