"""Answers to requests, as their senders are told."""

from collections.abc import Sequence

from contracts.constraints import ENFORCED
from contracts.cycle import DECISION, STRATEGY, CycleRequest, RequestAnswer
from libs.runtime.nearest import did_you_mean, nearest, slip
from libs.runtime.proposers import OPEN_MAX
from services.orchestrator.group.changes import Loaded, Proposed
from services.orchestrator.group.inputs import CycleRequested
from services.orchestrator.group.rows import CycleRow


def rejection(code: str, message: str, name: str | None = None) -> RequestAnswer:
    """A request's refusal."""
    return RequestAnswer(outcome="rejected", code=code, message=message, field=name)


def mistaken(
    code: str, message: str, name: str, value: str, near: str | None, usual: str | None = None
) -> RequestAnswer:
    """The refusal of something that there is not: what comes near it, or else the usual one."""
    return RequestAnswer(
        outcome="rejected",
        code=code,
        message=message,
        field=name,
        given=value,
        suggestion=near or usual,
    )


def with_status(answer: RequestAnswer, row: CycleRow) -> RequestAnswer:
    """The answer with the cycle's present status in it."""
    return answer.model_copy(update={"cycle_id": row.cycle_id, "status": row.state.status})


def accepted(row: CycleRow) -> RequestAnswer:
    """A yes, with the cycle's present status."""
    return RequestAnswer(outcome="accepted", cycle_id=row.cycle_id, status=row.state.status)


def repeated(row: CycleRow, asked: CycleRequested) -> RequestAnswer:
    """The answer to a request whose cycle is there: a yes, unless its body is another."""
    if row.body_sha256 == asked.body_sha256:
        return accepted(row)
    key = asked.request.idempotency_key
    text = f"idempotency_key {key!r} was used for another request; use a new key or the same body"
    return with_status(rejection("key_reused", text, "idempotency_key"), row)


def unknown_kind(kind: str, known: Sequence[str]) -> RequestAnswer:
    """Why there can be no cycle of this kind."""
    near = nearest(kind, known)
    text = f"unknown kind {kind!r}; the kinds are {', '.join(known)}{did_you_mean(near)}"
    return mistaken("invalid", text, "kind", kind, near, DECISION)


def mistyped_constraint(request: CycleRequest) -> RequestAnswer | None:
    """Why a constraint must be written otherwise: taken for a note, it would bind nothing."""
    typo = slip(request.constraints, ENFORCED)
    if typo is None:
        return None
    name, near = typo
    enforced = ", ".join(ENFORCED)
    text = (
        f"{name} would only be a note to the agents; code enforces {enforced}{did_you_mean(near)}"
    )
    return mistaken("invalid", text, f"constraints.{name}", name, near)


def too_often(proposed: Proposed, per_hour_max: int) -> RequestAnswer | None:
    """Why a proposer must wait; None where it may propose. Proposals and previews count alike."""
    if proposed.open >= OPEN_MAX:
        text = f"{proposed.open} of your proposals have not ended: wait until a person has answered"
        return rejection("busy", text)
    if proposed.lately >= per_hour_max:
        text = (
            f"{proposed.lately} proposals and previews within an hour, and {per_hour_max} are "
            "allowed: propose again later"
        )
        return rejection("too_often", text)
    return None


def too_many(kind: str, loaded: Loaded, running_max: int) -> RequestAnswer | None:
    """Why no further cycle of this kind may begin now; None where one may."""
    if kind == STRATEGY and loaded.strategies_running:
        text = "a strategy cycle is running: wait for its end, or cancel it first"
        return rejection("active_cycle_exists", text, "kind")
    if loaded.running >= running_max:
        text = f"{loaded.running} cycles are running; try again when some have ended"
        return rejection("busy", text)
    return None
