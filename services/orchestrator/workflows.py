"""The desk's workflows, as data: which states a cycle passes, which commands each state sends."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from contracts.approval import Verdict
from contracts.audit import EventType
from contracts.cycle import CycleStatus
from contracts.subjects import APPROVAL
from libs.runtime.settings import Settings
from services.orchestrator.workflow import (
    STEP_TIME_LIMIT_S,
    Asks,
    Ending,
    State,
    Step,
    Workflow,
    command,
)

PLAN = "plan"
"""The step whose attempts have a setting of their own."""
PLAN_ATTEMPTS_MAX = 3
ANSWER_ATTEMPTS_MAX = 2
"""Where the settings of these names do not say otherwise (`workflows_of`)."""
ATTEMPTS_RECORDED_MAX = 1_000
"""More than any setting allows."""


def nothing_to_execute(validation: Mapping[str, Any]) -> Ending | None:
    """A proposal of which nothing is left is a decision too: the pipeline completes."""
    if validation["passed"]:
        return None
    return Ending(CycleStatus.COMPLETED, "nothing to execute: no pick was left after the rules")


def approved(approval: Mapping[str, Any]) -> Ending | None:
    """What was rejected ends there, with the approver's reason."""
    if approval["verdict"] != Verdict.REJECT:
        return None
    why = f": {approval['reason']}" if approval["reason"] else ""
    return Ending(CycleStatus.REJECTED, f"rejected by {approval['approver']}{why}")


AWAITING_APPROVAL = State(
    "awaiting_approval",
    (
        Step(
            APPROVAL,
            gate=approved,
            announces=EventType.APPROVAL_DECIDED,
            asks=Asks(
                asked=EventType.APPROVAL_REQUESTED,
                expired=EventType.APPROVAL_EXPIRED,
                tells=("proposal_hash", "decisions"),
            ),
        ),
    ),
    optional=True,
)

DECISION_1 = Workflow(
    kind="decision",
    version=1,
    shared=(State("scanning", (Step(command("sentiment", "digest")),)),),
    states=(
        State(
            "scanning",
            (
                Step(command("sentiment", "sentiment"), attempts_max=ANSWER_ATTEMPTS_MAX),
                Step(command("execution", "books")),
            ),
        ),
        State("planning", (Step(command("research", PLAN), attempts_max=PLAN_ATTEMPTS_MAX),)),
        State(
            "analyzing",
            (
                Step(command("research", "quant"), attempts_max=ANSWER_ATTEMPTS_MAX),
                Step(command("research", "analyst"), attempts_max=ANSWER_ATTEMPTS_MAX),
            ),
        ),
        State("deciding", (Step(command("trader", "picks"), attempts_max=ANSWER_ATTEMPTS_MAX),)),
        State(
            "validating_decision",
            (
                Step(command("risk", "review"), attempts_max=ANSWER_ATTEMPTS_MAX),
                Step(
                    command("risk", "validate"),
                    gate=nothing_to_execute,
                    announces=EventType.DECISION,
                ),
            ),
        ),
        State("executing", (Step(command("execution", "execute")),)),
    ),
    closing=State(
        "memorizing", (Step(command("assessment", "memorize"), attempts_max=ANSWER_ATTEMPTS_MAX),)
    ),
)

DECISION = replace(
    DECISION_1,
    version=2,
    states=(*DECISION_1.states[:-1], AWAITING_APPROVAL, DECISION_1.states[-1]),
)
"""With a person between the rules and execution, where one was asked for."""


def nothing_to_sell(validation: Mapping[str, Any]) -> Ending | None:
    """That every position stays is a decision too: the pipeline completes."""
    if validation["passed"]:
        return None
    return Ending(CycleStatus.COMPLETED, "nothing to sell: no exit was left after the rules")


