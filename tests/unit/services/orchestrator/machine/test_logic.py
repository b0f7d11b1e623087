"""The state machine alone: no clock, no I/O, the same events give the same states."""

from collections.abc import Mapping
from random import Random
from typing import Any
from uuid import uuid5

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.audit import EventType
from contracts.cycle import CycleStatus
from libs.runtime import ids
from services.orchestrator.machine.logic import (
    SHARED,
    Advance,
    CancelAsked,
    Cycle,
    Fallback,
    Input,
    Start,
    Started,
    StepDone,
    StepFailed,
    TimeIsUp,
    begin,
    may_cancel,
)
from services.orchestrator.machine.workflows import DECISION
from tests.unit.services.orchestrator import driven
from tests.unit.services.orchestrator.driven import BROKEN, CYCLE_ID

CORRECTIONS = ("assets.0: neither in the digest nor held; choose from AAPL",)

BUYING: Mapping[str, Any] = {"passed": True}
NOTHING_LEFT: Mapping[str, Any] = {"passed": False}


class Run(driven.Run):
    """A decision cycle; what is done is answered by something to buy."""

    def __init__(self, *pipelines: str) -> None:
        super().__init__(DECISION, *pipelines)

    def done(
        self, step: str, contract: Mapping[str, Any] = BUYING, lane: str | None = None
    ) -> Advance:
        return super().done(step, contract, lane)

    def to(self, *steps: str) -> "Run":
        for step in steps:
            self.done(step)
        return self


SCANNED = ("digest", "sentiment", "books")
ANALYZED = (*SCANNED, "plan", "quant", "analyst")
VALIDATED = (*ANALYZED, "picks", "review", "validate")


def test_a_cycle_passes_its_states_in_order_and_completes() -> None:
    run = Run().to(*VALIDATED, "execute", "memorize")
    assert run.status is CycleStatus.COMPLETED
    assert [fact.state for fact in run.told(EventType.STATE_ENTERED)] == [
        "scanning",
        "scanning",
        "planning",
        "analyzing",
        "deciding",
        "validating_decision",
        "executing",
        "memorizing",
    ]


def test_a_state_waits_for_both_of_its_parallel_steps() -> None:
    run = Run().to(*SCANNED, "plan")
    assert run.waiting() == ["analyst", "quant"]
    run.done("analyst")
    assert run.waiting() == ["quant"]
    run.done("quant")
    assert run.waiting() == ["picks"]


def test_a_step_starts_only_once_its_contracts_are_there() -> None:
    run = Run().to(*ANALYZED, "picks")
    assert run.waiting() == ["review"]
    start = run.open[next(iter(run.open))]
    assert set(start.takes) == {
        "plan",
        "daily_picks",
        "quant_report",
        "research_report",
        "portfolio",
    }


def test_nothing_left_after_the_rules_is_a_decision_and_no_order() -> None:
    run = Run().to(*ANALYZED, "picks", "review")
    run.done("validate", NOTHING_LEFT)
    assert run.waiting() == ["memorize"]
    run.done("memorize")
    assert run.status is CycleStatus.COMPLETED
    assert "nothing to execute" in run.cycle.reason


def test_the_validated_decision_is_announced_with_its_contract() -> None:
    run = Run().to(*VALIDATED)
    assert [dict(fact.data) for fact in run.told(EventType.DECISION)] == [BUYING]


def test_a_wrong_answer_is_tried_again_with_its_errors_and_a_new_id() -> None:
    run = Run().to(*SCANNED)
    first = next(iter(run.open.values()))
    run.failed("plan", corrections=CORRECTIONS)
    again = next(iter(run.open.values()))
    assert (again.attempt, again.errors) == (2, CORRECTIONS)
    assert again.op_id != first.op_id


