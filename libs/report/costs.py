"""The costs of a cycle: seconds, calls, tokens and dollars, by stage. Pure."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import timedelta

from contracts.cycle_query import CycleView
from contracts.operation import OperationView
from contracts.types import Usage
from libs.facts import amounts
from libs.report.sections import Fact, words
from libs.runtime.model_settings import BUILT_IN

KINDS = ("model", "tool", "read")
FREE = "no model was asked"


@dataclass(frozen=True)
class Stage:
    """One state of the cycle: from the first start to the last end, in all pipelines."""

    name: str
    took_s: float
    calls: Mapping[str, int]
    usage: Usage

    @property
    def unpaid(self) -> str:
        """`41 tool calls, 20 other reads`."""
        tools, reads = self.calls["tool"], self.calls["read"]
        return f"{amounts.count(tools, 'tool call')}, {amounts.count(reads, 'other read')}"


@dataclass(frozen=True)
class Costs:
    """The costs of the stages, and of the whole.

    Where nothing was paid, or no stage is known, `facts` say all there is to say.
    """

    stages: Sequence[Stage]
    total: Stage
    facts: Sequence[Fact]


def of(view: CycleView, nodes: Sequence[OperationView]) -> Costs:
    """The cost of the cycle whose operations are `nodes`."""
    names = dict.fromkeys(node.state for node in nodes if node.type == "operation" and node.state)
    stages = [_stage(name, [node for node in nodes if node.state == name]) for name in names]
    total = Stage("total", _whole_s(view, stages), _calls(stages), view.usage)
    # The stated rules write the memory of a pipeline whose model may spend no more.
    asked = {node.name.partition(":")[0] for node in nodes if node.type == "model"}
    return Costs(stages, total, _facts(view, stages, total, asked))


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


def _calls(stages: Sequence[Stage]) -> Mapping[str, int]:
    return {kind: sum(stage.calls[kind] for stage in stages) for kind in KINDS}


def _whole_s(view: CycleView, stages: Sequence[Stage]) -> float:
    if view.accepted_at and view.ended_at:
        return (view.ended_at - view.accepted_at) / timedelta(seconds=1)
    return sum(stage.took_s for stage in stages)


def _facts(
    view: CycleView, stages: Sequence[Stage], total: Stage, asked: Set[str]
) -> Sequence[Fact]:
    cost = amounts.cost(view.tokens, view.cost_usd)
    providers = {pipeline.provider for pipeline in view.pipelines}
    # A stage of the rules may be given to a model, whose call may have failed without a token.
    is_free = not view.tokens and providers | asked <= set(BUILT_IN)
    if not stages:
        return [Fact("Cost", words(f"{cost} ({FREE})" if is_free else cost))]
    if view.tokens or view.cost_usd != 0:
        return []
    whose = _whose(asked or providers)
    calls = f"{amounts.count(total.calls['model'], 'call')} of {whose}, {total.unpaid}"
    free = f", {FREE}" if is_free else ""
    times = ", ".join(f"{stage.name} {amounts.duration(stage.took_s)}" for stage in stages)
    return [Fact("Cost", words(f"{cost}{free}; {calls}")), Fact("Time", words(times))]


def _whose(providers: Set[str]) -> str:
    return f"the {next(iter(providers))} provider" if len(providers) == 1 else "the providers"
