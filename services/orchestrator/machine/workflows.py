"""The desk's workflows, as data: which states a cycle passes, which commands each state sends."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from contracts.approval import Verdict
from contracts.audit import EventType
from contracts.cycle import PREVIEW as OF_A_PROPOSER
from contracts.cycle import PROBE as OF_A_STUDY
from contracts.cycle import CycleStatus
from contracts.subjects.approvals import APPROVAL
from contracts.subjects.commands import (
    ANSWER_QUESTION,
    ASSESS_STRATEGY,
    BACKTEST_STRATEGY,
    BUILD_DIGEST,
    CHECK_EXITS,
    DESIGN_STRATEGY,
    EXECUTE_DECISIONS,
    MAKE_PLAN,
    MEMORIZE,
    OPEN_BOOKS,
    PICK_TRADES,
    PREVIEW_DECISION,
    PROBE_INPUTS,
    RESEARCH_TICKERS,
    REVIEW_PICKS,
    SCORE_SENTIMENT,
    TRAIN_STRATEGY,
    VALIDATE_DECISION,
    VALIDATE_EXITS,
    WRITE_REPORT,
)
from libs.runtime.settings import Settings
from services.orchestrator.machine.workflow import (
    STEP_TIME_LIMIT_S,
    Asks,
    Ending,
    State,
    Step,
    Workflow,
)

PLAN_ATTEMPTS_MAX = 3
ANSWER_ATTEMPTS_MAX = 2
"""Where the settings of these names do not say otherwise (`workflows_of`)."""
MEMORY_ATTEMPTS = 2
"""The model's, and where that fails for whatever reason the stated rules'."""
ATTEMPTS_RECORDED_MAX = 1_000
"""More than any setting allows."""


def nothing_to_execute(validation: Mapping[str, Any]) -> Ending | None:
    """A proposal of which nothing is left is a decision too: the pipeline completes."""
    if validation["passed"]:
        return None
    why = (
        "no pick was left after the rules" if validation.get("proposals") else "nothing was picked"
    )
    return Ending(CycleStatus.COMPLETED, f"nothing to execute: {why}")


def approved(approval: Mapping[str, Any]) -> Ending | None:
    """A rejected proposal ends there, with the approver's reason."""
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
                tells=("proposal_hash", "decisions", "substitutes"),
            ),
        ),
    ),
    optional=True,
)
"""A person between the rules and execution, where one was asked for."""

DECISION = Workflow(
    kind="decision",
    version=1,
    shared=(State("scanning", (Step(BUILD_DIGEST),)),),
    states=(
        State(
            "scanning",
            (
                Step(SCORE_SENTIMENT, attempts_max=ANSWER_ATTEMPTS_MAX),
                Step(OPEN_BOOKS),
            ),
        ),
        State("planning", (Step(MAKE_PLAN, attempts_max=PLAN_ATTEMPTS_MAX),)),
        State(
            "analyzing",
            (
                Step(ANSWER_QUESTION, attempts_max=ANSWER_ATTEMPTS_MAX),
                Step(RESEARCH_TICKERS, attempts_max=ANSWER_ATTEMPTS_MAX),
            ),
        ),
        State("deciding", (Step(PICK_TRADES, attempts_max=ANSWER_ATTEMPTS_MAX),)),
        State(
            "validating_decision",
            (
                Step(REVIEW_PICKS, attempts_max=ANSWER_ATTEMPTS_MAX),
                Step(
                    VALIDATE_DECISION,
                    gate=nothing_to_execute,
                    announces=EventType.DECISION,
                ),
            ),
        ),
        AWAITING_APPROVAL,
        State("executing", (Step(EXECUTE_DECISIONS),)),
    ),
    closing=State("memorizing", (Step(MEMORIZE, attempts_max=MEMORY_ATTEMPTS),)),
)


PREVIEW = replace(
    DECISION,
    kind=OF_A_PROPOSER,
    states=(
        *DECISION.states[:4],
        State(
            "validating_decision",
            (Step(REVIEW_PICKS, attempts_max=ANSWER_ATTEMPTS_MAX), Step(PREVIEW_DECISION)),
        ),
    ),
    closing=None,
)
"""A decision up to the rules' verdict: it has no state that orders anything, it is announced to
nobody as a decision, and no memory is made of it."""


