"""What a cycle cost: seconds, calls, tokens and dollars, by stage."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from rich.console import RenderableType
from rich.text import Text

from contracts.operation import OperationView
from contracts.query import CycleView
from contracts.types import Usage
from libs.report import amounts
from services.cli.terminal import table
from services.cli.tree import LOST, PAID

KINDS = ("model", "tool", "read")
FREE = "no model was asked"


@dataclass(frozen=True)
class Stage:
    """One state of the cycle: from the first start to the last end, in all pipelines."""

    name: str
    took_s: float
    calls: Mapping[str, int]
    usage: Usage


def stages(nodes: Sequence[OperationView]) -> Sequence[Stage]:
    """The stages in the order of their beginning."""
    names = dict.fromkeys(node.state for node in nodes if node.type == "operation" and node.state)
    return [_stage(name, [node for node in nodes if node.state == name]) for name in names]


def _stage(name: str, nodes: Sequence[OperationView]) -> Stage:
    work = [node for node in nodes if node.type == "operation"]
    starts = [node.started_at or node.created_at for node in work]
    ends = [node.finished_at for node in work if node.finished_at]
    took = max(ends) - min(starts) if ends else timedelta()
    return Stage(
        name=name,
        took_s=max(took / timedelta(seconds=1), 0.0),
        calls={kind: sum(node.type == kind for node in nodes) for kind in KINDS},
        usage=sum((node.usage for node in work), start=Usage()),
    )


def told(view: CycleView, nodes: Sequence[OperationView]) -> Sequence[tuple[str, RenderableType]]:
    """The facts. A cycle that was free is two lines; else each stage has one."""
    made = stages(nodes)
    total = amounts.cost(view.tokens, view.cost_usd)
    if not made:
        return [("Cost", Text(f"{total} ({FREE})" if _is_free(view) else total))]
    if view.tokens or view.cost_usd:
        return [("Cost", _by_stage(view, made))]
    words = [f"{each.name} {amounts.duration(each.took_s)}" for each in made]
    free = f", {FREE}" if _is_free(view) else ""
    return [
        ("Cost", Text(f"{total}{free}; {_calls(made, view)}")),
        ("Time", Text(", ".join(words))),
    ]


def _is_free(view: CycleView) -> bool:
    return not view.tokens and all(each.provider == "rules" for each in view.pipelines)


def _calls(made: Sequence[Stage], view: CycleView) -> str:
    counts = _counts(made)
    providers = {each.provider for each in view.pipelines}
    whose = f"the {providers.pop()} provider" if len(providers) == 1 else "the providers"
    model, tool, read = (counts[kind] for kind in KINDS)
    return (
        f"{amounts.count(model, 'call')} of {whose}, {amounts.count(tool, 'tool call')}, "
        f"{amounts.count(read, 'other read')}"
    )


def _counts(made: Sequence[Stage]) -> Mapping[str, int]:
    return {kind: sum(each.calls[kind] for each in made) for kind in KINDS}


def _by_stage(view: CycleView, made: Sequence[Stage]) -> RenderableType:
    lost = (LOST,) if view.usage.unsorted_tokens else ()
    heads = ("seconds", "model calls", "tools", "reads", *PAID, *lost, "USD")
    drawn = table("stage", *((head, "right") for head in heads))
    for each in made:
        drawn.add_row(each.name, *_figures(each, lost))
    whole = Stage(
        name="total",
        took_s=_whole_s(view, made),
        calls=_counts(made),
        usage=view.usage,
    )
    drawn.add_row(*(Text(cell, style="bold") for cell in (whole.name, *_figures(whole, lost))))
    return drawn


def _figures(stage: Stage, lost: Sequence[str]) -> Sequence[str]:
    usage = stage.usage
    return (
        f"{stage.took_s:.2f}",
        *(f"{stage.calls[kind]:,}" for kind in KINDS),
        f"{usage.input_tokens:,}",
        f"{usage.output_tokens:,}",
        f"{usage.cache_read_tokens:,}/{usage.cache_write_tokens:,}",
        *(f"{usage.unsorted_tokens:,}" for _ in lost),
        f"{usage.cost_usd:.4f}",
    )


def _whole_s(view: CycleView, made: Sequence[Stage]) -> float:
    if view.accepted_at and view.ended_at:
        return (view.ended_at - view.accepted_at) / timedelta(seconds=1)
    return sum(each.took_s for each in made)