def test_the_last_wrong_answer_fails_the_pipeline_which_is_still_remembered() -> None:
    run = Run().to(*SCANNED)
    for _ in range(3):
        run.failed("plan", corrections=CORRECTIONS)
    assert run.waiting() == ["memorize"]
    memorize = next(iter(run.open.values()))
    assert memorize.outcome is not None
    assert memorize.outcome.status is CycleStatus.FAILED
    run.done("memorize")
    assert run.status is CycleStatus.FAILED
    assert run.cycle.reason.startswith("planning/plan failed: ")


def test_a_failure_stops_the_parallel_step_of_its_state() -> None:
    run = Run().to(*SCANNED, "plan")
    quant = next(s.op_id for s in run.open.values() if s.step.name == "quant")
    run.failed("analyst")
    assert run.stopped == [quant]
    assert run.waiting() == ["memorize"]


def test_a_failed_digest_fails_every_pipeline() -> None:
    run = Run("a", "b")
    run.failed("digest")
    run.done("memorize", lane="a")
    run.done("memorize", lane="b")
    assert run.status is CycleStatus.FAILED


def test_pipelines_end_apart_and_the_main_one_gives_the_cycles_status() -> None:
    run = Run("main", "other")
    run.done("digest")
    run.failed("sentiment", lane="other")
    run.done("memorize", lane="other")
    assert run.status is CycleStatus.RUNNING
    for step in ("sentiment", "books", "plan", "quant", "analyst", "picks", "review", "validate"):
        run.done(step, lane="main")
    run.done("execute", lane="main")
    run.done("memorize", lane="main")
    assert run.status is CycleStatus.COMPLETED
    assert run.cycle.lanes["other"].status is CycleStatus.FAILED


@pytest.mark.parametrize("corrections", [(), CORRECTIONS])
def test_a_memory_that_fails_falls_back_to_the_rules_and_the_orders_complete_the_cycle(
    corrections: tuple[str, ...],
) -> None:
    run = Run().to(*VALIDATED, "execute")
    run.failed("memorize", corrections=corrections)
    again = next(iter(run.open.values()))
    assert (again.step.name, again.attempt) == ("memorize", 2)
    reason = f"{BROKEN.code}: {BROKEN.message}"
    assert again.fallback == Fallback("memory", "rules", reason)
    run.done("memorize")
    assert run.status is CycleStatus.COMPLETED


def test_a_memory_that_nobody_can_write_is_a_note_and_changes_no_end() -> None:
    run = Run().to(*VALIDATED, "execute")
    for _ in range(2):
        run.failed("memorize")
    assert run.status is CycleStatus.COMPLETED
    assert run.cycle.reason.startswith("memorizing/memorize failed: ")
    assert run.told(EventType.CYCLE_ENDED)[0].data["status"] == "completed"


@pytest.mark.parametrize("steps", [(), SCANNED, ANALYZED, (*ANALYZED, "picks", "review")])
def test_a_cancel_before_execution_stops_all_that_runs(steps: tuple[str, ...]) -> None:
    run = Run().to(*steps)
    live = set(run.open)
    run.feed(CancelAsked("enough"))
    assert run.status is CycleStatus.CANCELLED
    assert set(run.stopped) == live
    assert run.waiting() == []


def test_a_cancel_is_refused_from_the_moment_that_execution_is_sent() -> None:
    run = Run().to(*VALIDATED)
    assert not may_cancel(DECISION, run.cycle)
    assert not run.feed(CancelAsked("too late")).changed
    run.done("execute")
    assert not may_cancel(DECISION, run.cycle)


def test_execution_outlives_the_cycles_time_limit() -> None:
    run = Run().to(*VALIDATED)
    assert not run.feed(TimeIsUp(600)).changed
    run.to("execute", "memorize")
    assert run.status is CycleStatus.COMPLETED


def test_the_time_limit_fails_what_thinks_and_names_the_state() -> None:
    run = Run().to(*SCANNED, "plan")
    run.feed(TimeIsUp(600))
    run.done("memorize")
    assert run.cycle.reason == "analyzing: time limit of 600 s passed"


