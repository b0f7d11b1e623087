"""A cycle's tree as lines: what waited lies before what ran, calls of one name are one line."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from contracts.operation import OperationStatus, OperationView
from contracts.types import Usage
from services.console.pages.trace.axis import WIDTH, Bar
from services.console.pages.trace.waterfall import SEEN_MIN, Noted, WaterfallLine, trace_of

START = datetime(2026, 3, 5, 14, 0, tzinfo=UTC)
CYCLE, PIPELINE, STEP = UUID(int=1), UUID(int=2), UUID(int=3)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def node(op_id: UUID, parent: UUID | None = None, **fields: Any) -> OperationView:
    given: dict[str, Any] = {
        "type": "operation",
        "name": "plan",
        "status": OperationStatus.COMPLETED,
        "created_at": at(0),
        "started_at": at(0),
        "finished_at": at(10),
    }
    return OperationView(op_id=op_id, parent_id=parent, cycle_id=CYCLE, **{**given, **fields})


def tree(*below: OperationView, end: float = 10) -> list[OperationView]:
    root = node(CYCLE, type="cycle", finished_at=at(end))
    return [root, node(PIPELINE, CYCLE, type="pipeline", finished_at=at(end)), *below]


def call(number: int, name: str = "get_news", **fields: Any) -> OperationView:
    return node(UUID(int=100 + number), STEP, type="tool", name=name, **fields)


def lines(
    nodes: list[OperationView], now: datetime, *noted: Noted, calls: int = 0
) -> list[WaterfallLine]:
    return list(trace_of(nodes, now, calls={STEP: calls}, noted=noted).lines)


def test_what_waited_lies_before_what_ran() -> None:
    step = node(STEP, PIPELINE, created_at=at(2), started_at=at(5), finished_at=at(10))
    line = lines(tree(step), at(99))[2]
    assert (line.waited, line.ran) == (Bar(200, 300), Bar(500, 500))
    assert (line.waited_s, line.ran_s) == (3.0, 5.0)


def test_what_still_waits_or_runs_reaches_to_now() -> None:
    open_end: dict[str, Any] = {"finished_at": None, "status": OperationStatus.RUNNING}
    waits = node(STEP, PIPELINE, **{**open_end, "started_at": None, "created_at": at(5)})
    runs = node(UUID(int=4), PIPELINE, **{**open_end, "started_at": at(5)})
    first, second = lines([*tree(waits, runs)], at(20))[2:]
    assert (first.waited, first.ran, first.ran_s) == (Bar(250, 750), None, None)
    assert (second.ran, second.ran_s) == (Bar(250, 750), 15.0)
    assert (first.is_open, second.is_open) == (True, True)


def test_a_moment_is_still_seen_and_stays_on_the_line() -> None:
    step = node(STEP, PIPELINE, created_at=at(10), started_at=at(10), finished_at=at(10))
    (bar,) = [line.ran for line in lines(tree(step), at(10))][2:]
    assert bar == Bar(WIDTH - SEEN_MIN, SEEN_MIN)


def test_hours_of_waiting_for_a_person_squeeze_no_bar() -> None:
    """The approval is an operation of the cycle, and no work."""
    day_s = 86_400
    works = node(STEP, PIPELINE, created_at=at(0), started_at=at(1), finished_at=at(10))
    asks = node(
        UUID(int=4),
        PIPELINE,
        name="approval",
        status=OperationStatus.PENDING,
        created_at=at(10),
        started_at=None,
        finished_at=None,
    )
    found = trace_of(tree(works, asks, end=day_s), at(day_s), calls={})
    assert found.axis is not None
    assert [fold.label for fold in found.axis.folds] == ["23 h 59 min"]
    bars = [line.ran.width for line in found.lines[2:] if line.ran]
    assert min(bars) > WIDTH / 2


def test_calls_of_one_name_that_follow_one_another_are_a_group_with_their_sums() -> None:
    used = Usage(input_tokens=10)
    calls = [call(n, tokens=10, usage=used, finished_at=at(n)) for n in (1, 2, 3)]
    other = call(4, "get_earnings")
    found = lines(tree(node(STEP, PIPELINE), *calls, other, call(5), call(6)), at(10), calls=6)
    assert [(line.node.name, line.count, line.within) for line in found[3:]] == [
        ("get_news", 3, False),
        *[("get_news", 1, True)] * 3,
        ("get_earnings", 1, False),
        *[("get_news", 1, False)] * 2,
    ]
    assert (found[3].node.tokens, found[3].ran_s) == (30, 3.0)
    assert found[2].calls == 6
    assert [line.depth for line in found] == [0, 1, 2, *[3] * 7]


def test_a_call_is_a_sentence_and_has_a_page_and_so_has_an_operation() -> None:
    asked = call(
        7,
        "get_stock_price",
        metadata={"index": 4, "arguments": {"ticker": "AAPL"}, "result": "584.00"},
    )
    root, pipeline, step, leaf = lines(tree(node(STEP, PIPELINE), asked), at(10))
    assert leaf.sentence == "get_stock_price(AAPL) = 584.00"
    assert leaf.href == f"/operations/{STEP}/calls/4"
    assert step.href == f"/operations/{STEP}"
    assert (root.href, pipeline.href) == ("", "")
    assert [line.is_branch for line in (root, pipeline, step)] == [True, True, False]


def test_retries_and_fences_are_marks_where_they_happened() -> None:
    noted = [
        Noted(STEP, at(5), "retry", "try 2 of the same model call"),
        Noted(STEP, at(7.5), "fence", "epoch 2"),
        Noted(UUID(int=99), at(1), "retry", "of a step that is not shown"),
    ]
    step = lines(tree(node(STEP, PIPELINE)), at(10), *noted)[2]
    assert [(mark.x, mark.kind) for mark in step.marks] == [(500, "retry"), (750, "fence")]
    assert step.retries == 1


def test_an_empty_tree_has_no_lines() -> None:
    assert trace_of([], at(0), calls={}).lines == ()