def nothing_to_sell(validation: Mapping[str, Any]) -> Ending | None:
    """That every position stays is a decision too: the pipeline completes."""
    if validation["passed"]:
        return None
    why = (
        "no exit was left after the rules"
        if validation.get("proposals")
        else "no exit was proposed"
    )
    return Ending(CycleStatus.COMPLETED, f"nothing to sell: {why}")


EXIT = Workflow(
    kind="exit",
    version=1,
    states=(
        State(
            "checking_exits",
            (
                Step(OPEN_BOOKS),
                Step(CHECK_EXITS, announces=EventType.EXITS_CHECKED),
            ),
        ),
        State(
            "validating_decision",
            (
                Step(
                    VALIDATE_EXITS,
                    gate=nothing_to_sell,
                    announces=EventType.DECISION,
                ),
            ),
        ),
        AWAITING_APPROVAL,
        State("executing", (Step(EXECUTE_DECISIONS),)),
    ),
)
"""Every open position of an account is checked, and what is to be sold goes the way of buys. No
model takes part, and so there is no memory of it: the next cycle sees the portfolio."""

TRAINING_LIMIT_S = 3_000.0
BACKTEST_LIMIT_S = 600.0


def gate_passed(result: Mapping[str, Any]) -> Ending | None:
    """A strategy that its gate stops ends there, with each rule's value and threshold."""
    gate = result["gate"]
    return None if gate is None or gate["passed"] else Ending(CycleStatus.FAILED, gate["reason"])


STRATEGY = Workflow(
    kind="strategy",
    version=1,
    states=(
        State(
            "designing",
            (Step(DESIGN_STRATEGY, attempts_max=ANSWER_ATTEMPTS_MAX),),
        ),
        State(
            "training",
            (
                Step(
                    TRAIN_STRATEGY,
                    time_limit_s=TRAINING_LIMIT_S,
                    gate=gate_passed,
                ),
            ),
        ),
        State(
            "backtesting",
            (
                Step(
                    BACKTEST_STRATEGY,
                    time_limit_s=BACKTEST_LIMIT_S,
                    gate=gate_passed,
                ),
            ),
        ),
        State(
            "assessing",
            (Step(ASSESS_STRATEGY, attempts_max=ANSWER_ATTEMPTS_MAX),),
        ),
    ),
)
"""Where a gate stops a design the pipeline begins anew, as often as the request allows."""

SNAPSHOTTING = State("snapshotting", (Step(OPEN_BOOKS),))
SNAPSHOT = Workflow(kind="snapshot", version=1, states=(SNAPSHOTTING,))
"""Brings accounts to as_of's close and decides nothing."""
REPORTING = State("reporting", (Step(WRITE_REPORT, announces=EventType.REPORT_WRITTEN),))
REPORT = replace(SNAPSHOT, kind="report", states=(SNAPSHOTTING, REPORTING))
"""The same, and writes down what the session brought."""

PROBE = Workflow(
    kind=OF_A_STUDY,
    version=1,
    shared=DECISION.shared,
    states=(State("probing", (Step(PROBE_INPUTS, attempts_max=ANSWER_ATTEMPTS_MAX),)),),
)
"""Asks the models of a study's masked arms who and when a date's input is. It decides nothing."""

WORKFLOWS = (DECISION, PREVIEW, EXIT, STRATEGY, SNAPSHOT, REPORT, PROBE)
"""Every version that cycles may still run; a cycle stays with the version it began with."""


def workflows_of(settings: Settings) -> Sequence[Workflow]:
    """All versions, with the attempts and the time that the settings allow."""
    plan, answer = settings.model.plan_attempts_max, settings.model.answer_attempts_max
    limit_s = settings.model.step_limit_s
    return [_answered_by_models(workflow, plan, answer, limit_s) for workflow in WORKFLOWS]


def as_recorded() -> Sequence[Workflow]:
    """All versions for a replay: the record says what was tried again, whatever was allowed."""
    most = ATTEMPTS_RECORDED_MAX
    return [_answered_by_models(workflow, most, most, STEP_TIME_LIMIT_S) for workflow in WORKFLOWS]


def _answered_by_models(
    workflow: Workflow, plan: int, answer: int, time_limit_s: float
) -> Workflow:
    """The workflow with the limits of its steps that a model answers, which alone are tried again
    after a wrong answer."""

    def limited(state: State) -> State:
        steps = (
            replace(
                step,
                attempts_max={MAKE_PLAN: plan, MEMORIZE: MEMORY_ATTEMPTS}.get(step.serves, answer),
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
