"""A cycle's tree over time: what waited, what ran, what was tried again, on one line. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from contracts.operation import OperationStatus, OperationView
from contracts.subjects.approvals import APPROVAL
from libs.report import operations
from libs.report.calls import sentence
from libs.runtime import recorded_call as recorded
from services.console.pages.trace.axis import Axis, Bar, Interval, axis_of

BRANCHES = frozenset({"cycle", "pipeline", "agent_research"})
"""Nodes that only hold others."""
OPEN = frozenset({OperationStatus.PENDING, OperationStatus.RUNNING})
SEEN_MIN = 4
"""The width of a bar that took next to no time."""
GROUP_MIN = 3
"""So many calls of one name that follow one another are a group."""


@dataclass(frozen=True)
class Noted:
    """Something that happened to an operation besides its calls: it is marked on the line."""

    op_id: UUID
    at: datetime
    kind: str
    words: str


@dataclass(frozen=True)
class WaterfallMark:
    """Where on the line that was; `kind` is `retry` or `fence`."""

    x: float
    kind: str
    words: str


@dataclass(frozen=True)
class WaterfallLine:
    """One node of the tree. `count` is how many calls of one name it stands for; `within` says
    that it belongs to such a group."""

    node: OperationView
    depth: int
    waited: Bar | None
    ran: Bar | None
    waited_s: float | None
    ran_s: float | None
    calls: int = 0
    count: int = 1
    within: bool = False
    marks: Sequence[WaterfallMark] = ()

    @property
    def is_call(self) -> bool:
        """Whether it is a single call, or several of one name."""
        return self.node.type in operations.CALLS

    @property
    def is_branch(self) -> bool:
        """Whether it only holds others: the cycle, a pipeline."""
        return self.node.type in BRANCHES

    @property
    def is_open(self) -> bool:
        """Whether it has not ended."""
        return self.node.status in OPEN

    @property
    def retries(self) -> int:
        """How often one of its calls was made again."""
        return sum(1 for mark in self.marks if mark.kind == "retry")

    @property
    def about(self) -> str:
        """The subjects of the tool calls."""
        asked = self.node.metadata.get("arguments")
        return recorded.about(*asked) if isinstance(asked, list) else recorded.about(asked)

    @property
    def sentence(self) -> str:
        """A single call with what it gave: `get_stock_price(AAPL) = 584.00`."""
        return sentence.of_node(self.node)

    @property
    def href(self) -> str:
        """The page of an operation or a single call; none of what only holds others."""
        if self.is_branch or self.count > 1:
            return ""
        if not self.is_call:
            return f"/operations/{self.node.op_id}"
        return f"/operations/{self.node.parent_id}/calls/{self.node.metadata.get('index')}"


@dataclass(frozen=True)
class Trace:
    """The lines of a cycle, and the line of time on which they lie."""

    lines: Sequence[WaterfallLine] = ()
    axis: Axis | None = None


@dataclass(frozen=True)
class _Drawing:
    """All that lines are drawn from."""

    axis: Axis
    now: datetime
    calls: Mapping[UUID, int]
    marks: Mapping[UUID, Sequence[Noted]] = field(default_factory=dict)


def trace_of(
    nodes: Sequence[OperationView],
    now: datetime,
    *,
    calls: Mapping[UUID, int],
    noted: Iterable[Noted] = (),
) -> Trace:
    """The nodes, parents before children; `calls` says how many each operation has made."""
    if not nodes:
        return Trace()
    start = min(node.created_at for node in nodes)
    end = max(node.finished_at or now for node in nodes)
    axis = axis_of(start, end, _work(nodes, now))
    marks: dict[UUID, list[Noted]] = {}
    for note in noted:
        marks.setdefault(note.op_id, []).append(note)
    drawn = _Drawing(axis, now, calls, marks)
    lines = [
        _line(node, depth, count, drawn, within=within)
        for node, depth, count, within in _walk(operations.children_of(nodes))
    ]
    return Trace(lines, axis)


def _work(nodes: Iterable[OperationView], now: datetime) -> Iterable[Interval]:
    """The times in which something ran: no branch, and nothing that waits for a person."""
    for node in nodes:
        if node.type in BRANCHES or node.name == APPROVAL.what or node.started_at is None:
            continue
        yield node.started_at, node.finished_at or now


def _walk(
    children: Mapping[UUID | None, Sequence[OperationView]],
) -> Iterable[tuple[OperationView, int, int, bool]]:
    waiting = [(root, 0, 1, False) for root in reversed(children.get(None, ()))]
    while waiting:
        node, depth, count, within = waiting.pop()
        yield node, depth, count, within
        if count == 1:
            inner = _gathered(children.get(node.op_id, ()))
            waiting += [
                (child, depth + 1, number, is_in) for child, number, is_in in reversed(inner)
            ]


def _gathered(nodes: Iterable[OperationView]) -> Sequence[tuple[OperationView, int, bool]]:
    """Calls of one name that follow one another: their sum, with their number, then each."""
    gathered: list[tuple[OperationView, int, bool]] = []
    for run in operations.runs_of(nodes):
        is_group = len(run) >= GROUP_MIN
        gathered += [(_as_one(run), len(run), False)] if is_group else []
        gathered += [(node, 1, is_group) for node in run]
    return gathered


def _as_one(run: Sequence[OperationView]) -> OperationView:
    return run[0].model_copy(
        update={
            **operations.spent_by(run),
            "started_at": min(node.started_at or node.created_at for node in run),
            "finished_at": max(node.finished_at or node.created_at for node in run),
            "metadata": {"arguments": [node.metadata.get("arguments") for node in run]},
        }
    )


def _line(
    node: OperationView, depth: int, count: int, drawn: _Drawing, *, within: bool
) -> WaterfallLine:
    started = node.started_at or (None if node.status in OPEN else node.finished_at)
    began, ended = started or drawn.now, node.finished_at or drawn.now
    waits = node.type not in operations.CALLS and node.type not in BRANCHES
    waited = max((began - node.created_at).total_seconds(), 0.0)
    ran = max((ended - began).total_seconds(), 0.0)
    bar = drawn.axis.bar
    return WaterfallLine(
        node=node,
        depth=depth,
        waited=bar(node.created_at, began, SEEN_MIN) if waits and waited > 0 else None,
        ran=bar(began, ended, SEEN_MIN) if started is not None else None,
        waited_s=waited if waits else None,
        ran_s=ran if started is not None else None,
        calls=drawn.calls.get(node.op_id, 0),
        count=count,
        within=within,
        marks=[
            WaterfallMark(round(drawn.axis.x(note.at), 1), note.kind, note.words)
            for note in drawn.marks.get(node.op_id, ())
        ],
    )
