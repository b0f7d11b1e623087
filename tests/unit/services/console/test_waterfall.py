"""A cycle's tree as lines: what waited lies before what ran, calls of one name are one line."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from contracts.operation import OperationStatus, OperationView
from contracts.types import Usage
from services.console.pages.waterfall import SEEN_MIN, WIDTH, Bar, lines

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


def test_what_waited_lies_before_what_ran() -> None:
    step = node(STEP, PIPELINE, created_at=at(2), started_at=at(5), finished_at=at(10))
    line = lines(tree(step), at(99), calls=False)[2]
    assert (line.waited, line.ran) == (Bar(200, 300), Bar(500, 500))
    assert (line.waited_s, line.ran_s) == (3.0, 5.0)


def test_what_still_waits_or_runs_reaches_to_now() -> None:
    open_end: dict[str, Any] = {"finished_at": None, "status": OperationStatus.RUNNING}
    waits = node(STEP, PIPELINE, **{**open_end, "started_at": None, "created_at": at(5)})
    runs = node(UUID(int=4), PIPELINE, **{**open_end, "started_at": at(5)})
    first, second = lines([*tree(waits, runs)], at(20), calls=False)[2:]
    assert (first.waited, first.ran, first.ran_s) == (Bar(250, 750), None, None)
    assert (second.ran, second.ran_s) == (Bar(250, 750), 15.0)


def test_a_moment_is_still_seen_and_stays_on_the_line() -> None:
    step = node(STEP, PIPELINE, created_at=at(10), started_at=at(10), finished_at=at(10))
    (bar,) = [line.ran for line in lines(tree(step), at(10), calls=False)][2:]
    assert bar == Bar(WIDTH - SEEN_MIN, SEEN_MIN)


def test_calls_of_one_name_that_follow_one_another_are_one_line_with_their_sums() -> None:
    used = Usage(input_tokens=10)
    calls = [call(n, tokens=10, usage=used, finished_at=at(n)) for n in (1, 2)]
    other = call(3, "get_earnings")
    found = lines(tree(node(STEP, PIPELINE), *calls, other, call(4)), at(10), calls=True)
    assert [(line.node.name, line.count) for line in found[3:]] == [
        ("get_news", 2),
        ("get_earnings", 1),
        ("get_news", 1),
    ]
    assert (found[3].node.tokens, found[3].ran_s) == (20, 2.0)
    assert found[2].calls == 4
    assert [line.depth for line in found] == [0, 1, 2, 3, 3, 3]


def test_without_calls_the_operation_says_how_many_it_made() -> None:
    found = lines(tree(node(STEP, PIPELINE), call(1), call(2)), at(10), calls=False)
    assert [line.calls for line in found] == [0, 0, 2]


def test_an_empty_tree_has_no_lines() -> None:
    assert lines([], at(0), calls=True) == ()
