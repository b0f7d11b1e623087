"""The operation tree: cycle, pipelines, operations, single calls. Derived, never stored. Pure."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import orjson
from pydantic import JsonValue

from contracts.cycle import CycleStatus
from contracts.operation import CallKind, OperationStatus, OperationView, Progress
from contracts.subjects.approvals import APPROVAL
from contracts.subjects.commands import COMMANDS
from contracts.types import Usage
from libs.facts import amounts
from libs.report.calls import sentence
from libs.runtime import ids, recorded_call
from services.console.logic import SHARED, Row, usage_of
from services.console.sizes import ANSWER_BYTES_MAX, fitting
from services.console.views import strategy

LISTED_MAX = 12
"""Names a summary lists."""
SUMMARY_CHARS = 160

TYPES: Sequence[str] = (
    "cycle",
    "pipeline",
    "operation",
    *(kind.value for kind in CallKind),
    strategy.PARENT,
    *strategy.TYPES.values(),
    *dict.fromkeys(row.what for row in (*COMMANDS, APPROVAL)),
)
"""What operations are listed by: types of nodes, and names of steps."""
STATUS_OF = {
    CycleStatus.RUNNING: OperationStatus.RUNNING,
    CycleStatus.COMPLETED: OperationStatus.COMPLETED,
    CycleStatus.CANCELLED: OperationStatus.CANCELLED,
    CycleStatus.FAILED: OperationStatus.FAILED,
    CycleStatus.REJECTED: OperationStatus.FAILED,
    CycleStatus.EXPIRED: OperationStatus.FAILED,
}
"""A cycle's or pipeline's status as a node of the tree has it."""


def tree(cycle: Row, operations: Sequence[Row], called: Sequence[Row]) -> Sequence[OperationView]:
    """All nodes, parents before children. Calls that do not fit are counted on their operation."""
    nodes, inner = branches(cycle, operations)
    by_operation: dict[Any, list[Row]] = {}
    for call in called:
        by_operation.setdefault(call["op_id"], []).append(call)
    leaves = [
        call_node(call, operation)
        for operation in inner
        for call in by_operation.get(operation.op_id, ())
    ]
    room = ANSWER_BYTES_MAX - sum(len(node.model_dump_json()) + 60 for node in (*nodes, *inner))
    kept = fitting(leaves, max(room, 0))
    missing = Counter(leaf.parent_id for leaf in leaves[len(kept) :])
    shown = (_with_calls_cut(node, missing[node.op_id]) for node in inner)
    return fitting([*nodes, *shown, *kept])


def branches(
    cycle: Row, operations: Sequence[Row]
) -> tuple[Sequence[OperationView], Sequence[OperationView]]:
    """The nodes above operations, and the operations below them."""
    nodes = [cycle_node(cycle), *pipeline_nodes(cycle, operations)]
    if strategy.is_strategy(cycle):
        nodes = [strategy.parent(nodes[0], cycle, operations)]
    return nodes, [operation_node(row, _parent_of(row, nodes)) for row in operations]


def _parent_of(row: Row, nodes: Sequence[OperationView]) -> UUID:
    """The pipeline's node; the cycle's own where the tree has none for pipelines."""
    pipeline = ids.pipeline_id(row["cycle_id"], row["pipeline"])
    return pipeline if len(nodes) > 1 else nodes[0].op_id


def cycle_node(row: Row) -> OperationView:
    """A cycle as the root of its tree."""
    return OperationView.model_validate(
        {
            **row,
            "op_id": row["cycle_id"],
            "type": "cycle",
            "name": row["kind"],
            "status": STATUS_OF[CycleStatus(row["status"])],
            "service": "orchestrator",
            "progress": _of_whole(row["status"]),
            "usage": usage_of(row),
            "metadata": {"as_of": str(row["as_of"]), "requester": row["requester"][:400]},
            "state": None,
            "result_summary": {"status": row["status"]} if row["ended_at"] else None,
            "error_message": _problem(row["status"], row["reason"]),
            "created_at": row["accepted_at"],
            "started_at": row["accepted_at"],
            "finished_at": row["ended_at"],
        }
    )


def pipeline_nodes(cycle: Row, operations: Sequence[Row]) -> Sequence[OperationView]:
    """The pipelines, the shared steps first."""
    lanes = orjson.loads(cycle["state"])["lanes"]
    asked = {pipeline["name"]: pipeline for pipeline in orjson.loads(cycle["request"])["pipelines"]}
    return [
        _pipeline_node(cycle, lane, asked.get(name, {}), _of_lane(operations, name))
        for name, lane in lanes.items()
        if name != SHARED or _of_lane(operations, name)
    ]


def _of_lane(operations: Sequence[Row], name: str) -> Sequence[Row]:
    return [row for row in operations if row["pipeline"] == name]


def _pipeline_node(cycle: Row, lane: Row, asked: Row, operations: Sequence[Row]) -> OperationView:
    status = lane["status"]
    began = [row["created_at"] for row in operations]
    ended = [row["finished_at"] for row in operations if row["finished_at"]]
    has_ended = status != CycleStatus.RUNNING
    used = sum(map(usage_of, operations), start=Usage())
    return OperationView(
        op_id=ids.pipeline_id(cycle["cycle_id"], lane["name"]),
        parent_id=cycle["cycle_id"],
        cycle_id=cycle["cycle_id"],
        type="pipeline",
        name=lane["name"],
        status=STATUS_OF[CycleStatus(status)] if began or has_ended else OperationStatus.PENDING,
        pipeline=lane["name"],
        state=lane["state"] or None,
        service="orchestrator",
        progress=_of_whole(status),
        tokens=used.tokens,
        cost_usd=used.cost_usd,
        usage=used,
        metadata={key: asked[key] for key in ("provider", "account") if key in asked},
        error_message=_problem(status, (lane["ending"] or {}).get("reason")),
        created_at=min(began, default=cycle["accepted_at"]),
        started_at=min(began, default=None),
        finished_at=max(ended, default=cycle["ended_at"]) if has_ended else None,
    )


def operation_node(row: Row, parent: Any = None) -> OperationView:
    """One operation."""
    failure = orjson.loads(row["failure"]) if row["failure"] else None
    return OperationView.model_validate(
        {
            **row,
            "parent_id": parent or row["cycle_id"],
            "type": strategy.TYPES.get(row["step"], "operation"),
            "name": row["step"],
            "progress": _progress(row),
            "usage": usage_of(row),
            "metadata": {
                **strategy.child_metadata(row),
                **(_kind_of(failure) if failure else {}),
            },
            "result_summary": strategy.child_summary(row, summary(row["step"], row["result"])),
            "error_message": failure["message"] if failure else None,
        }
    )


def _of_whole(status: str) -> Progress:
    return _done(Progress()) if status == CycleStatus.COMPLETED else Progress()


def _progress(row: Row) -> Progress:
    progress = Progress.model_validate_json(row["progress"]) if row["progress"] else Progress()
    return _done(progress) if row["status"] == OperationStatus.COMPLETED else progress


def _done(progress: Progress) -> Progress:
    """A step that has ended well is done whole, however seldom it told its progress."""
    return progress.model_copy(update={"percentage": 100.0})


def _kind_of(failure: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """The fields of a failure for programs, beside the message."""
    return {key: failure[key] for key in ("code", "field") if failure.get(key)}


def call_node(row: Row, operation: OperationView) -> OperationView:
    """One journalled call as a leaf."""
    usage = Usage.model_validate_json(row["usage"]) if row["usage"] else Usage()
    began = row["recorded_at"] - timedelta(milliseconds=row["duration_ms"] or 0.0)
    return OperationView(
        op_id=ids.call_id(row["op_id"], row["index"]),
        parent_id=operation.op_id,
        cycle_id=operation.cycle_id,
        type=row["kind"],
        name=row["name"],
        status=OperationStatus.COMPLETED,
        pipeline=operation.pipeline,
        state=operation.state,
        service=operation.service,
        epoch=row["epoch"],
        tokens=usage.tokens,
        cost_usd=usage.cost_usd,
        usage=usage,
        metadata={
            "index": row["index"],
            "duration_ms": row["duration_ms"],
            **_speed(usage, row["duration_ms"]),
            **({"arguments": _arguments(row["given"])} if row["given"] else {}),
            **_outcome(row),
        },
        created_at=began,
        started_at=began,
        finished_at=row["recorded_at"],
    )


def _speed(usage: Usage, duration_ms: float | None) -> dict[str, JsonValue]:
    """The tokens that a model wrote in a second of its call, where it wrote any."""
    if not usage.output_tokens or not duration_ms:
        return {}
    return {"output_tokens_s": round(usage.output_tokens / duration_ms * 1000, 1)}


def _outcome(row: Row) -> dict[str, JsonValue]:
    """The outcome of a call, as far as it has one: its value, its fault, whether an answer was
    valid, how many tries before it failed."""
    gave = sentence.gives_recorded(CallKind(row["kind"]), row["reply"], row["reply_bytes"] or 0)
    outcome = {
        sentence.RESULT: gave,
        "fault": row["fault"],
        "passed": row["passed"],
        "again": row["again"] and int(row["again"]),
    }
    return {name: value for name, value in outcome.items() if value not in {None, ""}}


def _arguments(text: str) -> dict[str, JsonValue]:
    """The arguments of a tool call; arguments that were too long to be read are not told here."""
    try:
        return recorded_call.arguments(orjson.loads(text))
    except orjson.JSONDecodeError:
        return {}


def _with_calls_cut(node: OperationView, calls_missing: int) -> OperationView:
    if not calls_missing:
        return node
    return node.model_copy(update={"metadata": {**node.metadata, "calls_cut": calls_missing}})


def _problem(status: str, reason: str | None) -> str | None:
    fine = (CycleStatus.RUNNING, CycleStatus.COMPLETED)
    return None if status in fine else (reason or None)


# --- summaries --------------------------------------------------------------------------------


def summary(step: str, result: bytes | None) -> JsonValue:
    """An operation's result in a few words; its size where the step is not known here."""
    if result is None:
        return None
    size: JsonValue = {"size_bytes": len(result)}
    try:
        return SUMMARIES[step](orjson.loads(result))
    except (LookupError, TypeError):
        # A step or a contract of another version.
        return size


