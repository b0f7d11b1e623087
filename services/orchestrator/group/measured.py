"""Metrics, traces and log lines of a committed group, written after the commit: each fact on
record, once."""

from collections.abc import Sequence
from datetime import datetime

import structlog

from contracts.audit import EventType, tells_failure
from contracts.cycle import CycleStatus, RequestAnswer
from contracts.message import Message
from contracts.operation import CallKind, ClaimAnswer, JournalEntry, RecordAnswer, ResultAnswer
from libs.facts import amounts
from libs.telemetry import metrics, tracing
from services.orchestrator.group.batch import InputBatch
from services.orchestrator.group.changes import NewEvent
from services.orchestrator.group.rows import CycleRow
from services.orchestrator.machine.logic import SHARED

ENDS = {
    EventType.OPERATION_COMPLETED: "completed",
    EventType.OPERATION_FAILED: "failed",
    EventType.OPERATION_CANCELLED: "cancelled",
}
QUESTIONS = {
    ClaimAnswer: "claim",
    RecordAnswer: "record",
    ResultAnswer: "result",
    RequestAnswer: "request",
}
LOGGED = {
    EventType.CYCLE_ACCEPTED: "cycle.accepted",
    EventType.STATE_ENTERED: "cycle.state_entered",
    EventType.ATTEMPT_ENDED: "cycle.attempt_ended",
    EventType.PIPELINE_ENDED: "cycle.pipeline_ended",
    EventType.CYCLE_ENDED: "cycle.ended",
}
"""A cycle's begin, each transition of its pipelines, and its end, by the names of their lines."""
REASON_CHARS = 400
TOKENS = ("input", "output", "cache_read", "cache_write", "unsorted")

log = structlog.get_logger()


def count(group: InputBatch, answers: Sequence[Message | None]) -> None:
    """Count and log what the group wrote and answered."""
    for answer in answers:
        if isinstance(answer, ClaimAnswer | RecordAnswer | ResultAnswer | RequestAnswer):
            metrics.ANSWERS.add(QUESTIONS[type(answer)], answer.outcome)
    for start in group.starts:
        if start.epoch:
            metrics.ANSWERS.add("claim", "granted")
    for event in group.events:
        _event(group, event)
        if event.type in LOGGED:
            _log(group.cycle(event.cycle_id), event, group.at)
    for new in group.entries:
        _call(new.operation.step, new.entry)


def _event(group: InputBatch, event: NewEvent) -> None:
    match event.type:
        case EventType.CYCLE_ACCEPTED:
            metrics.CYCLES_ACCEPTED.add(group.cycle(event.cycle_id).kind)
        case EventType.CYCLE_ENDED:
            cycle = group.cycle(event.cycle_id)
            took = group.at - cycle.accepted_at
            metrics.CYCLES.add(cycle.kind, str(event.data["status"]))
            metrics.CYCLE_SECONDS.observe(took.total_seconds(), cycle.kind)
            if tracing.is_on():
                _trace(cycle, str(event.data["status"]))
        case (
            EventType.OPERATION_COMPLETED
            | EventType.OPERATION_FAILED
            | EventType.OPERATION_CANCELLED
        ):
            metrics.OPERATIONS.add(event.data["step"], ENDS[event.type])
            if event.type is EventType.OPERATION_FAILED:
                metrics.FAILURES.add(event.data["code"])
        case EventType.LLM_REQUESTED if event.data["wait_s"]:
            provider = event.data["name"].partition(":")[0]
            metrics.MODEL_WAIT.add(provider, by=event.data["wait_s"])
        case _:
            pass


def _log(cycle: CycleRow, event: NewEvent, at: datetime) -> None:
    """The line of an event; a warning where something failed."""
    fields: dict[str, object] = {"cycle_id": str(cycle.cycle_id)}
    if event.pipeline:
        fields |= {"pipeline": event.pipeline, "state": event.state}
    else:
        fields |= {"kind": cycle.kind, "as_of": str(cycle.as_of)}
    if event.type is EventType.CYCLE_ACCEPTED:
        fields |= {"requester": cycle.requester, "pipelines": _names(cycle)}
    if status := event.data.get("status"):
        reason = amounts.cut(str(event.data.get("reason") or ""), REASON_CHARS)
        fields |= {"status": str(status), **({"reason": reason} if reason else {})}
    if event.type is EventType.CYCLE_ENDED:
        took = at - cycle.accepted_at
        fields |= {"seconds": round(took.total_seconds(), 3), "tokens": cycle.purse.tokens_spent}
    failed = tells_failure(event.type, str(status or ""))
    (log.warning if failed else log.info)(LOGGED[event.type], **fields)


def _names(cycle: CycleRow) -> list[str]:
    return [name for name in cycle.pipelines if name != SHARED]


def _trace(cycle: CycleRow, status: str) -> None:
    """The root of the cycle's trace, now that it is over."""
    what = {
        "deskbus.cycle_id": str(cycle.cycle_id),
        "deskbus.kind": cycle.kind,
        "deskbus.status": status,
        "deskbus.as_of": str(cycle.as_of),
    }
    node = tracing.Node.of_cycle(cycle.cycle_id)
    failure = "cycle_failed" if status == CycleStatus.FAILED else ""
    tracing.ended(f"cycle {cycle.kind}", node, cycle.accepted_at, what, failure)


def _call(step: str, entry: JournalEntry) -> None:
    if entry.kind is not CallKind.MODEL:
        return
    provider, usage = entry.provider, entry.usage
    # The code of the error that stands in place of a reply.
    metrics.MODEL_CALLS.add(provider, step, str(entry.fault.get("code", "")) or "ok")
    metrics.MODEL_SECONDS.observe(entry.duration_ms / 1_000, provider)
    if usage.cost_usd is not None:
        metrics.MODEL_COST.add(provider, step, by=float(usage.cost_usd))
    for sort in TOKENS:
        metrics.MODEL_TOKENS.add(provider, sort, by=getattr(usage, f"{sort}_tokens"))
