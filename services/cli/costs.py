"""What a cycle cost: seconds, calls, tokens and dollars, by stage."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from rich.console import Group, RenderableType
from rich.text import Text

from contracts.operation import OperationView
from contracts.query import CycleView
from contracts.types import Usage
from libs.facts import amounts
from services.cli.terminal import table
from services.cli.tree import LOST, PAID, by_sort

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
    return f"{amounts.count(counts['model'], 'call')} of {whose}, {_unpaid(counts)}"


def _unpaid(calls: Mapping[str, int]) -> str:
    tools, reads = calls["tool"], calls["read"]
    return f"{amounts.count(tools, 'tool call')}, {amounts.count(reads, 'other read')}"


def _counts(made: Sequence[Stage]) -> Mapping[str, int]:
    return {kind: sum(each.calls[kind] for each in made) for kind in KINDS}


def _by_stage(view: CycleView, made: Sequence[Stage]) -> RenderableType:
    # 80 columns hold it all but for lost replies: what stands last is cut, never the dollars.
    lost = bool(view.usage.unsorted_tokens)
    heads = ("secs", "USD", "calls", *PAID, *([LOST] if lost else []))
    drawn = table("stage", *((head, "right") for head in heads))
    for each in made:
        drawn.add_row(each.name, *_figures(each, lost=lost))
    whole = Stage(
        name="total",
        took_s=_whole_s(view, made),
        calls=_counts(made),
        usage=view.usage,
    )
    drawn.add_row(*(Text(cell, style="bold") for cell in (whole.name, *_figures(whole, lost=lost))))
    return Group(drawn, Text(f"and {_unpaid(whole.calls)}"))


def _figures(stage: Stage, *, lost: bool) -> Sequence[str]:
    return (
        f"{stage.took_s:.2f}",
        f"{stage.usage.cost_usd:,.4f}",
        f"{stage.calls['model']:,}",
        *by_sort(stage.usage, lost=lost),
    )


def _whole_s(view: CycleView, made: Sequence[Stage]) -> float:
    if view.accepted_at and view.ended_at:
        return (view.ended_at - view.accepted_at) / timedelta(seconds=1)
    return sum(each.took_s for each in made)
