"""Rows as the views that people get. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar
from uuid import UUID

import orjson

from contracts.approval import AwaitApproval
from contracts.cycle import CycleStatus
from contracts.memory import DecisionOutcome
from contracts.query import CycleView, PipelineView, WaitingApproval
from services.console.sizes import ANSWER_BYTES_MAX, cut, size_of

SHARED = "shared"
"""The lane whose contracts all pipelines use."""
ID_CHARS = 32
ID_CHARS_MIN = 4
REASON_CHARS_IN_LISTS = 400

Row = Mapping[str, Any]
T = TypeVar("T")


def id_range(text: str) -> tuple[UUID, UUID] | None:
    """The first and last id that begin with `text`; None where it is no beginning of an id."""
    digits = text.replace("-", "").strip().lower()
    known = set("0123456789abcdef")
    if not ID_CHARS_MIN <= len(digits) <= ID_CHARS or not set(digits) <= known:
        return None
    return UUID(digits.ljust(ID_CHARS, "0")), UUID(digits.ljust(ID_CHARS, "f"))


def outputs(row: Row) -> Mapping[str, Mapping[str, UUID]]:
    """By pipeline: the operation that made each contract, the shared ones included."""
    lanes = orjson.loads(row["state"])["lanes"]
    shared = lanes.get(SHARED, {}).get("outputs", {})
    return {
        name: {what: UUID(op_id) for what, op_id in {**shared, **lane["outputs"]}.items()}
        for name, lane in lanes.items()
        if name != SHARED
    }


def cycle_view(row: Row, contracts: Mapping[UUID, bytes] | None = None) -> CycleView:
    """A cycle; with `contracts` (results by operation) all that its pipelines have made."""
    lanes = orjson.loads(row["state"])["lanes"]
    asked = {each["name"]: each for each in orjson.loads(row["request"])["pipelines"]}
    made = outputs(row) if contracts else {}
    return CycleView(
        cycle_id=row["cycle_id"],
        kind=row["kind"],
        as_of=row["as_of"],
        status=CycleStatus(row["status"]),
        reason=_reason(row["reason"], contracts),
        requester=row["requester"][:400],
        accepted_at=row["accepted_at"],
        ended_at=row["ended_at"],
        tokens=row["tokens_spent"],
        cost_usd=row["cost_usd_spent"],
        pipelines=tuple(
            _pipeline(asked[name], lanes[name], made.get(name, {}), contracts) for name in asked
        ),
    )


def _pipeline(
    asked: Row, lane: Row, made: Mapping[str, UUID], contracts: Mapping[UUID, bytes] | None
) -> PipelineView:
    results = contracts or {}
    ending = lane["ending"] or {}
    return PipelineView(
        name=asked["name"],
        account=asked["account"],
        provider=asked["provider"],
        state=lane["state"],
        status=CycleStatus(lane["status"]),
        reason=_reason(ending.get("reason"), contracts),
        contracts={
            what: orjson.loads(results[op_id]) for what, op_id in made.items() if op_id in results
        },
    )


def waiting_approval(row: Row) -> WaitingApproval:
    """A proposal that waits."""
    asked = AwaitApproval.model_validate_json(row["command"])
    return WaitingApproval(
        cycle_id=row["cycle_id"],
        op_id=row["op_id"],
        pipeline=row["pipeline"],
        account=row["account"],
        as_of=row["as_of"],
        requester=row["requester"][:400],
        requested_at=row["created_at"],
        expires_at=row["deadline_at"],
        proposal=asked.decision_validation,
    )


def each_once(told: Iterable[DecisionOutcome]) -> tuple[DecisionOutcome, ...]:
    """The first outcome after each number of sessions."""
    found: dict[int, DecisionOutcome] = {}
    for outcome in told:
        found.setdefault(outcome.sessions, outcome)
    return tuple(found.values())


def _reason(reason: str | None, contracts: object) -> str:
    return (reason or "")[: REASON_CHARS_IN_LISTS if contracts is None else None]


def within(view: CycleView, bytes_max: int = ANSWER_BYTES_MAX) -> CycleView:
    """The view in one message: the largest contracts are cut until it fits, and it says so."""
    sizes = {
        (pipeline.name, what): size_of(contract)
        for pipeline in view.pipelines
        for what, contract in pipeline.contracts.items()
    }
    size = sum(sizes.values())
    left_out: set[tuple[str, str]] = set()
    for key in sorted(sizes, key=lambda each: sizes[each], reverse=True):
        if size <= bytes_max:
            break
        size -= sizes[key]
        left_out.add(key)
    if not left_out:
        return view
    pipelines = [
        pipeline.model_copy(
            update={
                "contracts": {
                    what: cut(contract, 0) if (pipeline.name, what) in left_out else contract
                    for what, contract in pipeline.contracts.items()
                }
            }
        )
        for pipeline in view.pipelines
    ]
    names = ", ".join(sorted("/".join(key) for key in left_out))
    message = f"too large for one answer, ask for the operation instead: {names}"
    return view.model_copy(update={"pipelines": tuple(pipelines), "message": message[:8_000]})


def picked(found: Sequence[T], count: int) -> Sequence[T]:
    """At most `count` of them, evenly spread; the first and the last among them."""
    if len(found) <= count or count < 2:
        return found[-max(count, 1) :]
    step = (len(found) - 1) / (count - 1)
    return [found[round(number * step)] for number in range(count)]
