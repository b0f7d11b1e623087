"""Workflows: states, the commands that each sends, and whether a cycle of it can end.

What a step needs is not said here: the fields of its command say it. A required field that names a
contract must be there before the step starts; an optional one is filled where it is.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from contracts.audit import EventType
from contracts.cycle import CycleStatus
from contracts.message import Command
from contracts.stages import Stage
from contracts.subjects.subject import AnySubject

FILLED_IN = frozenset(
    {
        "request",
        "outcome",
        "reason",
        "past_decisions",
        "past_strategies",
        "trials",
        "recalibrated_from",
        "plugins",
        "exit_plugins",
        "tool_plugins",
    }
)
"""Command fields that the orchestrator itself fills."""

STEP_TIME_LIMIT_S = 300.0


@dataclass(frozen=True)
class Ending:
    """How a pipeline ends, and why; `code` is that of the failure that ended it."""

    status: CycleStatus
    reason: str
    code: str = ""


# Looks at a contract (as JSON) and either lets the pipeline go on (None) or ends it.
Gate = Callable[[Mapping[str, Any]], Ending | None]


@dataclass(frozen=True)
class Asks:
    """A step that a person answers: nothing is sent, and the cycle's clock stands meanwhile.

    `asked` tells that it waits, with these fields of the contract that led to it (`tells`);
    `expired` tells that nobody answered in time, which is the cycle's end of that name.
    """

    asked: EventType
    expired: EventType
    tells: tuple[str, ...] = ()


@dataclass(frozen=True)
class Step:
    """One command of a state. A wrong answer is tried again up to `attempts_max` in all.

    `announces` publishes its contract as an event. The time limit of a step that `asks` a person
    is the desk's setting, not `time_limit_s`.
    """

    serves: AnySubject
    attempts_max: int = 1
    time_limit_s: float = STEP_TIME_LIMIT_S
    gate: Gate | None = None
    announces: EventType | None = None
    asks: Asks | None = None

    @property
    def name(self) -> str:
        """The step's name: the last token of its command's subject."""
        return self.serves.what

    @property
    def stage(self) -> Stage | None:
        """The stage that it is for a model; None where no model answers it."""
        command: type[Command] = self.serves.message
        return command.STAGE

    @property
    def must_answer(self) -> bool:
        """Whether its command has effects: no deadline, no cancel, sent until it is answered."""
        return self.serves.must_answer

    @cached_property
    def needs(self) -> frozenset[str]:
        """The contracts that must be there before it starts."""
        return frozenset(name for name, required in self._fields if required)

    @cached_property
    def takes(self) -> frozenset[str]:
        """The contracts it takes where they are there."""
        return frozenset(name for name, required in self._fields if not required)

    @property
    def _fields(self) -> Sequence[tuple[str, bool]]:
        own = set(self.serves.message.model_fields) - set(Command.model_fields) - FILLED_IN
        fields = self.serves.message.model_fields
        return [(name, fields[name].is_required()) for name in sorted(own)]


@dataclass(frozen=True)
class State:
    """Steps that run as soon as their contracts are there; the state ends when all are done.

    An `optional` one is passed only by pipelines for which it was asked.
    """

    name: str
    steps: tuple[Step, ...]
    optional: bool = False

    def step(self, name: str) -> Step:
        """The step of that name; raises KeyError."""
        for step in self.steps:
            if step.name == name:
                return step
        raise KeyError(name)


@dataclass(frozen=True)
class Workflow:
    """One kind of cycle. `shared` states run once, then every pipeline runs `states`.

    Every pipeline that ends other than by cancellation passes through `closing` last. It never
    changes how the pipeline ended: a step of it that fails is sent again, then noted.
    """

    kind: str
    version: int
    states: tuple[State, ...]
    shared: tuple[State, ...] = ()
    closing: State | None = None

    def of(self, *, shared: bool) -> tuple[State, ...]:
        """The states of the shared lane or of a pipeline, without the closing one."""
        return self.shared if shared else self.states

    def sends(self, command: AnySubject) -> bool:
        """Whether a pipeline of such a cycle sends this command."""
        return any(step.serves is command for state in self.states for step in state.steps)


def check(workflow: Workflow) -> Sequence[str]:
    """The defects that would keep a cycle of this workflow from ever ending, a sentence each; empty
    if sound.

    A step starts when its contracts are there, so each one it needs must come from a state before
    it or from a step of its own state; the closing state follows any end, so it may need none.
    """
    shared, after_shared = _lane_problems(workflow.shared, frozenset())
    lanes, _ = _lane_problems(workflow.states, after_shared)
    closing = (workflow.closing,) if workflow.closing else ()
    return [
        *shared,
        *lanes,
        *_lane_problems(closing, frozenset())[0],
        *_twice("state", [state.name for state in workflow.shared]),
        *_twice("state", [state.name for state in (*workflow.states, *closing)]),
        *(
            f"{state.name} is optional; only a pipeline's states may be"
            for state in (*workflow.shared, *closing)
            if state.optional
        ),
        *(
            f"{state.name}/{step.name} has effects; only a pipeline's states may have such steps"
            for state in (*workflow.shared, *closing)
            for step in state.steps
            if step.must_answer
        ),
    ]


def _lane_problems(
    states: Sequence[State], known: frozenset[str]
) -> tuple[Sequence[str], frozenset[str]]:
    """The problems of a row of states that begins with `known`, and what is known after it."""
    problems: list[str] = []
    for state in states:
        problems += _twice(f"step of {state.name}", [step.name for step in state.steps])
        waiting = list(state.steps)
        while ready := [step for step in waiting if step.needs <= known]:
            waiting = [step for step in waiting if step not in ready]
            contracts = [step.serves.gives for step in ready]
            problems += [f"{state.name} makes {name} again" for name in contracts if name in known]
            problems += _twice(f"contract made in {state.name}", contracts)
            known |= frozenset() if state.optional else frozenset(contracts)
        for step in waiting:
            missing = ", ".join(sorted(step.needs - known))
            problems.append(
                f"{state.name}/{step.name} never starts: nothing before makes {missing}"
            )
        known |= frozenset(step.serves.gives for step in waiting)
    return problems, known


def _twice(what: str, names: Sequence[str]) -> Sequence[str]:
    return [f"{what} {name!r} comes twice" for name in sorted({*names}) if names.count(name) > 1]
