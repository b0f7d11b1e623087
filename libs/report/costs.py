"""The costs of a cycle: seconds, calls, tokens and dollars, by stage. Pure."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import timedelta

from contracts.cycle_query import CycleView
from contracts.operation import OperationView
from contracts.types import Usage
from contracts.upkeep import BudgetView, DayUsage
from libs.facts import amounts
from libs.quant.ticks import priced
from libs.report import view
from libs.report.sections import SectionFact, words
from libs.report.tones import Tone
from libs.report.view import Cell, Column, NoRows, Table
from libs.runtime.model_settings import BUILT_IN, SCRIPTED

KINDS = ("model", "tool", "read")
UNPRICED = "some calls have no price: what they cost is unknown, and tokens alone bound it"
FREE = "no model was asked"
PAID = ("In", "Out", "Cache r/w")
LOST = "No reply"


@dataclass(frozen=True)
class StageCosts:
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

    Where nothing was paid, or no stage is known, `facts` say all there is to say. `simulated`: the
    demo's script answered, whose prices are invented.
    """

    stages: Sequence[StageCosts]
    total: StageCosts
    facts: Sequence[SectionFact]
    simulated: bool = False


def of(view: CycleView, nodes: Sequence[OperationView]) -> Costs:
    """The cost of the cycle whose operations are `nodes`."""
    names = dict.fromkeys(node.state for node in nodes if node.type == "operation" and node.state)
    stages = [_stage(name, [node for node in nodes if node.state == name]) for name in names]
    total = StageCosts("total", _whole_s(view, stages), _calls(stages), view.usage)
    # The stated rules write the memory of a pipeline whose model may spend no more.
    asked = {node.name.partition(":")[0] for node in nodes if node.type == "model"}
    return Costs(stages, total, _facts(view, stages, total, asked), SCRIPTED in asked)


def _stage(name: str, nodes: Sequence[OperationView]) -> StageCosts:
    work = [node for node in nodes if node.type == "operation"]
    starts = [node.started_at or node.created_at for node in work]
    ends = [node.finished_at for node in work if node.finished_at]
    took = max(ends) - min(starts) if ends else timedelta()
    return StageCosts(
        name=name,
        took_s=max(took / timedelta(seconds=1), 0.0),
        calls={kind: sum(node.type == kind for node in nodes) for kind in KINDS},
        usage=sum((node.usage for node in work), start=Usage()),
    )


def _calls(stages: Sequence[StageCosts]) -> Mapping[str, int]:
    return {kind: sum(stage.calls[kind] for stage in stages) for kind in KINDS}


def _whole_s(view: CycleView, stages: Sequence[StageCosts]) -> float:
    if view.accepted_at and view.ended_at:
        return (view.ended_at - view.accepted_at) / timedelta(seconds=1)
    return sum(stage.took_s for stage in stages)


def _facts(
    view: CycleView, stages: Sequence[StageCosts], total: StageCosts, asked: Set[str]
) -> Sequence[SectionFact]:
    cost = amounts.cost(view.tokens, view.cost_usd)
    providers = {pipeline.provider for pipeline in view.pipelines}
    # A stage of the rules may be given to a model, whose call may have failed without a token.
    is_free = not view.tokens and providers | asked <= set(BUILT_IN)
    if not stages:
        return [SectionFact("Cost", words(f"{cost} ({FREE})" if is_free else cost))]
    if view.tokens or view.cost_usd != 0:
        return []
    whose = _whose(asked or providers)
    calls = f"{amounts.count(total.calls['model'], 'call')} of {whose}, {total.unpaid}"
    free = f", {FREE}" if is_free else ""
    times = ", ".join(f"{stage.name} {amounts.duration(stage.took_s)}" for stage in stages)
    return [SectionFact("Cost", words(f"{cost}{free}; {calls}")), SectionFact("Time", words(times))]


def _whose(providers: Set[str]) -> str:
    return f"the {next(iter(providers))} provider" if len(providers) == 1 else "the providers"


def by_sort(usage: Usage, *, lost: bool) -> Sequence[Cell]:
    """Tokens in, out, read from and written to the cache, and those that may be lost, shortly."""
    short = amounts.thousands
    cache = f"{short(usage.cache_read_tokens)}/{short(usage.cache_write_tokens)}"
    return (
        *(view.say(short(number)) for number in (usage.input_tokens, usage.output_tokens)),
        view.say(cache),
        *([view.say(short(usage.unsorted_tokens))] if lost else ()),
    )


def table(of: Costs) -> Table:
    """A row a stage, and their sum."""
    lost = bool(of.total.usage.unsorted_tokens)
    usd = "USD simulated" if of.simulated else "USD"
    heads = ("Secs", usd, "Calls", *PAID, *([LOST] if lost else ()))
    return view.table(
        ("Stage", *(Column(head, right=True) for head in heads)),
        (
            (
                stage.name,
                f"{stage.took_s:.2f}",
                amounts.paid(stage.usage.cost_usd),
                view.count(stage.calls["model"]),
                *by_sort(stage.usage, lost=lost),
            )
            for stage in (*of.stages, of.total)
        ),
        notes=view.notes(f"and {of.total.unpaid}"),
    )


# --- the budget of a day ------------------------------------------------------------------------


def budget(of: BudgetView) -> Table:
    """Today's limits, and what is spent, reserved and left of each."""
    used = next((day for day in of.days if day.day == of.today), DayUsage(day=of.today)).usage
    tone = None if of.tokens_left and of.cost_usd_left else Tone.BAD
    return view.table(
        (
            "",
            *(Column(head, right=True) for head in ("Limit", "Spent", "Reserved", "Left")),
        ),
        (
            (
                "tokens",
                *map(view.count, (of.tokens_max, used.tokens, of.tokens_held)),
                view.count(of.tokens_left).toned(tone).strong,
            ),
            (
                "USD",
                f"{of.cost_usd_max:,.4f}",
                amounts.paid(used.cost_usd),
                f"{of.cost_usd_held:,.4f}",
                view.say(f"{of.cost_usd_left:,.4f}", tone).strong,
            ),
        ),
        notes=(
            *view.notes(UNPRICED if used.cost_usd is None else "", tone=Tone.WARN),
            *view.notes(f"tokens: {amounts.sorts(used)}" if used.tokens else "", _limits(of)),
        ),
    )


def _limits(of: BudgetView) -> str:
    operation, cycle = (
        amounts.money(priced(usd, "USD"))
        for usd in (of.operation_cost_usd_max, of.cycle_cost_usd_max)
    )
    return (
        f"one operation may use {of.operation_tokens_max:,} tokens and {operation}; one cycle "
        f"{of.cycle_tokens_max:,} and {cycle}, where its request says nothing"
    )


def by_day(of: BudgetView) -> Table:
    """A row a day with paid calls, exact."""
    return view.table(
        ("Day", *(Column(head, right=True) for head in (*PAID, LOST, "USD"))),
        (
            (
                view.day(it.day),
                view.count(it.usage.input_tokens),
                view.count(it.usage.output_tokens),
                f"{it.usage.cache_read_tokens:,}/{it.usage.cache_write_tokens:,}",
                view.count(it.usage.unsorted_tokens),
                amounts.paid(it.usage.cost_usd),
            )
            for it in of.days
        ),
        empty=NoRows("No paid calls."),
    )
