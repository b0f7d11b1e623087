"""Operations as a list, and those of one cycle as a tree. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from uuid import UUID

from contracts.operation import CallKind, OperationStatus, OperationView
from contracts.types import Usage, total_cost
from libs.facts import amounts
from libs.report import view
from libs.report.calls import sentence
from libs.report.calls.results import brief
from libs.report.tones import MARKS, Tone, tone
from libs.report.view import BLANK, Cell, Column, NoRows, Table
from libs.runtime import recorded_call

CALLS = frozenset(kind.value for kind in CallKind)
WITHIN_A_CYCLE = frozenset({"pipeline", *CALLS})
"""Types of nodes that only the list of one cycle has; `operations show` knows none of their ids."""
SPEED = "tokens/s"
ABOUT_CHARS = 20
"""Of what tools were asked about; all of it is in --json and `operations show`."""
WHAT_CHARS = 44
RESULT_CHARS = 160
ROOTS = frozenset({"cycle", "agent_research"})
SPENT = (Column("Tokens", right=True, spare=4), Column("USD", right=True, spare=3))


def listed(nodes: Sequence[OperationView], empty: NoRows) -> Table:
    """A row an operation, of any cycles."""
    return view.table(
        (
            "Id",
            Column("Cycle", spare=1),
            "What",
            Column("Status", spare=2),
            Column("Took", right=True),
            *SPENT,
            Column("Result", cuts=True),
        ),
        (
            (
                _id(node),
                amounts.short(node.cycle_id),
                amounts.cut(_path(node), WHAT_CHARS),
                view.status(node.status.value),
                took(node),
                *_spent(node),
                _result(node),
            )
            for node in nodes
        ),
        empty=empty,
    )


def tree(nodes: Sequence[OperationView]) -> Table:
    """A row a node of one cycle below its parent: how it ended, its time, its cost, its result.
    Calls of one name that follow one another are one row."""
    return view.table(
        (
            "What",
            "",
            Column("Took", right=True),
            Column("Tokens/s", right=True, spare=2),
            *SPENT,
            "Id",
            Column("Result", cuts=True, spare=1),
        ),
        (
            (
                branch + amounts.cut(_name(node), WHAT_CHARS - len(branch)),
                BLANK if node.type in CALLS else view.say(MARKS[node.status], tone(node.status)),
                _took(node),
                _speed(node),
                *_spent(node),
                _id(node),
                _result(node),
            )
            for branch, node in walk(gathered(nodes))
        ),
        keeps_rows=True,
        empty=NoRows("No operations."),
    )


def _path(node: OperationView) -> str:
    return "/".join(filter(None, (node.pipeline, node.state, node.name)))


def _id(node: OperationView) -> Cell:
    if node.type in WITHIN_A_CYCLE:
        return BLANK
    return view.say(amounts.short(node.op_id), Tone.QUIET)


def _spent(node: OperationView) -> Sequence[Cell]:
    if not node.tokens:
        return (BLANK, BLANK)
    return tuple(map(view.say, amounts.spent(node.tokens, node.cost_usd)))


def _result(node: OperationView) -> Cell:
    words = amounts.cut(result_text(node), RESULT_CHARS)
    return view.say(words, Tone.BAD if node.error_message else Tone.QUIET)


def _speed(node: OperationView) -> str:
    """Tokens a second of a model's reply, without the unit."""
    if node.type != "model":
        return ""
    duration_ms = float(str(node.metadata.get("duration_ms") or 0))
    return amounts.output_speed(node.usage, duration_ms).removesuffix(f" {SPEED}")


def gathered(nodes: Sequence[OperationView]) -> Sequence[OperationView]:
    """Calls that follow one another under one name as one line: their number, their sums, and how
    long one took on average. Calls may run at the same time: their times do not add up."""
    return [_as_one(run) for run in runs_of(nodes)]


