"""The state machine: `advance(workflow, cycle, input)` says what follows. Pure and deterministic.

The shell around it (commit.py) loads and stores, and gives ids their rows; nothing here waits,
reads a clock or does I/O. An input that no longer fits (a repeated result, a late time-out)
changes nothing, so inputs may come twice, late and in any order.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, assert_never
from uuid import UUID

from contracts.audit import EventType
from contracts.cycle import CycleStatus
from contracts.stages import RULES, Stage
from contracts.types import TEXT_CHARS_MAX, Failure, shortened
from libs.runtime import ids
from services.orchestrator.machine.workflow import Ending, State, Step, Workflow

SHARED = "shared"
"""The lane whose contracts all pipelines use."""

MEMORY = "agent_memory"
"""What a lane has before it begins: its account's last memory."""

RUNNING = CycleStatus.RUNNING
COMPLETED = CycleStatus.COMPLETED
FAILED = CycleStatus.FAILED
CANCELLED = CycleStatus.CANCELLED
EXPIRED = CycleStatus.EXPIRED


@dataclass(frozen=True)
class PipelineState:
    """One pipeline's way through the states (or the shared one's).

    `live` holds the attempt of every step that runs, `done` the steps of the present state that
    ended, `outputs` the operation that made each contract. `ending` is set once the end is known;
    the lane then only has to pass its closing state. `passes` are its optional states. Where a gate
    fails it, it begins anew, up to `rounds_max` times in all. `fallback` names by stage the
    provider that is asked once after the stage has failed, and `fell_back` the steps that it was
    asked in. `substitutes` are those of all its contracts.
    """

    name: str
    state: str = ""
    live: Mapping[str, int] = field(default_factory=dict)
    done: tuple[str, ...] = ()
    outputs: Mapping[str, UUID] = field(default_factory=dict)
    ending: Ending | None = None
    status: CycleStatus = RUNNING
    entered: int = 0
    passes: tuple[str, ...] = ()
    round: int = 1
    rounds_max: int = 1
    fallback: Mapping[Stage, str] = field(default_factory=dict)
    fell_back: tuple[str, ...] = ()
    substitutes: tuple[Mapping[str, str], ...] = ()


@dataclass(frozen=True)
class Fallback:
    """An attempt of a stage that another `provider` answers, after the failure in `reason`."""

    stage: Stage
    provider: str
    reason: str


@dataclass(frozen=True)
class Cycle:
    """The state of one cycle, as it is stored."""

    cycle_id: UUID
    main: str
    lanes: Mapping[str, PipelineState]
    status: CycleStatus = RUNNING
    reason: str = ""


@dataclass(frozen=True)
class Started:
    """The cycle was accepted; `memories` are the operations that wrote each lane's last memory."""

    memories: Mapping[str, UUID] = field(default_factory=dict)


@dataclass(frozen=True)
class StepDone:
    """A step was answered with its contract (as JSON, already valid)."""

    lane: str
    step: str
    attempt: int
    contract: Mapping[str, Any]


@dataclass(frozen=True)
class StepFailed:
    """A step failed: for good, or by an answer that another attempt may correct."""

    lane: str
    step: str
    attempt: int
    failure: Failure
    corrections: tuple[str, ...] = ()


@dataclass(frozen=True)
class CancelAsked:
    """Somebody wants the cycle to stop."""

    reason: str


@dataclass(frozen=True)
class TimeIsUp:
    """The cycle's time limit has passed."""

    limit_s: float


Input = Started | StepDone | StepFailed | CancelAsked | TimeIsUp


@dataclass(frozen=True)
class Start:
    """An operation to insert and to send. `takes` maps contract names to the operations that hold
    them; `outcome` is given to the closing state's steps, `fallback` to a fallback's attempt."""

    op_id: UUID
    lane: str
    state: str
    step: Step
    attempt: int
    takes: Mapping[str, UUID]
    errors: tuple[str, ...] = ()
    outcome: Ending | None = None
    fallback: Fallback | None = None


@dataclass(frozen=True)
class EventDraft:
    """An event to append, under `node` (an operation, a pipeline or the cycle) as number `seq`.

    `lane` and `state` say where it happened. The pair (node, seq) is the same after every crash.
    """

    node: UUID
    seq: int
    type: EventType
    lane: str | None = None
    state: str | None = None
    data: Mapping[str, Any] = field(default_factory=dict)


