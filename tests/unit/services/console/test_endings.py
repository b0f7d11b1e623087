"""What a cycle's page says of its end: each failure once."""

from datetime import UTC, date, datetime
from typing import Any
from uuid import UUID

from contracts.cycle import CycleStatus
from contracts.cycle_query import CycleView, PipelineView
from contracts.operation import OperationStatus, OperationView
from libs.report import ending
from services.console.pages.trace.endings import end_of, is_shown_above, reason_of
from services.console.pages.trace.waterfall import WaterfallLine

REFUSED = "lab: HTTP 401 (request req_{}); `deskbus doctor` names where the key comes from"
CYCLE = UUID(int=1)
AT = datetime(2026, 3, 5, tzinfo=UTC)


def pipeline(name: str, reason: str = "") -> PipelineView:
    return PipelineView(
        name=name,
        account="main",
        provider="lab",
        state="planning",
        status=CycleStatus.FAILED,
        reason=reason,
    )


def cycle(reason: str, *pipelines: PipelineView, **fields: Any) -> CycleView:
    given = {"status": CycleStatus.FAILED, "kind": "decision", "as_of": date(2012, 6, 29)}
    return CycleView(cycle_id=CYCLE, reason=reason, pipelines=pipelines, **{**given, **fields})


def line(error: str | None) -> WaterfallLine:
    node = OperationView(
        op_id=UUID(int=2),
        cycle_id=CYCLE,
        type="operation",
        name="plan",
        status=OperationStatus.FAILED,
        error_message=error,
        created_at=AT,
    )
    return WaterfallLine(node, 2, None, None, None, None)


def test_an_error_that_stands_at_the_top_is_not_said_again_by_steps_or_the_cycle() -> None:
    reason = f"planning/plan failed: {REFUSED.format(19)} (key_refused)"
    view = cycle(reason, pipeline("lab", reason))
    ends = [end_of(view, each, ()) for each in view.pipelines]
    assert [end.ending.place for end in ends] == ["failed in planning/plan"]
    assert reason_of(view, ends) == ""
    assert is_shown_above(line(REFUSED.format(19)), ends)
    # The memory could not be paid either: another request, and the same error.
    assert is_shown_above(line(REFUSED.format(21)), ends)
    assert not is_shown_above(line("the market is closed"), ends)
    assert not is_shown_above(line(None), ends)


def test_what_no_pipeline_says_is_said_of_the_cycle() -> None:
    view = cycle("every candidate source failed", pipeline("lab", "no digest"))
    ends = [end_of(view, each, ()) for each in view.pipelines]
    assert reason_of(view, ends) == "every candidate source failed"
    assert reason_of(cycle("all is well", status=CycleStatus.COMPLETED), []) == ""


def test_a_long_reason_that_is_cut_is_the_same_error() -> None:
    long = "no answer was valid: " + "x is no number; " * 200
    view = cycle(long, pipeline("lab", f"analyzing/analyst failed: {long}"))
    ends = [end_of(view, each, ()) for each in view.pipelines]
    assert is_shown_above(line(long), ends)


def test_a_gate_that_stopped_a_cycle_is_told_in_words_and_once() -> None:
    reason = "Backtest gate failed: max_drawdown_above_threshold (41.0% > 40.0%)"
    view = cycle(reason, pipeline("lab", reason))
    end = end_of(view, view.pipelines[0], ())

    assert end.ending.words == ending.in_words(reason)
    assert reason_of(view, [end]) == ""
    assert is_shown_above(line(reason), [end])