EXIT = Workflow(
    kind="exit",
    version=1,
    states=(
        State(
            "checking_exits",
            (
                Step(command("execution", "books")),
                Step(command("exit_signal", "check_exits"), announces=EventType.EXITS_CHECKED),
            ),
        ),
        State(
            "validating_decision",
            (
                Step(
                    command("risk", "validate_exits"),
                    gate=nothing_to_sell,
                    announces=EventType.DECISION,
                ),
            ),
        ),
        AWAITING_APPROVAL,
        State("executing", (Step(command("execution", "execute")),)),
    ),
)
"""Every open position of an account is checked, and what is to be sold goes the way of buys. No
model takes part, and so there is no memory of it: the next cycle sees the portfolio."""

TRAINING_LIMIT_S = 3_000.0
BACKTEST_LIMIT_S = 600.0


def gate_passed(result: Mapping[str, Any]) -> Ending | None:
    """What its gate stops ends there, with each rule's value and threshold."""
    gate = result["gate"]
    return None if gate is None or gate["passed"] else Ending(CycleStatus.FAILED, gate["reason"])


STRATEGY = Workflow(
    kind="strategy",
    version=1,
    states=(
        State(
            "designing",
            (Step(command("strategy_design", "design"), attempts_max=ANSWER_ATTEMPTS_MAX),),
        ),
        State(
            "training",
            (
                Step(
                    command("strategy_training", "train"),
                    time_limit_s=TRAINING_LIMIT_S,
                    gate=gate_passed,
                ),
            ),
        ),
        State(
            "backtesting",
            (
                Step(
                    command("strategy_backtest", "backtest"),
                    time_limit_s=BACKTEST_LIMIT_S,
                    gate=gate_passed,
                ),
            ),
        ),
        State(
            "assessing",
            (Step(command("assessment", "assess"), attempts_max=ANSWER_ATTEMPTS_MAX),),
        ),
    ),
)
"""Where a gate stops a design the pipeline begins anew, as often as the request allows."""

SNAPSHOTTING = State("snapshotting", (Step(command("execution", "books")),))
SNAPSHOT = Workflow(kind="snapshot", version=1, states=(SNAPSHOTTING,))
"""Brings accounts to as_of's close and decides nothing."""
REPORTING = State("reporting", (Step(command("reporter", "report")),))
REPORT = replace(SNAPSHOT, kind="report", states=(SNAPSHOTTING, REPORTING))
"""The same, and writes down what the session brought."""

WORKFLOWS = (DECISION_1, DECISION, EXIT, STRATEGY, SNAPSHOT, REPORT)
"""Every version that cycles may still run; a cycle stays with the version it began with."""


def workflows_of(settings: Settings) -> Sequence[Workflow]:
    """All versions, with the attempts and the time that the settings allow."""
    plan, answer = settings.plan_attempts_max, settings.answer_attempts_max
    limit_s = settings.model_step_limit_s
    return [_answered_by_models(workflow, plan, answer, limit_s) for workflow in WORKFLOWS]


def as_recorded() -> Sequence[Workflow]:
    """All versions for a replay: the record says what was tried again, whatever was allowed."""
    most = ATTEMPTS_RECORDED_MAX
    return [_answered_by_models(each, most, most, STEP_TIME_LIMIT_S) for each in WORKFLOWS]


def _answered_by_models(
    workflow: Workflow, plan: int, answer: int, time_limit_s: float
) -> Workflow:
    """The workflow with the limits of its steps that a model answers, which alone are tried again
    after a wrong answer."""

    def limited(state: State) -> State:
        steps = (
            replace(
                step,
                attempts_max=plan if step.name == PLAN else answer,
                time_limit_s=time_limit_s,
            )
            if step.attempts_max > 1
            else step
            for step in state.steps
        )
        return replace(state, steps=tuple(steps))

    return replace(
        workflow,
        shared=tuple(map(limited, workflow.shared)),
        states=tuple(map(limited, workflow.states)),
        closing=limited(workflow.closing) if workflow.closing else None,
    )