def test_a_memory_of_an_earlier_cycle_is_taken_where_a_step_wants_one() -> None:
    earlier = uuid5(CYCLE_ID, "earlier")
    cycle = begin(CYCLE_ID, ("rules",), "rules")
    run = Run()
    run.cycle, run.open = cycle, {}
    run.feed(Started({"rules": earlier}))
    run.to(*SCANNED)
    assert next(iter(run.open.values())).takes["agent_memory"] == earlier


ENDS = (CycleStatus.COMPLETED, CycleStatus.FAILED, CycleStatus.CANCELLED)


def outcome(cycle: Cycle) -> object:
    return cycle.status, cycle.reason, cycle.lanes


@settings(max_examples=150)
@given(seed=st.integers(0, 2**32), wrong=st.sets(st.sampled_from(["plan", "quant", "analyst"])))
def test_order_repetition_and_loss_of_inputs_change_nothing(seed: int, wrong: set[str]) -> None:
    """Any order of the same answers, each delivered any number of times, ends the same way."""

    def answer(start: Start) -> Input:
        if start.step.name in wrong and start.attempt == 1 and start.lane != SHARED:
            return StepFailed(start.lane, start.step.name, 1, BROKEN, CORRECTIONS)
        return StepDone(start.lane, start.step.name, start.attempt, BUYING)

    plain = Run("a", "b")
    while plain.open:
        start = next(iter(plain.open.values()))
        plain.open.pop(start.op_id)
        plain.feed(answer(start))

    random = Random(seed)
    shaken = Run("a", "b")
    history: list[Input] = []
    while shaken.open:
        start = random.choice(list(shaken.open.values()))
        shaken.open.pop(start.op_id)
        for each in [answer(start)] * random.randint(1, 3):
            shaken.feed(each)
            history.append(each)
        if history and random.random() < 0.5:
            assert not shaken.feed(random.choice(history)).changed
    assert plain.status is CycleStatus.COMPLETED
    # Facts are a set: two pipelines may interleave, but each (node, seq) is told once and alike.
    assert outcome(shaken.cycle) == outcome(plain.cycle)
    assert {(f.node, f.seq, f.type) for f in shaken.facts} == {
        (f.node, f.seq, f.type) for f in plain.facts
    }
    assert len({(f.node, f.seq) for f in shaken.facts}) == len(shaken.facts)


@settings(max_examples=150)
@given(seed=st.integers(0, 2**32))
def test_whatever_happens_a_cycle_ends_and_no_operation_is_left(seed: int) -> None:
    random = Random(seed)
    run = Run("a", "b")
    for _ in range(400):
        if not run.open:
            break
        start = random.choice(list(run.open.values()))
        what = random.random()
        if what < 0.05:
            run.feed(TimeIsUp(600))
        elif what < 0.08:
            run.feed(CancelAsked("random"))
        else:
            run.open.pop(start.op_id)
            said: Input = StepDone(
                start.lane, start.step.name, start.attempt, {"passed": random.random() < 0.7}
            )
            if what < 0.35 and not start.step.must_answer:
                wrong = random.random() < 0.5
                said = StepFailed(start.lane, start.step.name, start.attempt, BROKEN, wrong)
            run.feed(said)
    assert run.status in ENDS
    assert not run.open
    assert all(lane.status in ENDS for lane in run.cycle.lanes.values())
    assert len({(f.node, f.seq) for f in run.facts}) == len(run.facts)


def test_operation_ids_depend_on_the_attempt_alone_not_on_the_run() -> None:
    first, second = Run().to(*SCANNED), Run().to(*SCANNED)
    assert first.open.keys() == second.open.keys()
    plan = next(iter(first.open.values()))
    assert plan.op_id == ids.operation_id(CYCLE_ID, "rules", "planning", "plan", 1)
