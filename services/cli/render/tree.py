"""The tree of a cycle's operations, drawn."""

from collections.abc import Iterable, Mapping, Sequence
from uuid import UUID

from rich.table import Table
from rich.text import Text

from contracts.operation import OperationStatus, OperationView
from contracts.types import Usage, total_cost
from libs.facts import amounts
from libs.report.calls import sentence
from libs.report.calls.results import brief
from libs.runtime import recorded_call
from services.cli.shell.terminal import (
    CUT_WIDTH_MIN,
    STATUS_MARKS,
    STATUS_STYLES,
    Sheet,
    one_line,
    table,
)

CALLS = frozenset({"model", "tool", "read"})
WITHIN_A_CYCLE = frozenset({"pipeline", *CALLS})
"""Types of nodes that only the list of one cycle has; `operations show` knows none of their ids."""
PAID = ("in", "out", "cache r/w")
LOST = "no reply"
SUM = "tokens"
SPEED = "tokens/s"
RESULT_WIDTH_MIN = 20
"""Columns without which results are left out."""
ABOUT_CHARS = 20
"""Of what tools were asked about; all of it is in --json and `operations show`."""
ROOTS = frozenset({"cycle", "agent_research"})


def draw(nodes: Sequence[OperationView], width: int) -> Table:
    """One line a node: what it was, how it ended, how long it took, what it cost, what it said.

    The tokens stand where anything was paid: by sort where `width` columns hold that beside the
    rest, else their sum; exactly in --json and `operations show`. Where there is no room for
    results, a failed node's stands on a line of its own.
    """
    lines = list(walk(gathered(nodes)))
    for sorts, with_results in ((True, True), (False, True), (False, False)):
        grid = _grid(lines, sorts=sorts, with_results=with_results)
        needed = grid.width_needed() + (RESULT_WIDTH_MIN - CUT_WIDTH_MIN if with_results else 0)
        if needed <= width:
            return grid
    grid.columns[0].no_wrap = False  # rather the end of a name than a figure's
    return grid


def _grid(lines: Sequence[tuple[str, OperationView]], *, sorts: bool, with_results: bool) -> Sheet:
    nodes = [node for _, node in lines]
    lost = any(node.usage.unsorted_tokens for node in nodes)
    tokens = [*PAID, *([LOST] if lost else [])] if sorts else [SUM]
    heads = [*tokens, "USD"] if any(node.tokens for node in nodes) else []
    with_speed = any(map(_speed, nodes))
    spent = ((head, "right") for head in (*((SPEED,) if with_speed else ()), *heads))
    last = ("id", "result") if with_results else ("id",)
    grid = table("what", "", ("took", "right"), *spent, *last)
    grid.keeps_rows = True  # its branches stand below one another
    for branch, node in lines:
        what = Text.assemble((branch, "dim"), _name(node))
        what.overflow, what.no_wrap = "ellipsis", True
        failed = bool(node.error_message)
        result = one_line(result_text(node), "red" if failed else "dim")
        grid.add_row(
            what,
            _mark(node),
            Text(_took(node), style="dim" if node.type in CALLS else ""),
            *((Text(_speed(node), "dim"),) if with_speed else ()),
            *_spent(node, tokens)[: len(heads)],
            Text("" if node.type in WITHIN_A_CYCLE else amounts.short(node.op_id), style="dim"),
            *([result] if with_results else []),
        )
        if failed and not with_results:
            result.pad_left(len(branch) + 2)
            grid.add_row(result)
    return grid


def _speed(node: OperationView) -> str:
    """Tokens a second of a model's reply, without the unit."""
    if node.type != "model":
        return ""
    duration_ms = float(str(node.metadata.get("duration_ms") or 0))
    return amounts.output_speed(node.usage, duration_ms).removesuffix(f" {SPEED}")


def _spent(node: OperationView, sorts: Sequence[str]) -> Sequence[str]:
    """Its tokens, and dollars; blanks where there were none."""
    if not node.tokens:
        return [""] * (len(sorts) + 1)
    tokens, dollars = amounts.spent(node.tokens, node.cost_usd)
    return [*([tokens] if SUM in sorts else by_sort(node.usage, lost=LOST in sorts)), dollars]


def by_sort(usage: Usage, *, lost: bool) -> Sequence[str]:
    """Tokens in, out, read from and written to the cache, and those that may be lost, shortly."""
    short = amounts.thousands
    return [
        short(usage.input_tokens),
        short(usage.output_tokens),
        f"{short(usage.cache_read_tokens)}/{short(usage.cache_write_tokens)}",
        *([short(usage.unsorted_tokens)] if lost else []),
    ]


def gathered(nodes: Sequence[OperationView]) -> Sequence[OperationView]:
    """Calls that follow one another under one name as one line: their number, their sums, and how
    long one took on average. Calls may run at the same time: their times do not add up to any."""
    runs: list[list[OperationView]] = []
    for node in nodes:
        before = runs[-1][0] if runs else None
        if before is not None and node.type in CALLS and _same(before, node):
            runs[-1].append(node)
        else:
            runs.append([node])
    return [_as_one(run) for run in runs]


def _same(first: OperationView, node: OperationView) -> bool:
    return (first.type, first.name, first.parent_id) == (node.type, node.name, node.parent_id)


def _as_one(run: Sequence[OperationView]) -> OperationView:
    first = run[0]
    if len(run) == 1:
        called = recorded_call.label(first.name, _about(run))
        gave = str(first.metadata.get(sentence.RESULT) or "")
        return first.model_copy(update={"name": sentence.of(called, gave)})
    took_ms = sum(float(str(node.metadata.get("duration_ms") or 0)) for node in run)
    return first.model_copy(
        update={
            "name": recorded_call.label(f"{first.name} ×{len(run)}", _about(run)),  # noqa: RUF001 - times
            "tokens": sum(node.tokens for node in run),
            "cost_usd": total_cost(node.cost_usd for node in run),
            "usage": sum((node.usage for node in run), start=Usage()),
            "metadata": {"duration_ms": took_ms, "calls": len(run)},
        }
    )


def _about(run: Sequence[OperationView]) -> str:
    """The subjects of the tool calls."""
    asked = recorded_call.about(*(node.metadata.get("arguments") for node in run))
    return amounts.cut(asked, ABOUT_CHARS)


def walk(nodes: Sequence[OperationView]) -> Iterable[tuple[str, OperationView]]:
    """Every node with the branch that leads to it, parents before children."""
    children: dict[UUID | None, list[OperationView]] = {}
    known = {node.op_id for node in nodes}
    for node in nodes:
        parent = node.parent_id if node.parent_id in known else None
        children.setdefault(parent, []).append(node)
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


def _name(node: OperationView) -> Text:
    if node.type in CALLS:
        return Text.assemble((f"{node.type} ", "dim"), node.name)
    if node.type in ROOTS:
        return Text(f"{node.name} {node.metadata.get('as_of', '')}".strip(), style="bold")
    if node.type == "pipeline":
        whose = " ".join(str(value) for value in node.metadata.values())
        return Text.assemble((node.name, "bold"), (f"  {whose}" if whose else "", "dim"))
    attempt = f" (attempt {node.attempt})" if node.attempt > 1 else ""
    return Text.assemble((f"{node.state}/", "dim"), f"{node.name}{attempt}")


def _mark(node: OperationView) -> Text:
    if node.type in CALLS:
        return Text()
    return Text(STATUS_MARKS[node.status], style=STATUS_STYLES[node.status])


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
