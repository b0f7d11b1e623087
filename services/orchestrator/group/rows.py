"""The rows that one group of inputs works on, between their loading and their writing."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from functools import cached_property
from typing import Any
from uuid import UUID

import orjson
from pydantic import ValidationError

from contracts.approval import Approval, AwaitApproval
from contracts.cycle import CycleStatus
from contracts.operation import Reserve
from contracts.subjects.subject import STUDY
from contracts.types import Usage
from libs.postgres.pool import Record
from services.orchestrator.machine.logic import SHARED, Cycle, PipelineState
from services.orchestrator.machine.workflow import Ending

ZERO = Decimal(0)


@dataclass
class CallBudget:
    """The budget: its limit, the amount spent, and the amount reserved for calls in flight.

    Dollars are those that are known: calls of models without a price count in tokens alone.
    """

    tokens_max: int
    cost_usd_max: Decimal
    tokens_spent: int = 0
    cost_usd_spent: Decimal = ZERO
    tokens_reserved: int = 0
    cost_usd_reserved: Decimal = ZERO

    def hold(self, reserve: Reserve) -> None:
        """Keep `reserve` back."""
        self.tokens_reserved += reserve.tokens
        self.cost_usd_reserved += reserve.cost_usd or ZERO

    def release(self, reserve: Reserve) -> None:
        """Give `reserve` back."""
        self.tokens_reserved -= reserve.tokens
        self.cost_usd_reserved -= reserve.cost_usd or ZERO

    def spend(self, tokens: int, cost_usd: Decimal | None) -> None:
        """Count what was used."""
        self.tokens_spent += tokens
        self.cost_usd_spent += cost_usd or ZERO


@dataclass
class CycleRow:
    """A cycle as it stands under its lock.

    `state` is the state machine's; the rest is what its commands need. `waiting` is whether it
    waits for a person; `is_late` whether its time limit had passed when it was locked. The limit
    itself is in the database alone: it moves while it waits, rests, or the desk's clock stands.
    """

    cycle_id: UUID
    kind: str
    workflow_version: int
    requester: str
    body_sha256: bytes
    request: bytes
    as_of: date
    started_on: date
    accepted_at: datetime
    state: Cycle
    purse: CallBudget
    timeout_s: float
    is_late: bool = False
    waiting: bool = False
    data_version: str | None = None
    idempotency_key: str = ""
    new: bool = False
    changed: bool = False

    @classmethod
    def of(cls, row: Record) -> "CycleRow":
        """The row as the statement load_cycles reads it."""
        return cls(
            cycle_id=row["cycle_id"],
            kind=row["kind"],
            workflow_version=row["workflow_version"],
            requester=row["requester"],
            body_sha256=row["body_sha256"],
            request=row["request"],
            as_of=row["as_of"],
            started_on=row["started_on"],
            accepted_at=row["accepted_at"],
            data_version=row["data_version"],
            state=load_state(row["cycle_id"], row["state"], row["status"], row["reason"]),
            purse=CallBudget(
                row["tokens_max"],
                row["cost_usd_max"],
                row["tokens_spent"],
                row["cost_usd_spent"],
                row["tokens_reserved"],
                row["cost_usd_reserved"],
            ),
            # As it was asked for: the limit on record moves.
            timeout_s=orjson.loads(row["request"])["timeout_s"],
            is_late=row["is_late"],
            waiting=row["waiting"],
        )

    @cached_property
    def pipelines(self) -> Mapping[str, Mapping[str, Any]]:
        """The request's pipelines by name; the shared lane runs under the main one's settings."""
        requested = {
            pipeline["name"]: pipeline for pipeline in orjson.loads(self.request)["pipelines"]
        }
        return {SHARED: {**requested[self.state.main], "name": SHARED}, **requested}

    @property
    def of_study(self) -> bool:
        """Whether it is a cell of a study: it takes nothing from the day's budget."""
        return self.requester == STUDY

    @property
    def at_work(self) -> bool:
        """Whether it runs and waits for nobody."""
        return self.state.status is CycleStatus.RUNNING and not self.waiting

    @cached_property
    def seed(self) -> int:
        """The seed of its commands; a study's cell brings its own."""
        if self.of_study:
            return int(orjson.loads(self.request)["study"]["seed"])
        return self.cycle_id.int & 0xFFFF_FFFF

    @cached_property
    def offline(self) -> bool:
        """Whether no model may be asked: the cell of a study that runs on the record alone."""
        return self.of_study and bool(orjson.loads(self.request)["study"]["offline"])