class OperationStop(NamedTuple):
    """An operation that is to be stopped, and why."""

    op_id: UUID
    reason: str


@dataclass(frozen=True)
class Advance:
    """The consequences of an input; `changed` is False where it no longer fits."""

    cycle: Cycle
    starts: tuple[Start, ...] = ()
    stops: tuple[OperationStop, ...] = ()
    facts: tuple[EventDraft, ...] = ()
    changed: bool = True


GAVE_UP = (
    "; no answer of {count} was valid: name another model for this stage, or allow more attempts "
    "(model.plan_attempts_max, model.answer_attempts_max)"
)
# Numbers of an operation's own events; journalled calls come after them.
SEQ_STARTED, SEQ_ENDED, SEQ_ANNOUNCED, SEQ_ASKED, SEQ_CALLS = 0, 1, 2, 3, 10
TIMED_OUT = "timed_out"
BUDGET_EXHAUSTED = "budget_exhausted"
REASON_CHARS_MAX = 200
"""Of the failure that a fallback is told of."""
SEQ_ATTEMPTS = 10_000
"""Numbers of a pipeline's attempts, above those of the states it enters."""


def begin(
    cycle_id: UUID,
    pipelines: tuple[str, ...],
    main: str,
    passes: Mapping[str, tuple[str, ...]] | None = None,
    rounds_max: int = 1,
    fallbacks: Mapping[str, Mapping[Stage, str]] | None = None,
) -> Cycle:
    """A cycle before its first input; `passes` are the optional states of each pipeline, and
    `fallbacks` its fallback providers by stage."""
    states, others = passes or {}, fallbacks or {}
    lanes = {
        name: PipelineState(
            name,
            passes=states.get(name, ()),
            rounds_max=rounds_max,
            fallback=others.get(name, {}),
        )
        for name in (SHARED, *pipelines)
    }
    return Cycle(cycle_id, main, lanes)


def advance(workflow: Workflow, cycle: Cycle, cause: Input) -> Advance:
    """The consequences of one input."""
    if cycle.status is not RUNNING:
        return Advance(cycle, changed=False)
    turn = _Transition(workflow, cycle)
    match cause:
        case Started():
            turn.start(cause)
        case StepDone():
            turn.step_done(cause)
        case StepFailed():
            turn.step_failed(cause)
        case CancelAsked():
            turn.cancel(cause)
        case TimeIsUp():
            turn.time_is_up(cause)
        case _:
            assert_never(cause)
    return turn.outcome()


def may_cancel(workflow: Workflow, cycle: Cycle) -> bool:
    """Whether a cancel still counts: not once a step that must be answered was sent."""
    if cycle.status is not RUNNING:
        return False
    return not any(
        step.must_answer and (step.name in lane.live or step.serves.gives in lane.outputs)
        for lane in cycle.lanes.values()
        for state in workflow.states
        for step in state.steps
    )


def is_waiting(workflow: Workflow, cycle: Cycle) -> bool:
    """Whether a person is asked: the cycle's clock stands then."""
    return any(
        step.asks and step.name in lane.live
        for lane in cycle.lanes.values()
        for state in workflow.states
        if state.name == lane.state
        for step in state.steps
    )


