"""Rows as the views that people get. Pure."""

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, time, timedelta
from decimal import Decimal
from typing import Any, TypeVar
from uuid import UUID

import orjson
from pydantic import ValidationError

from contracts.approval import AwaitApproval, WaitingApproval
from contracts.cycle import Budgets, CycleStatus
from contracts.cycle_query import CycleView, PipelineView
from contracts.execution import DecisionView, ExecutionResult
from contracts.halt import Halt
from contracts.memory import DecisionOutcome
from contracts.proposal import TradeProposal, UncheckedWords
from contracts.risk import DecisionValidation, UnreadableDecision
from contracts.stages import Substitute
from contracts.types import Usage
from contracts.upkeep import BudgetView, DayUsage
from libs.facts import amounts
from libs.runtime.errors import DeskError
from libs.runtime.settings import Settings
from services.console.sizes import ANSWER_BYTES_MAX, cut, size_of

PCT_STEP = Decimal("0.0001")
"""Percentages and ratios have four places."""
SHARED = "shared"
"""The lane whose contracts all pipelines use."""
REASON_CHARS_IN_LISTS = 400
SORTS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
"""Columns of what calls used, besides the whole."""

Row = Mapping[str, Any]
T = TypeVar("T")


class UnreadableRecord(DeskError):
    """A later release wrote this, or it is damaged; `name` identifies it."""

    code = "unreadable"

    def __init__(self, what: str, name: str) -> None:
        super().__init__(
            f"{what} {name} is on record, and this version of Deskbus cannot read it: a "
            "later one wrote it; run that one"
        )
        self.name = name


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
    request = orjson.loads(row["request"])
    asked = {pipeline["name"]: pipeline for pipeline in request["pipelines"]}
    outputs_of = outputs(row) if contracts else {}
    return CycleView.model_validate(
        {
            **row,
            "reason": _reason(row["reason"], contracts),
            "requester": row["requester"][:400],
            "timeout_s": request.get("timeout_s"),
            "usage": usage_of(row),
            "pipelines": [
                _pipeline(asked[name], lanes[name], outputs_of.get(name, {}), contracts)
                for name in asked
            ],
        }
    )


def usage_of(row: Row) -> Usage:
    """The usage of a row's calls, by sort. Tokens that the sorts do not account for are of no known
    one.
    """
    sorts = {name: int(row[name]) for name in SORTS}
    rest = max(row["tokens"] - sum(sorts.values()), 0)
    return Usage(**sorts, unsorted_tokens=rest, cost_usd=row["cost_usd"])


def budget_view(rows: Sequence[Row], now: datetime, settings: Settings) -> BudgetView:
    """The budget of the UTC day of `now`; `rows` are days with paid calls, the newest first."""
    today = now.astimezone(UTC).date()
    row: Row = rows[0] if rows and rows[0]["day"] == today else {}
    held_tokens, held_usd = row.get("tokens_reserved", 0), row.get("cost_usd_reserved", Decimal(0))
    used_tokens, used_usd = row.get("tokens", 0), row.get("known_usd", Decimal(0))
    cycle = Budgets()
    return BudgetView(
        today=today,
        resets_at=datetime.combine(today + timedelta(days=1), time(), UTC),
        tokens_max=settings.budget.day_tokens_max,
        cost_usd_max=settings.budget.day_cost_usd_max,
        tokens_held=held_tokens,
        cost_usd_held=held_usd,
        tokens_left=max(settings.budget.day_tokens_max - used_tokens - held_tokens, 0),
        cost_usd_left=max(settings.budget.day_cost_usd_max - used_usd - held_usd, Decimal(0)),
        operation_tokens_max=settings.budget.operation_tokens_max,
        operation_cost_usd_max=settings.budget.operation_cost_usd_max,
        cycle_tokens_max=cycle.tokens,
        cycle_cost_usd_max=cycle.cost_usd,
        days=tuple(DayUsage(day=row["day"], usage=usage_of(row)) for row in rows),
    )


