"""What becomes of a request, as its sender is told."""

from contracts.cycle import STRATEGY, RequestAnswer
from services.orchestrator.changes import Loaded
from services.orchestrator.inputs import CycleAsked
from services.orchestrator.rows import CycleRow


def rejection(code: str, message: str, name: str | None = None) -> RequestAnswer:
    """A request's refusal."""
    return RequestAnswer(outcome="rejected", code=code, message=message, field=name)


def with_status(answer: RequestAnswer, row: CycleRow) -> RequestAnswer:
    """The answer with the cycle's present status in it."""
    return answer.model_copy(update={"cycle_id": row.cycle_id, "status": row.state.status})


def accepted(row: CycleRow) -> RequestAnswer:
    """A yes, with the cycle's present status."""
    return RequestAnswer(outcome="accepted", cycle_id=row.cycle_id, status=row.state.status)


def repeated(row: CycleRow, given: CycleAsked) -> RequestAnswer:
    """The answer to a request whose cycle is there: a yes, unless its body is another."""
    if row.body_sha256 == given.body_sha256:
        return accepted(row)
    key = given.request.idempotency_key
    text = f"idempotency_key {key!r} was used for another request; take a new key or the same body"
    return with_status(rejection("key_reused", text, "idempotency_key"), row)


def too_many(kind: str, loaded: Loaded, running_max: int) -> RequestAnswer | None:
    """Why no further cycle of this kind may begin now; None where one may."""
    if kind == STRATEGY and loaded.strategies_running:
        text = "a strategy cycle is running: wait for its end, or cancel it first"
        return rejection("active_cycle_exists", text, "kind")
    if loaded.running >= running_max:
        text = f"{loaded.running} cycles are running; try again when some have ended"
        return rejection("busy", text)
    return None
