"""A cycle's tree with times as parts of a line: what waited, what ran, in thousandths. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from uuid import UUID

from contracts.operation import CallKind, OperationStatus, OperationView
from contracts.types import Usage
from libs.runtime import recorded_call as recorded

CALLS = frozenset(kind.value for kind in CallKind)
WIDTH = 1000
"""The whole line."""
SEEN_MIN = 4
"""What took next to no time is still drawn so wide."""


@dataclass(frozen=True)
class Bar:
    """From where on the line, how wide."""

    x: int
    width: int


@dataclass(frozen=True)
class Line:
    """One node of the tree. `count` is how many calls of one name it stands for."""

    node: OperationView
    depth: int
    waited: Bar | None
    ran: Bar | None
    waited_s: float | None
    ran_s: float | None
    calls: int = 0
    count: int = 1

    @property
    def is_call(self) -> bool:
        """Whether it is a single call, or several of one name."""
        return self.node.type in CALLS

    @property
    def about(self) -> str:
        """The subjects of the tool calls."""
        asked = self.node.metadata.get("arguments")
        return recorded.about(*asked) if isinstance(asked, list) else recorded.about(asked)


@dataclass(frozen=True)
class _Span:
    """The time that the line stands for."""

    start: datetime
    seconds: float

    def bar(self, start: datetime, end: datetime) -> Bar:
        """Where a time lies on the line."""
        x = min(max((start - self.start) / timedelta(seconds=self.seconds), 0.0), 1.0) * WIDTH
        width = max((end - start) / timedelta(seconds=self.seconds), 0.0) * WIDTH
        left = min(int(x), WIDTH - SEEN_MIN)
        return Bar(left, min(max(int(width), SEEN_MIN), WIDTH - left))


def lines(nodes: Sequence[OperationView], now: datetime, *, calls: bool) -> Sequence[Line]:
    """The nodes, parents before children; with `calls` those too, equal ones as one line."""
    if not nodes:
        return ()
    span = _span(nodes, now)
    children = _children(nodes)
    return [
        _line(node, depth, count, span, now, _calls_below(node, children))
        for node, depth, count in _walk(children)
        if calls or node.type not in CALLS
    ]


def _span(nodes: Sequence[OperationView], now: datetime) -> _Span:
    start = min(node.created_at for node in nodes)
    end = max(node.finished_at or now for node in nodes)
    return _Span(start, max((end - start).total_seconds(), 0.001))


def _children(nodes: Sequence[OperationView]) -> Mapping[UUID | None, Sequence[OperationView]]:
    known = {node.op_id for node in nodes}
    children: dict[UUID | None, list[OperationView]] = {}
    for node in nodes:
        children.setdefault(node.parent_id if node.parent_id in known else None, []).append(node)
    return children


def _calls_below(
    node: OperationView, children: Mapping[UUID | None, Sequence[OperationView]]
) -> int:
    return sum(1 for child in children.get(node.op_id, ()) if child.type in CALLS)


def _walk(
    children: Mapping[UUID | None, Sequence[OperationView]],
) -> Iterable[tuple[OperationView, int, int]]:
    waiting = [(root, 0, 1) for root in reversed(children.get(None, ()))]
    while waiting:
        node, depth, count = waiting.pop()
        yield node, depth, count
        inner = _gathered(children.get(node.op_id, ()))
        waiting += [(child, depth + 1, number) for child, number in reversed(inner)]


def _gathered(nodes: Iterable[OperationView]) -> Sequence[tuple[OperationView, int]]:
    """Calls of one name that follow one another as one, with their number, time and sums."""
    runs: list[list[OperationView]] = []
    for node in nodes:
        last = runs[-1][-1] if runs else None
        same = last is not None and (last.type, last.name) == (node.type, node.name)
        if same and node.type in CALLS:
            runs[-1].append(node)
        else:
            runs.append([node])
    return [(_as_one(run), len(run)) for run in runs]


def _as_one(run: Sequence[OperationView]) -> OperationView:
    if len(run) == 1:
        return run[0]
    return run[0].model_copy(
        update={
            "tokens": sum(node.tokens for node in run),
            "cost_usd": sum((node.cost_usd for node in run), Decimal(0)),
            "usage": sum((node.usage for node in run), start=Usage()),
            "finished_at": max(node.finished_at or node.created_at for node in run),
            "metadata": {"arguments": [node.metadata.get("arguments") for node in run]},
        }
    )


def _line(
    node: OperationView, depth: int, count: int, span: _Span, now: datetime, calls: int
) -> Line:
    started = node.started_at or (node.finished_at if _has_ended(node) else None)
    began, ended = started or now, node.finished_at or now
    waits = node.type not in CALLS and depth > 1
    waited = max((began - node.created_at).total_seconds(), 0.0)
    ran = max((ended - began).total_seconds(), 0.0)
    return Line(
        node=node,
        depth=depth,
        waited=span.bar(node.created_at, began) if waits and waited > 0 else None,
        ran=span.bar(began, ended) if started is not None else None,
        waited_s=waited if waits else None,
        ran_s=ran if started is not None else None,
        calls=calls,
        count=count,
    )


def _has_ended(node: OperationView) -> bool:
    return node.status not in {OperationStatus.PENDING, OperationStatus.RUNNING}
