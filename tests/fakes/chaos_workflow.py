"""A made-up desk for chaos: small contracts, every kind of step, and workflows that use them all.

Who does what: `thinker` and `scholar` make paid calls (claimed steps), `clerk` answers plain
steps, `effector` has effects. A cycle's `shape` (in its constraints) says what its steps do.
"""

from enum import StrEnum

from contracts.cycle import CycleRequest, CycleStatus
from contracts.message import Command, Contract
from contracts.subjects.commands import command
from services.orchestrator.machine.workflow import Ending, State, Step, Workflow

TIME_LIMIT_S = 3_600.0
LATE_LIMIT_S = 1.0
PIPELINES = ("alpha", "beta")
SECOND = "beta"
"""The pipeline in which the shapes differ; the other one always completes."""


class Shape(StrEnum):
    """What is to happen in a cycle, the same in every run of it."""

    PLAIN = "plain"
    RETRY = "retry"
    """The second pipeline's plan is wrong once."""
    BREAKS = "breaks"
    """The second pipeline's plan fails in a paid call."""
    ENOUGH = "enough"
    """The second pipeline ends at a gate, with nothing to execute."""


SHAPES = tuple(Shape)


class Behaviour(StrEnum):
    """What the single step `work` does, for tests that look at one operation."""

    QUICK = "quick"
    SLOW = "slow"
    """Each of its calls takes seconds."""
    ENDLESS = "endless"
    """Its first call does not come back within any test."""
    POISON = "poison"
    """Its process is gone as soon as it begins."""


class Gathered(Contract):
    """What the shared state found."""

    value: str


class Planned(Contract):
    """What a pipeline wants."""

    value: str


class LeftDone(Contract):
    """One side of the join."""

    value: str


class RightDone(Contract):
    """The other side of the join."""

    value: str


class Checked(Contract):
    """What the plain step says."""

    go_on: bool


class Effected(Contract):
    """What the effect was."""

    effect_id: str


class Remembered(Contract):
    """The closing state's contract."""

    value: str


class Worked(Contract):
    """What the single step gives."""

    value: str


class One(Contract):
    """A plain child of the bare join."""

    value: int


class Two(Contract):
    """The other plain child of the bare join."""

    value: int


class Gather(Command):
    """Claimed; shared by the pipelines."""

    request: CycleRequest


class MakeChaosPlan(Command):
    """Claimed; may be wrong once, or fail."""

    request: CycleRequest
    gathered: Gathered


class DoLeft(Command):
    """Claimed; runs beside `DoRight`."""

    request: CycleRequest
    planned: Planned


class DoRight(Command):
    """Claimed; runs beside `DoLeft`, at another service."""

    request: CycleRequest
    planned: Planned


class Check(Command):
    """Plain."""

    request: CycleRequest
    left_done: LeftDone
    right_done: RightDone


class Effect(Command):
    """Has an effect: sent until it is answered."""

    request: CycleRequest
    checked: Checked


class Remember(Command):
    """Claimed; the closing state, whatever became of the pipeline."""

    request: CycleRequest
    outcome: str
    reason: str


class Work(Command):
    """Claimed; does what the request's behaviour says."""

    request: CycleRequest


class Act(Command):
    """Has an effect, after `Work`."""

    request: CycleRequest
    worked: Worked


class DoOne(Command):
    """Plain."""

    request: CycleRequest


class DoTwo(Command):
    """Plain."""

    request: CycleRequest


GATHER = command("thinker", "gather", Gather, Gathered, claimed=True)
PLAN = command("thinker", "plan", MakeChaosPlan, Planned, claimed=True)
LEFT = command("thinker", "left", DoLeft, LeftDone, claimed=True)
RIGHT = command("scholar", "right", DoRight, RightDone, claimed=True)
CHECK = command("clerk", "check", Check, Checked)
EFFECT = command("effector", "effect", Effect, Effected, must_answer=True)
REMEMBER = command("scholar", "remember", Remember, Remembered, claimed=True)
WORK = command("thinker", "work", Work, Worked, claimed=True)
ACT = command("effector", "act", Act, Effected, must_answer=True)
ONE = command("clerk", "one", DoOne, One)
TWO = command("clerk", "two", DoTwo, Two)

COMMANDS = (GATHER, PLAN, LEFT, RIGHT, CHECK, EFFECT, REMEMBER, WORK, ACT, ONE, TWO)


def enough(checked: object) -> Ending | None:
    """The gate after the plain step."""
    if isinstance(checked, dict) and checked["go_on"]:
        return None
    return Ending(CycleStatus.COMPLETED, "that was enough")


CHAOS = Workflow(
    kind="chaos",
    version=1,
    shared=(State("gathering", (Step(GATHER, time_limit_s=TIME_LIMIT_S),)),),
    states=(
        State("planning", (Step(PLAN, attempts_max=2, time_limit_s=TIME_LIMIT_S),)),
        State(
            "joining",
            (Step(LEFT, time_limit_s=TIME_LIMIT_S), Step(RIGHT, time_limit_s=TIME_LIMIT_S)),
        ),
        State("checking", (Step(CHECK, time_limit_s=TIME_LIMIT_S, gate=enough),)),
        State("executing", (Step(EFFECT),)),
    ),
    closing=State("remembering", (Step(REMEMBER, time_limit_s=TIME_LIMIT_S),)),
)
SINGLE = Workflow(
    kind="single",
    version=1,
    states=(
        State("working", (Step(WORK, time_limit_s=TIME_LIMIT_S),)),
        State("acting", (Step(ACT),)),
    ),
)
LATE = Workflow(
    kind="late",
    version=1,
    states=(State("working", (Step(WORK, time_limit_s=LATE_LIMIT_S),)),),
)
JOIN = Workflow(
    kind="join",
    version=1,
    states=(State("both", (Step(ONE), Step(TWO))),),
)
WORKFLOWS = (CHAOS, SINGLE, LATE, JOIN)