def _tickers(items: Iterable[Mapping[str, Any]]) -> list[JsonValue]:
    return _listed([item["ticker"] for item in items])


def _listed(names: Sequence[JsonValue]) -> list[JsonValue]:
    """The first names, and … where there are more."""
    return [*names[:LISTED_MAX], *(["…"] if len(names) > LISTED_MAX else [])]


def _validated(contract: Mapping[str, Any]) -> JsonValue:
    cut = {check["ticker"] for check in contract["checks"] if check["outcome"] == "cut"}
    return {
        "decisions": [
            f"{pick['action']} {Decimal(pick['quantity']).normalize():f} {pick['asset']}"
            for pick in contract["decisions"]
        ],
        "cut": sorted(filter(None, cut)),
        "vetoed": contract["vetoed_tickers"],
    }


def _gated(contract: Mapping[str, Any], *figures: str) -> JsonValue:
    gate = contract["gate"]
    return {**{name: contract[name] for name in figures}, "passed": gate and gate["passed"]}


SUMMARIES: Mapping[str, Callable[[Mapping[str, Any]], JsonValue]] = {
    "digest": lambda c: {"candidates": _tickers(c["candidates"])},
    "sentiment": lambda c: {
        "tickers": _tickers(c["tickers"]),
        "unscored": _tickers(c.get("unscored", ())),
        "mood": c["market_mood"],
    },
    "books": lambda c: {"cash": c["cash"]["amount"], "equity": c["equity"]["amount"]},
    "plan": lambda c: {
        "assets": c["assets"],
        "objective": amounts.cut(c["objective"], SUMMARY_CHARS),
    },
    "quant": lambda c: {"signal": c["signal"], "confidence": c["confidence"]},
    "analyst": lambda c: {"tickers": _tickers(c["tickers"]), "tool_calls": c["tool_calls_made"]},
    "probe": lambda c: {
        "identified": [it["ticker"] for it in c["guesses"] if it["guessed"] == it["ticker"]],
        "asked": len(c["guesses"]),
    },
    "approval": lambda c: {"verdict": c["verdict"], "approver": c["approver"]},
    "picks": lambda c: {
        "buys": _tickers(c["picks"]),
        "sells": _tickers(c["sell_recommendations"]),
    },
    "review": lambda c: {"kept": _tickers(c["picks"]), "vetoed": c["vetoed_tickers"]},
    "validate": _validated,
    "check_exits": lambda c: {
        "checked": _tickers(c["checks"]),
        "sell": _tickers([check for check in c["checks"] if check.get("quantity") is not None]),
    },
    "validate_exits": _validated,
    "execute": lambda c: {
        "orders": len(c["orders"]),
        "fills": len(c["fills"]),
        "cash_after": c["cash_after"]["amount"],
    },
    "memorize": lambda c: {"memory": amounts.cut(c["short_term_summary"], SUMMARY_CHARS)},
    "design": lambda c: {"strategy_name": c["spec"]["name"], "strategy_path": c["path"]},
    "train": lambda c: _gated(c, "accuracy", "base_rate", "final_loss"),
    "backtest": lambda c: _gated(c, "sharpe_ratio", "total_return", "total_trades"),
    "assess": lambda c: {
        **{name: c[name] for name in ("verdict", "strengths", "weaknesses", "suggestions")},
        "assessment_path": c["path"],
    },
}
"""By step, what its contract says in short."""