class _Transition:
    """One input's consequences, gathered. Lives for one call of `advance`."""

    def __init__(self, workflow: Workflow, cycle: Cycle) -> None:
        self._workflow = workflow
        self._cycle = cycle
        self._lanes = dict(cycle.lanes)
        self._starts: list[Start] = []
        self._stops: list[OperationStop] = []
        self._facts: list[EventDraft] = []
        self._contract: Mapping[str, Any] = {}
        self._changed = True

    # --- inputs -----------------------------------------------------------------------------

    def start(self, cause: Started) -> None:
        for name, op_id in cause.memories.items():
            self._lanes[name] = replace(self._lanes[name], outputs={MEMORY: op_id})
        self._fact(self._cycle.cycle_id, 0, EventType.CYCLE_ACCEPTED)
        if self._workflow.shared:
            self._enter(SHARED, self._workflow.shared[0])
        else:
            self._lane_ended(SHARED, Ending(COMPLETED, ""))

    def step_done(self, cause: StepDone) -> None:
        lane, step = self._live(cause)
        if lane is None or step is None:
            return
        self._contract = cause.contract
        op_id = self._op_id(lane, step, cause.attempt)
        verdict = step.gate(cause.contract) if step.gate else None
        lane = replace(
            lane,
            live={name: n for name, n in lane.live.items() if name != step.name},
            done=(*lane.done, step.name),
            outputs={**lane.outputs, step.serves.gives: op_id},
            ending=lane.ending or verdict,
            substitutes=_united(lane.substitutes, cause.contract.get("substitutes", ())),
        )
        self._lanes[lane.name] = lane
        self._fact(op_id, SEQ_ENDED, EventType.OPERATION_COMPLETED, lane, {"step": step.name})
        if step.announces:
            self._fact(op_id, SEQ_ANNOUNCED, step.announces, lane, cause.contract)
        self._go_on(lane.name)

    def step_failed(self, cause: StepFailed) -> None:
        lane, step = self._live(cause)
        if lane is None or step is None:
            return
        failure = cause.failure
        op_id = self._op_id(lane, step, cause.attempt)
        data = {"step": step.name, **failure.model_dump(exclude_none=True)}
        self._fact(op_id, SEQ_ENDED, EventType.OPERATION_FAILED, lane, data)
        again = {**lane.live, step.name: cause.attempt + 1}
        fell_back = step.name in lane.fell_back
        is_closing = self._is_closing(lane)
        if (
            cause.corrections
            and cause.attempt < step.attempts_max
            and not (fell_back or is_closing)
        ):
            self._lanes[lane.name] = replace(lane, live=again)
            self._send(lane.name, step, cause.attempt + 1, cause.corrections)
            return
        fallback = _fallback(lane, step, cause, is_closing=is_closing)
        if fallback is not None and not fell_back:
            self._lanes[lane.name] = replace(
                lane, live=again, fell_back=(*lane.fell_back, step.name)
            )
            self._send(lane.name, step, cause.attempt + 1, (), fallback)
            return
        live = {name: n for name, n in lane.live.items() if name != step.name}
        self._lanes[lane.name] = replace(lane, live=live)
        reason = f"{lane.state}/{step.name} failed: {failure.message} ({failure.code})"
        if fell_back:
            reason += "; it was the fallback"
        elif cause.corrections and step.attempts_max > 1:
            reason += GAVE_UP.format(count=cause.attempt)
        ending = Ending(FAILED, reason, failure.code)
        if step.asks and failure.code == EXPIRED:
            self._fact(op_id, SEQ_ANNOUNCED, step.asks.expired, lane, data)
            ending = Ending(EXPIRED, failure.message)
        self._end_early(lane.name, ending)

    def cancel(self, cause: CancelAsked) -> None:
        if not may_cancel(self._workflow, self._cycle):
            self._changed = False
            return
        ending = Ending(CANCELLED, cause.reason)
        for name, lane in self._lanes.items():
            if lane.status is RUNNING:
                self._stop_live(name, ending.reason)
                self._finish(name, ending)
        self._end_cycle()

    def time_is_up(self, cause: TimeIsUp) -> None:
        ending = Ending(FAILED, f"time limit of {cause.limit_s:g} s passed")
        self._changed = False
        if is_waiting(self._workflow, self._cycle):
            return
        for name, lane in list(self._lanes.items()):
            if lane.status is RUNNING and lane.state and self._may_run_out(lane):
                self._changed = True
                self._end_early(name, replace(ending, reason=f"{lane.state}: {ending.reason}"))

    def outcome(self) -> Advance:
        cycle = replace(self._cycle, lanes=self._lanes) if self._changed else self._cycle
        return Advance(
            cycle, tuple(self._starts), tuple(self._stops), tuple(self._facts), self._changed
        )

    # --- lanes ------------------------------------------------------------------------------

    def _go_on(self, name: str) -> None:
        """Start what can start in the present state; leave the state once all is done."""
        lane = self._lanes[name]
        state = self._state(lane)
        if lane.ending is None or self._is_closing(lane):
            self._start_ready(name, state)
            lane = self._lanes[name]
        if lane.live:
            return
        if self._is_closing(lane):
            self._lane_ended(name, lane.ending or Ending(COMPLETED, ""))
        elif lane.ending is None:
            self._next_state(name, state)
        elif lane.ending.status is FAILED and lane.round < lane.rounds_max:
            self._begin_anew(name)
        else:
            self._close(name, lane.ending)

    def _begin_anew(self, name: str) -> None:
        """A gate has failed what this round made; the next one makes its own, from the start."""
        lane = self._lanes[name]
        node = ids.pipeline_id(self._cycle.cycle_id, name)
        if lane.ending is not None:
            why = _ending_data(lane.ending)
            self._fact(node, SEQ_ATTEMPTS + lane.round, EventType.ATTEMPT_ENDED, lane, why)
        outputs = {key: op_id for key, op_id in lane.outputs.items() if key == MEMORY}
        lane = replace(lane, ending=None, outputs=outputs, round=lane.round + 1)
        lane = replace(lane, fell_back=(), substitutes=())
        self._lanes[name] = lane
        self._enter(name, self._workflow.states[0])

    def _start_ready(self, name: str, state: State) -> None:
        lane = self._lanes[name]
        known = self._known(lane)
        ready = [
            step
            for step in state.steps
            if step.name not in lane.live
            and step.name not in lane.done
            and step.needs <= set(known)
        ]
        self._lanes[name] = replace(lane, live={**lane.live, **{step.name: 1 for step in ready}})
        for step in ready:
            self._send(name, step, 1, ())

    def _next_state(self, name: str, state: State) -> None:
        states = self._workflow.of(shared=name == SHARED)
        passes = self._lanes[name].passes
        for after in states[states.index(state) + 1 :]:
            if not after.optional or after.name in passes:
                self._enter(name, after)
                return
        self._close(name, Ending(COMPLETED, ""))

    def _enter(self, name: str, state: State) -> None:
        lane = self._lanes[name]
        lane = replace(lane, state=state.name, done=(), live={}, entered=lane.entered + 1)
        self._lanes[name] = lane
        node = ids.pipeline_id(self._cycle.cycle_id, name)
        self._fact(node, lane.entered, EventType.STATE_ENTERED, lane)
        self._go_on(name)

    def _end_early(self, name: str, ending: Ending) -> None:
        """The lane cannot go on: stop what runs, then close."""
        self._stop_live(name, ending.reason)
        lane = self._lanes[name]
        if not self._is_closing(lane) or lane.ending is None:
            self._close(name, ending)
            return
        # The closing state judges nothing: its failure is a note beside the end.
        note = "; ".join(filter(None, (lane.ending.reason, ending.reason)))
        self._lane_ended(name, replace(lane.ending, reason=note))

    def _close(self, name: str, ending: Ending) -> None:
        closing = self._workflow.closing
        if name == SHARED or closing is None:
            self._lane_ended(name, ending)
            return
        self._lanes[name] = replace(self._lanes[name], ending=ending)
        self._enter(name, closing)

    def _lane_ended(self, name: str, ending: Ending) -> None:
        self._finish(name, ending)
        if name != SHARED:
            self._end_cycle()
            return
        for other in [lane for lane in self._lanes if lane != SHARED]:
            if ending.status is COMPLETED:
                self._enter(other, self._workflow.states[0])
            else:
                self._close(other, ending)

    def _finish(self, name: str, ending: Ending) -> None:
        lane = replace(self._lanes[name], ending=ending, status=ending.status, live={}, done=())
        self._lanes[name] = lane
        if name != SHARED:
            node = ids.pipeline_id(self._cycle.cycle_id, name)
            self._fact(node, 0, EventType.PIPELINE_ENDED, lane, _ending_data(ending))

    def _end_cycle(self) -> None:
        if any(lane.status is RUNNING for lane in self._lanes.values()):
            return
        main = self._lanes[self._cycle.main].ending
        if main is None:
            raise ValueError(f"lane {self._cycle.main} stopped running without an ending")
        self._cycle = replace(self._cycle, status=main.status, reason=main.reason)
        self._fact(self._cycle.cycle_id, 1, EventType.CYCLE_ENDED, None, _ending_data(main))

    # --- small steps ------------------------------------------------------------------------

    def _live(self, cause: StepDone | StepFailed) -> tuple[PipelineState | None, Step | None]:
        """The lane and step that the input speaks of, where that very attempt is live."""
        lane = self._lanes.get(cause.lane)
        if lane is None or lane.live.get(cause.step) != cause.attempt:
            self._changed = False
            return None, None
        return lane, self._state(lane).step(cause.step)

    def _state(self, lane: PipelineState) -> State:
        closing = self._workflow.closing
        if closing is not None and lane.state == closing.name:
            return closing
        states = self._workflow.of(shared=lane.name == SHARED)
        return next(state for state in states if state.name == lane.state)

    def _is_closing(self, lane: PipelineState) -> bool:
        return self._workflow.closing is not None and lane.state == self._workflow.closing.name

    def _may_run_out(self, lane: PipelineState) -> bool:
        steps = (self._state(lane).step(name) for name in lane.live)
        return not self._is_closing(lane) and not any(step.must_answer for step in steps)

    def _known(self, lane: PipelineState) -> dict[str, UUID]:
        return {**self._lanes[SHARED].outputs, **lane.outputs}

    def _send(
        self,
        name: str,
        step: Step,
        attempt: int,
        errors: tuple[str, ...],
        fallback: Fallback | None = None,
    ) -> None:
        lane = self._lanes[name]
        if step.stage and lane.ending is not None and lane.ending.code == BUDGET_EXHAUSTED:
            # Nothing is left to pay for it, and every end but a cancelled one is remembered.
            fallback = Fallback(step.stage, RULES, BUDGET_EXHAUSTED)
        known = self._known(lane)
        inputs = step.needs | step.takes
        if step.asks:
            fields = {key: self._contract[key] for key in step.asks.tells if key in self._contract}
            node = self._op_id(lane, step, attempt)
            self._fact(node, SEQ_ASKED, step.asks.asked, lane, {"step": step.name, **fields})
        self._starts.append(
            Start(
                op_id=self._op_id(lane, step, attempt),
                lane=name,
                state=lane.state,
                step=step,
                attempt=attempt,
                takes={key: known[key] for key in sorted(inputs) if key in known},
                errors=errors,
                outcome=lane.ending,
                fallback=fallback,
            )
        )

    def _stop_live(self, name: str, reason: str) -> None:
        lane = self._lanes[name]
        for step, attempt in lane.live.items():
            op_id = self._id(lane, step, attempt)
            # A failure that ended its lane stands behind the name of its step.
            why = shortened(reason, TEXT_CHARS_MAX)
            self._stops.append(OperationStop(op_id, why))
            data = {"step": step, "message": why}
            self._fact(op_id, SEQ_ENDED, EventType.OPERATION_CANCELLED, lane, data)
        self._lanes[name] = replace(lane, live={})

    def _op_id(self, lane: PipelineState, step: Step, attempt: int) -> UUID:
        return self._id(lane, step.name, attempt)

    def _id(self, lane: PipelineState, step: str, attempt: int) -> UUID:
        cycle = self._cycle.cycle_id
        return ids.operation_id(cycle, lane.name, lane.state, step, attempt, lane.round)

    def _fact(
        self,
        node: UUID,
        seq: int,
        what: EventType,
        lane: PipelineState | None = None,
        data: Mapping[str, Any] | None = None,
    ) -> None:
        name, state = (lane.name, lane.state or None) if lane else (None, None)
        self._facts.append(EventDraft(node, seq, what, name, state, data or {}))


def _united(
    known: Sequence[Mapping[str, str]], new: Iterable[Mapping[str, str]]
) -> tuple[Mapping[str, str], ...]:
    return (*known, *(one for one in new if one not in known))


def _fallback(
    lane: PipelineState, step: Step, cause: StepFailed, *, is_closing: bool
) -> Fallback | None:
    """The fallback after this failure; None where none is set, or where another provider would
    meet the same: a spent budget, the desk's data, a fault of the program.

    What follows the end changes no decision: whatever failed there, the rules are its fallback.
    """
    failure = cause.failure
    of_model = failure.of_model or bool(cause.corrections) or failure.code == TIMED_OUT
    if step.stage is None or not (of_model or is_closing):
        return None
    provider = lane.fallback.get(step.stage, RULES if is_closing else "")
    if not provider:
        return None
    reason = f"{failure.code}: {failure.message}"
    return Fallback(step.stage, provider, shortened(reason, REASON_CHARS_MAX))


def _ending_data(ending: Ending) -> dict[str, str]:
    return {"status": ending.status, "reason": ending.reason}