def _pipeline(
    asked: Row, lane: Row, output_ids: Mapping[str, UUID], contracts: Mapping[UUID, bytes] | None
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
        substitutes=tuple(map(Substitute.model_validate, lane.get("substitutes", ()))),
        contracts={
            what: orjson.loads(results[op_id])
            for what, op_id in output_ids.items()
            if op_id in results
        },
    )


def waiting_approval(row: Row) -> WaitingApproval | UnreadableDecision:
    """A proposal that waits. One that cannot be read stands for itself: the others are shown."""
    try:
        asked = AwaitApproval.model_validate_json(row["command"])
    except ValidationError:
        return _unreadable(row, row["created_at"])
    return WaitingApproval.model_validate(
        {
            **row,
            "requester": row["requester"][:400],
            "requested_at": row["created_at"],
            "expires_at": row["deadline_at"],
            "proposal": asked.decision_validation,
            "unchecked": _unchecked(row),
        }
    )


def _unchecked(row: Row) -> tuple[UncheckedWords, ...]:
    """A proposer's own words, where one asked for the cycle."""
    proposal = orjson.loads(row["request"]).get("proposal")
    picks = () if proposal is None else TradeProposal.model_validate(proposal).picks
    return tuple(
        UncheckedWords(ticker=pick.ticker, action=pick.action, words=pick.reason)
        for pick in picks
        if pick.reason
    )


def decision_view(row: Row) -> DecisionView | UnreadableDecision:
    """A decision with what was executed of it. One that cannot be read stands for itself, as a
    proposal."""
    executed = row["execution"]
    try:
        decision = DecisionValidation.model_validate_json(row["decision"])
        execution = ExecutionResult.model_validate_json(executed) if executed else None
    except ValidationError:
        return _unreadable(row, row["finished_at"])
    return DecisionView.model_validate(
        {**row, "decided_at": row["finished_at"], "decision": decision, "execution": execution}
    )


def _unreadable(row: Row, at: datetime) -> UnreadableDecision:
    return UnreadableDecision.model_validate({**row, "at": at})


def halt_of(row: Row) -> Halt:
    """A halt that stands."""
    return Halt.model_validate({**row, "by": row["by_whom"], "since": row["at"]})


def each_once(outcomes: Iterable[DecisionOutcome]) -> tuple[DecisionOutcome, ...]:
    """The first outcome after each number of sessions."""
    newest: dict[int, DecisionOutcome] = {}
    for outcome in outcomes:
        newest.setdefault(outcome.sessions, outcome)
    return tuple(newest.values())


def _reason(reason: str | None, contracts: object) -> str:
    whole = reason or ""
    return whole if contracts is not None else amounts.cut(whole, REASON_CHARS_IN_LISTS)


def within(view: CycleView, bytes_max: int = ANSWER_BYTES_MAX) -> CycleView:
    """The view in one message: the largest contracts are cut until it fits, and it says so."""
    sizes = {
        (pipeline.name, what): size_of(contract)
        for pipeline in view.pipelines
        for what, contract in pipeline.contracts.items()
    }
    size = sum(sizes.values())
    left_out: set[tuple[str, str]] = set()
    for key in sorted(sizes, key=lambda name: sizes[name], reverse=True):
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
    message = f"too large for one answer; get the operation instead: {names}"
    return view.model_copy(update={"pipelines": tuple(pipelines), "message": message[:8_000]})


def picked(items: Sequence[T], count: int) -> Sequence[T]:
    """At most `count` of them, evenly spread; the first and the last among them."""
    if len(items) <= count or count < 2:
        return items[-max(count, 1) :]
    step = (len(items) - 1) / (count - 1)
    return [items[round(number * step)] for number in range(count)]


def pct(part: Decimal | float) -> Decimal:
    """A part of 1 in percent."""
    exact = part if isinstance(part, Decimal) else Decimal(str(part))
    return (exact * 100).quantize(PCT_STEP)


def ratio(value: float) -> Decimal | None:
    """A ratio; None where it is not defined."""
    return Decimal(str(value)).quantize(PCT_STEP) if math.isfinite(value) else None


def rounded(amount: Decimal | None, step: Decimal = PCT_STEP) -> Decimal | None:
    """An amount in steps; None where it is not known."""
    return None if amount is None else amount.quantize(step)