@dataclass
class OperationRow:
    """An operation, under its cycle's lock.

    `reserved` is held back by its cycle's budget and by that of the UTC day of the reservation;
    `reserved_today` says whether this is that day.
    """

    op_id: UUID
    cycle_id: UUID
    started_on: date
    pipeline: str
    state: str
    step: str
    service: str
    attempt: int
    status: str
    claimed: bool
    must_answer: bool
    epoch: int
    lease_live: bool
    tokens: int
    cost_usd: Decimal
    reserved: Reserve
    reserved_today: bool = False
    progress: bytes | None = None
    touched: bool = False

    @classmethod
    def of(cls, row: Record) -> "OperationRow":
        """The operation of a row that the statement load_cycles reads."""
        columns = {k.removeprefix("op."): v for k, v in row.items() if k.startswith("op.")}
        reserved = Reserve(
            tokens=columns.pop("tokens_reserved"), cost_usd=columns.pop("cost_usd_reserved")
        )
        return cls(**columns, reserved=reserved)

    @property
    def ended(self) -> bool:
        """Whether it has its final status."""
        return self.status not in {"pending", "running"}

    def spend(self, usage: Usage) -> None:
        """Count what its calls used."""
        self.tokens += usage.tokens
        self.cost_usd += usage.cost_usd or ZERO


@dataclass
class Proposal:
    """A proposal to a person; all times are the database's, read under the lock. Without `command`
    it is one that a later release wrote."""

    op_id: UUID
    pipeline: str
    command: AwaitApproval | None
    now: datetime
    expires_at: datetime
    in_time: bool
    approval: Approval | None = None

    @classmethod
    def of(cls, row: Record) -> "Proposal":
        """The row as the statement load_proposals reads it."""
        command, approval, result = None, None, row["result"]
        with suppress(ValidationError):
            approval = Approval.model_validate_json(result) if result else None
            command = AwaitApproval.model_validate_json(row["command"])
        return cls(
            op_id=row["op_id"],
            pipeline=row["pipeline"],
            command=command,
            now=row["now"],
            expires_at=row["deadline_at"],
            in_time=row["in_time"],
            approval=approval,
        )


@dataclass(frozen=True)
class EndedOperation:
    """How an operation is to be written at its end."""

    status: str
    result: bytes | None = None
    failure: bytes | None = None


def dump_state(cycle: Cycle) -> bytes:
    """The state machine's state as JSON."""
    # Ids that come from Postgres are of a subclass of UUID that orjson does not know.
    return orjson.dumps({"main": cycle.main, "lanes": cycle.lanes}, default=str)


def load_state(cycle_id: UUID, state: bytes, status: str, reason: str | None) -> Cycle:
    """The state as `dump_state` wrote it."""
    stored = orjson.loads(state)
    return Cycle(
        cycle_id=cycle_id,
        main=stored["main"],
        lanes={name: _lane(lane) for name, lane in stored["lanes"].items()},
        status=CycleStatus(status),
        reason=reason or "",
    )


def _lane(stored: Mapping[str, Any]) -> PipelineState:
    ending = stored["ending"]
    return PipelineState(
        name=stored["name"],
        state=stored["state"],
        live=stored["live"],
        done=tuple(stored["done"]),
        outputs={name: UUID(op_id) for name, op_id in stored["outputs"].items()},
        ending=_ending(ending) if ending else None,
        status=CycleStatus(stored["status"]),
        entered=stored["entered"],
        passes=tuple(stored.get("passes", ())),
        round=stored.get("round", 1),
        rounds_max=stored.get("rounds_max", 1),
        fallback=stored.get("fallback", {}),
        fell_back=tuple(stored.get("fell_back", ())),
        substitutes=tuple(stored.get("substitutes", ())),
    )


def _ending(stored: Mapping[str, str]) -> Ending:
    return Ending(CycleStatus(stored["status"]), stored["reason"], stored.get("code", ""))
