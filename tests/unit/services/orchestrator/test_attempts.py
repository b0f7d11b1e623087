"""A strategy cycle's way: where a gate stops a design the pipeline begins anew, and only there."""

from typing import Any

import pytest

from contracts.audit import EventType
from contracts.cycle import CycleStatus
from contracts.types import Failure
from services.orchestrator.machine.logic import (
    CancelAsked,
)
from services.orchestrator.machine.workflows import STRATEGY
from tests.unit.services.orchestrator.driven import Run

PASSED: dict[str, Any] = {"gate": {"passed": True, "reason": ""}}
REASON = "Training gate failed: accuracy_below_threshold (42.3% < 45.0%)"
STOPPED: dict[str, Any] = {"gate": {"passed": False, "reason": REASON}}


def run_of(*contracts: dict[str, Any], rounds_max: int = 1) -> Run:
    """A strategy cycle whose steps were answered by these, one after the other."""
    run = Run(STRATEGY, rounds_max=rounds_max)
    run.answer(*contracts)
    return run


def test_a_design_that_passes_both_gates_is_assessed_and_completes() -> None:
    run = run_of({}, PASSED, PASSED, {})
    assert run.steps == ["design", "train", "backtest", "assess"]
    assert run.cycle.status is CycleStatus.COMPLETED


def test_its_states_have_the_names_that_people_know() -> None:
    run = run_of({}, PASSED, PASSED, {})
    entered = [fact.state for fact in run.told(EventType.STATE_ENTERED)]
    assert entered == ["designing", "training", "backtesting", "assessing"]


@pytest.mark.parametrize(("passed", "step"), [(0, "train"), (1, "backtest")])
def test_a_gate_that_fails_ends_the_cycle_as_failed_with_its_reason(passed: int, step: str) -> None:
    run = run_of({}, *[PASSED] * passed, STOPPED)
    assert run.steps[-1] == step
    assert (run.cycle.status, run.cycle.reason) == (CycleStatus.FAILED, REASON)


def test_with_attempts_left_the_next_design_begins_with_operations_of_its_own() -> None:
    run = run_of({}, STOPPED, {}, PASSED, PASSED, {}, rounds_max=2)
    assert run.steps == ["design", "train", "design", "train", "backtest", "assess"]
    assert len({start.op_id for start in run.started}) == 6
    assert run.cycle.status is CycleStatus.COMPLETED


def test_the_next_design_takes_nothing_of_the_one_that_was_stopped() -> None:
    run = run_of({}, PASSED, STOPPED, {}, rounds_max=2)
    train = run.started[-1]
    assert train.takes == {"strategy_design": run.started[-2].op_id}


def test_each_attempt_that_was_stopped_is_told_once_with_its_reason() -> None:
    run = run_of({}, STOPPED, {}, STOPPED, {}, STOPPED, rounds_max=3)
    told = run.told(EventType.ATTEMPT_ENDED)
    assert [fact.data["reason"] for fact in told] == [REASON, REASON]
    assert run.cycle.status is CycleStatus.FAILED
    keys = [(fact.node, fact.seq) for fact in run.facts]
    assert len(keys) == len(set(keys))


def test_what_could_not_be_done_is_no_attempt_and_ends_the_cycle() -> None:
    run = run_of({}, rounds_max=3)
    broken = Failure(code="cannot_compute", message="train.first: before the first bar")
    run.failed("train", broken)
    assert run.cycle.status is CycleStatus.FAILED
    assert "train.first" in run.cycle.reason
    assert run.steps == ["design", "train"]


def test_a_cancel_in_a_later_attempt_stops_what_runs() -> None:
    run = run_of({}, STOPPED, {}, rounds_max=2)
    after = run.feed(CancelAsked("enough"))
    assert [stopped.op_id for stopped in after.stops] == [run.started[-1].op_id]
    assert (run.cycle.status, run.cycle.reason) == (CycleStatus.CANCELLED, "enough")
