"""A strategy cycle's way: where a gate stops a design the pipeline begins anew, and only there."""

from typing import Any
from uuid import UUID

import pytest

from contracts.audit import EventType
from contracts.cycle import CycleStatus
from contracts.types import Failure
from services.orchestrator.logic import (
    Advance,
    CancelAsked,
    Cycle,
    Fact,
    Input,
    Start,
    Started,
    StepDone,
    StepFailed,
    advance,
    begin,
)
from services.orchestrator.rows import dump_state, load_state
from services.orchestrator.workflow import STRATEGY

CYCLE_ID = UUID("11111111-2222-3333-4444-555555555555")
PASSED: dict[str, Any] = {"gate": {"passed": True, "reason": ""}}
REASON = "Training gate failed: accuracy_below_threshold (42.3% < 45.0%)"
STOPPED: dict[str, Any] = {"gate": {"passed": False, "reason": REASON}}


class Run:
    """One cycle driven by hand."""

    def __init__(self, rounds_max: int = 1) -> None:
        self.cycle: Cycle = begin(CYCLE_ID, ("rules",), "rules", None, rounds_max)
        self.started: list[Start] = []
        self.facts: list[Fact] = []
        self.feed(Started())

    def feed(self, given: Input) -> Advance:
        after = advance(STRATEGY, self.cycle, given)
        # Through the row and back, as it is stored between any two inputs.
        stored = dump_state(after.cycle)
        reason = after.cycle.reason
        self.cycle = load_state(CYCLE_ID, stored, after.cycle.status, reason)
        self.started += after.starts
        self.facts += after.facts
        return after

    def answer(self, contract: dict[str, Any]) -> None:
        now = self.started[-1]
        self.feed(StepDone(now.lane, now.step.name, now.attempt, contract))

    @property
    def steps(self) -> list[str]:
        return [start.step.name for start in self.started]


def test_a_design_that_passes_both_gates_is_assessed_and_completes() -> None:
    run = Run()
    for contract in ({}, PASSED, PASSED, {}):
        run.answer(contract)
    assert run.steps == ["design", "train", "backtest", "assess"]
    assert run.cycle.status is CycleStatus.COMPLETED


def test_its_states_have_the_names_that_people_know() -> None:
    run = Run()
    for contract in ({}, PASSED, PASSED, {}):
        run.answer(contract)
    entered = [fact.state for fact in run.facts if fact.type is EventType.STATE_ENTERED]
    assert entered == ["designing", "training", "backtesting", "assessing"]


@pytest.mark.parametrize(("passed", "step"), [(0, "train"), (1, "backtest")])
def test_a_gate_that_fails_ends_the_cycle_as_failed_with_its_reason(passed: int, step: str) -> None:
    run = Run()
    for contract in ({}, *[PASSED] * passed, STOPPED):
        run.answer(contract)
    assert run.steps[-1] == step
    assert (run.cycle.status, run.cycle.reason) == (CycleStatus.FAILED, REASON)


def test_with_attempts_left_the_next_design_begins_with_operations_of_its_own() -> None:
    run = Run(rounds_max=2)
    for contract in ({}, STOPPED, {}, PASSED, PASSED, {}):
        run.answer(contract)
    assert run.steps == ["design", "train", "design", "train", "backtest", "assess"]
    assert len({start.op_id for start in run.started}) == 6
    assert run.cycle.status is CycleStatus.COMPLETED


def test_the_next_design_takes_nothing_of_the_one_that_was_stopped() -> None:
    run = Run(rounds_max=2)
    for contract in ({}, PASSED, STOPPED, {}):
        run.answer(contract)
    train = run.started[-1]
    assert train.takes == {"strategy_design": run.started[-2].op_id}


def test_each_attempt_that_was_stopped_is_told_once_with_its_reason() -> None:
    run = Run(rounds_max=3)
    for contract in ({}, STOPPED, {}, STOPPED, {}, STOPPED):
        run.answer(contract)
    told = [fact for fact in run.facts if fact.type is EventType.ATTEMPT_ENDED]
    assert [fact.data["reason"] for fact in told] == [REASON, REASON]
    assert run.cycle.status is CycleStatus.FAILED
    keys = [(fact.node, fact.seq) for fact in run.facts]
    assert len(keys) == len(set(keys))


def test_what_could_not_be_done_is_no_attempt_and_ends_the_cycle() -> None:
    run = Run(rounds_max=3)
    run.answer({})
    broken = Failure(code="cannot_compute", message="train.first: before the first bar")
    run.feed(StepFailed("rules", "train", 1, broken))
    assert run.cycle.status is CycleStatus.FAILED
    assert "train.first" in run.cycle.reason
    assert run.steps == ["design", "train"]


def test_a_cancel_in_a_later_attempt_stops_what_runs() -> None:
    run = Run(rounds_max=2)
    for contract in ({}, STOPPED, {}):
        run.answer(contract)
    after = run.feed(CancelAsked("enough"))
    assert after.stops == (run.started[-1].op_id,)
    assert (run.cycle.status, run.cycle.reason) == (CycleStatus.CANCELLED, "enough")
