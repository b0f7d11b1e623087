"""Changes of a group of inputs: rows to write, messages to send, and the rows it had to load."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any
from uuid import UUID

import orjson

from contracts.audit import EventType
from contracts.operation import JournalEntry, Reserve
from contracts.types import Usage
from libs.runtime.settings import Settings
from services.orchestrator.group.rate_limits import EndpointPace
from services.orchestrator.group.rows import ZERO, CallBudget, CycleRow, OperationRow, Proposal
from services.orchestrator.machine.logic import EventDraft, Start

RECALIBRATED_FROM = "recalibrated_from"
PLUGINS, EXIT_PLUGINS, TOOL_PLUGINS = "plugins", "exit_plugins", "tool_plugins"
"""The command field that the setting of the same name is put in."""


@dataclass(frozen=True)
class NewOperation:
    """An operation to insert, in the cycle that it belongs to; with an `epoch` above 0 it has been
    claimed, for the service of this process that it is handed to.
    """

    cycle: CycleRow
    start: Start
    epoch: int = 0

    def row(self) -> OperationRow:
        """The operation as it will stand in the database."""
        step = self.start.step
        return OperationRow(
            op_id=self.start.op_id,
            cycle_id=self.cycle.cycle_id,
            started_on=self.cycle.started_on,
            pipeline=self.start.lane,
            state=self.start.state,
            step=step.name,
            service=step.serves.owner,
            attempt=self.start.attempt,
            status="running" if self.epoch else "pending",
            claimed=step.serves.claimed,
            must_answer=step.must_answer,
            epoch=self.epoch,
            lease_live=self.epoch > 0,
            tokens=0,
            cost_usd=ZERO,
            reserved=Reserve(),
        )

    def due_in_s(self, settings: Settings) -> float | None:
        """How long until the sweep sends it again; None for what a person is asked."""
        if self.start.step.asks:
            return None
        return settings.orchestrator.lease_s if self.epoch else settings.orchestrator.resend_after_s


@dataclass(frozen=True)
class NewEntry:
    """A journal entry to insert."""

    operation: OperationRow
    entry: JournalEntry


@dataclass(frozen=True)
class NewUsage:
    """The usage of an operation's calls."""

    operation: OperationRow
    usage: Usage


@dataclass(frozen=True)
class NewEvent:
    """A row of state_events to insert; `session_id` as the function of that name gives it."""

    started_on: date
    node: UUID
    seq: int
    cycle_id: UUID
    type: EventType
    pipeline: str | None
    state: str | None
    session_id: str | None
    data: Mapping[str, Any]


@dataclass(frozen=True)
class Stop:
    """An operation that no longer counts: its service is told."""

    op_id: UUID
    cycle_id: UUID
    service: str
    reason: str


@dataclass
class Proposed:
    """The proposals and previews of one proposer: those of the last hour, and those that have not
    ended."""

    lately: int = 0
    open: int = 0


@dataclass
class Loaded:
    """The rows that a group needs: locked and read at its begin, or as it was written last.

    `day` is today's budget, locked; `today` the same as it was read for requests, which take
    nothing from it. `answers` are replies to what cells of studies are about to ask, by address.
    """

    cycles: dict[UUID, CycleRow] = field(default_factory=dict)
    operations: dict[UUID, OperationRow] = field(default_factory=dict)
    journals: dict[UUID, list[JournalEntry]] = field(default_factory=dict)
    recorded: set[tuple[UUID, int]] = field(default_factory=set)
    memories: dict[tuple[str, date], UUID] = field(default_factory=dict)
    proposals: dict[UUID, list[Proposal]] = field(default_factory=dict)
    running: int = 0
    strategies_running: int = 0
    proposed: dict[str, Proposed] = field(default_factory=dict)
    day: CallBudget | None = None
    today: CallBudget | None = None
    paces: dict[str, EndpointPace] = field(default_factory=dict)
    answers: dict[str, bytes] = field(default_factory=dict)


def session_id(row: CycleRow, lane: str | None) -> str:
    """One exchange session of one account: what an auditor asks for."""
    return f"{row.pipelines[lane or row.state.main]['account']}/{row.as_of}"


def new_event(row: CycleRow, fact: EventDraft) -> NewEvent:
    """The row of state_events that a fact of the state machine becomes."""
    return NewEvent(
        started_on=row.started_on,
        node=fact.node,
        seq=fact.seq,
        cycle_id=row.cycle_id,
        type=fact.type,
        pipeline=fact.lane,
        state=fact.state,
        session_id=session_id(row, fact.lane),
        data=fact.data,
    )


def step_event(
    cycle: CycleRow,
    row: OperationRow,
    node: UUID,
    seq: int,
    what: EventType,
    data: Mapping[str, Any] | None = None,
) -> NewEvent:
    """An event about a step's operation, as number `seq` under `node`."""
    with_step = {"step": row.step, **(data or {})}
    return new_event(cycle, EventDraft(node, seq, what, row.pipeline, row.state, with_step))


def refused_event(cycle_id: UUID, on: date, data: Mapping[str, Any]) -> NewEvent:
    """An event about a request that became no cycle; `cycle_id` is the one it would have been."""
    return NewEvent(
        started_on=on,
        node=cycle_id,
        seq=0,
        cycle_id=cycle_id,
        type=EventType.REQUEST_REJECTED,
        pipeline=None,
        state=None,
        session_id=None,
        data=data,
    )


def command_json(
    row: CycleRow, start: Start, contracts: Mapping[str, bytes], settings: Settings
) -> bytes:
    """The command as it is stored and sent: the contracts are put in as they were written, and what
    the desk's settings choose as it is now, so that it gives the same whenever it runs again."""
    outcome = start.outcome
    inputs: dict[str, Any] = {name: orjson.Fragment(body) for name, body in contracts.items()}
    if outcome is not None:
        inputs |= {"outcome": outcome.status, "reason": outcome.reason}
    pipeline = row.pipelines[start.lane]
    if (fallback := start.fallback) is not None:
        stages = {**pipeline.get("stages", {}), fallback.stage: fallback.provider}
        pipeline = {**pipeline, "stages": stages}
        inputs["fallback"] = fallback.reason
    fields = start.step.serves.message.model_fields
    if "request" in fields:
        inputs["request"] = orjson.Fragment(row.request)
    if RECALIBRATED_FROM in fields:
        inputs[RECALIBRATED_FROM] = settings.model.recalibrated_from
    named = {PLUGINS: settings.plugins, EXIT_PLUGINS: settings.exit_plugins}
    # What a tool of the user's says is not masked, and a study's inputs are the same for all arms.
    if not (row.of_study or pipeline.get("masked")):
        named[TOOL_PLUGINS] = settings.tool_plugins
    inputs |= {name: plugins for name, plugins in named.items() if name in fields and plugins}
    return orjson.dumps(
        {
            "version": 1,
            "cycle_id": row.cycle_id,
            "op_id": start.op_id,
            "as_of": row.as_of,
            "now": row.accepted_at,
            **({"data_version": row.data_version} if row.data_version else {}),
            "pipeline": pipeline,
            "state": start.state,
            "step": start.step.name,
            "attempt": start.attempt,
            "workflow_version": row.workflow_version,
            "seed": row.seed,
            "errors": start.errors,
            **inputs,
        },
        default=str,
    )