def runs_of(nodes: Iterable[OperationView]) -> Sequence[Sequence[OperationView]]:
    """Calls that follow one another under one name together; every other node alone."""
    runs: list[list[OperationView]] = []
    for node in nodes:
        if runs and node.type in CALLS and _same(runs[-1][0], node):
            runs[-1].append(node)
        else:
            runs.append([node])
    return runs


def spent_by(run: Sequence[OperationView]) -> dict[str, object]:
    """The sums of what calls used, as fields of a node that stands for them."""
    return {
        "tokens": sum(node.tokens for node in run),
        "cost_usd": total_cost(node.cost_usd for node in run),
        "usage": sum((node.usage for node in run), start=Usage()),
    }


def children_of(nodes: Sequence[OperationView]) -> Mapping[UUID | None, Sequence[OperationView]]:
    """The nodes by their parent; by None those whose parent is not among them."""
    known = {node.op_id for node in nodes}
    children: dict[UUID | None, list[OperationView]] = {}
    for node in nodes:
        children.setdefault(node.parent_id if node.parent_id in known else None, []).append(node)
    return children


def _same(first: OperationView, node: OperationView) -> bool:
    return (first.type, first.name, first.parent_id) == (node.type, node.name, node.parent_id)


def _as_one(run: Sequence[OperationView]) -> OperationView:
    first = run[0]
    asked = recorded_call.about(*(node.metadata.get("arguments") for node in run))
    about = amounts.cut(asked, ABOUT_CHARS)
    if len(run) == 1:
        gave = str(first.metadata.get(sentence.RESULT) or "")
        name = sentence.of(recorded_call.label(first.name, about), gave)
        return first.model_copy(update={"name": name})
    took_ms = sum(float(str(node.metadata.get("duration_ms") or 0)) for node in run)
    return first.model_copy(
        update={
            "name": recorded_call.label(f"{first.name} ×{len(run)}", about),  # noqa: RUF001 - times
            **spent_by(run),
            "metadata": {"duration_ms": took_ms, "calls": len(run)},
        }
    )


def walk(nodes: Sequence[OperationView]) -> Iterable[tuple[str, OperationView]]:
    """Every node with the branch that leads to it, parents before children."""
    children = children_of(nodes)
    for root in children.get(None, ()):
        yield "", root
        yield from _below(root, children, "")


def _below(
    node: OperationView, children: Mapping[UUID | None, Sequence[OperationView]], indent: str
) -> Iterable[tuple[str, OperationView]]:
    inner = children.get(node.op_id, ())
    for number, child in enumerate(inner, start=1):
        last = number == len(inner)
        yield f"{indent}{'└─ ' if last else '├─ '}", child
        yield from _below(child, children, f"{indent}{'   ' if last else '│  '}")


def _name(node: OperationView) -> str:
    if node.type in CALLS:
        return f"{node.type} {node.name}"
    if node.type in ROOTS:
        return f"{node.name} {node.metadata.get('as_of', '')}".strip()
    if node.type == "pipeline":
        return "  ".join((node.name, " ".join(map(str, node.metadata.values())))).strip()
    attempt = f" (attempt {node.attempt})" if node.attempt > 1 else ""
    return f"{node.state}/{node.name}{attempt}"


def _took(node: OperationView) -> str:
    calls = node.metadata.get("calls")
    if not isinstance(calls, int):
        return took(node)
    average_ms = float(str(node.metadata["duration_ms"])) / calls
    return f"avg {amounts.duration(average_ms / 1000)}"


def took(node: OperationView) -> str:
    """How long it ran."""
    exact = node.metadata.get("duration_ms")
    if isinstance(exact, int | float):
        return amounts.duration(exact / 1000)
    return amounts.between(node.started_at, node.finished_at)


def result_text(node: OperationView) -> str:
    """Its failure, its progress while it runs, else what it came to."""
    if node.error_message:
        return node.error_message
    if node.status is OperationStatus.RUNNING and node.progress.step:
        return f"{node.progress.percentage:.0f}% {node.progress.step}"
    missing = node.metadata.get("calls_cut")
    summary = brief(node.result_summary)
    return f"{summary}; {missing} calls not shown" if missing else summary
