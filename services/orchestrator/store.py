"""The orchestrator's tables: load a group's rows under their locks, write them back.

The cycle's lock covers its operations too: every statement that changes an operation runs under it,
except the sweep's, which touches only `sends` and `due_at`.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from uuid import UUID

import orjson

from contracts.operation import CallKind, JournalEntry
from contracts.types import Failure
from libs.postgres.pool import PoolConnection, Record
from libs.postgres.queries import Queries
from libs.runtime.model_settings import Rate
from libs.runtime.settings import Settings
from services.orchestrator import strategies, study_answers
from services.orchestrator.group import inputs
from services.orchestrator.group.batch import InputBatch
from services.orchestrator.group.changes import (
    Loaded,
    NewEntry,
    NewEvent,
    NewOperation,
    NewUsage,
    Proposed,
    command_json,
)
from services.orchestrator.group.leases import NOTHING
from services.orchestrator.group.rate_limits import Bucket, EndpointPace
from services.orchestrator.group.rows import (
    CallBudget,
    CycleRow,
    EndedOperation,
    OperationRow,
    Proposal,
    dump_state,
)
from services.orchestrator.open_outcomes import PAST_DAYS, PAST_DECISIONS, awaited

sql = Queries(Path(__file__).parent / "queries.sql")


async def load(
    db: PoolConnection, items: Sequence[inputs.GroupInput], settings: Settings
) -> Loaded:
    """Lock and read what the inputs speak of: cycles in order of id, the day's budget last.

    Of these cycles all operations that have not ended: an input may end those it does not name.
    """
    op_ids = [op_id for op_id in map(inputs.operation_of, items) if op_id is not None]
    cycle_ids = [cycle_id for cycle_id in map(inputs.cycle_of, items) if cycle_id is not None]
    loaded = Loaded()
    await db.execute(sql.lock_cycles, cycle_ids, op_ids)
    for row in await db.fetch(sql.load_cycles, cycle_ids, op_ids):
        if row["cycle_id"] not in loaded.cycles:
            loaded.cycles[row["cycle_id"]] = CycleRow.of(row)
        if row["op.op_id"] is not None:
            operation = OperationRow.of(row)
            loaded.operations[operation.op_id] = operation
    await _load_proposals(db, items, loaded)
    await _load_journal(db, items, loaded)
    await load_for_requests(db, items, loaded, settings)
    if any(map(inputs.is_paid, items)) or _money_is_held(loaded):
        loaded.day = await _lock_day(db, settings)
        loaded.paces = await _load_paces(db, items, settings)
        await study_answers.load(db, items, loaded)
    return loaded


async def _load_paces(
    db: PoolConnection, items: Sequence[inputs.GroupInput], settings: Settings
) -> dict[str, EndpointPace]:
    """How fast the endpoints that the inputs ask may be asked; read under the day's lock."""
    names = sorted({name for item in items for name in _endpoints(item)})
    if not names:
        return {}
    rows = {row["provider"]: row for row in await db.fetch(sql.load_paces, names)}
    return {name: _pace(name, settings.rate_of(name), rows.get(name)) for name in names}


def _endpoints(item: inputs.GroupInput) -> Iterator[str]:
    """The endpoints that the calls on record and the next ones ask."""
    reserve = item.record.reserve if isinstance(item, inputs.CallsRecorded) else None
    if reserve is not None and reserve.provider:
        yield reserve.provider
    yield from (entry.provider for entry in inputs.calls_of(item) if entry.kind is CallKind.MODEL)


def _pace(name: str, rate: Rate, row: Record | None) -> EndpointPace:
    return EndpointPace(
        name,
        Bucket(rate.calls_per_minute_max, row["calls_full_in_s"] if row else 0.0),
        Bucket(rate.tokens_per_minute_max, row["tokens_full_in_s"] if row else 0.0),
        row["closed_s"] if row else 0.0,
    )


def _money_is_held(loaded: Loaded) -> bool:
    """Whether an operation has a reservation, which any input may settle: a claim after a crash,
    a result without a reply to its last paid call, whatever stops it."""
    return any(row.reserved != NOTHING for row in loaded.operations.values())


async def _load_proposals(
    db: PoolConnection, items: Sequence[inputs.GroupInput], loaded: Loaded
) -> None:
    """The proposals in the cycles that a person answers; read under the cycles' locks."""
    cycle_ids = [item.cycle_id for item in items if isinstance(item, inputs.ProposalAnswered)]
    for row in await db.fetch(sql.load_proposals, cycle_ids) if cycle_ids else ():
        loaded.proposals.setdefault(row["cycle_id"], []).append(Proposal.of(row))


async def _load_journal(
    db: PoolConnection, items: Sequence[inputs.GroupInput], loaded: Loaded
) -> None:
    claims = [item.claim.op_id for item in items if isinstance(item, inputs.Claimed)]
    claimed = [loaded.operations[op_id] for op_id in claims if op_id in loaded.operations]
    again = [row for row in claimed if row.epoch > 0]
    if again:
        days, ids = [row.started_on for row in again], [row.op_id for row in again]
        for row in await db.fetch(sql.load_journal, days, ids):
            entry = JournalEntry.model_validate_json(row["entry"])
            loaded.journals.setdefault(row["op_id"], []).append(entry)
    entries = [
        (loaded.operations[op_id].started_on, op_id, entry.index)
        for item in items
        if (op_id := inputs.operation_of(item)) in loaded.operations
        for entry in inputs.calls_of(item)
    ]
    if entries:
        rows = await db.fetch(sql.load_recorded, *map(list, zip(*entries, strict=True)))
        loaded.recorded = {(row["op_id"], row["index"]) for row in rows}


async def load_for_requests(
    db: PoolConnection, items: Sequence[inputs.GroupInput], loaded: Loaded, settings: Settings
) -> None:
    """Read what new cycles begin with."""
    requests = [item for item in items if isinstance(item, inputs.CycleRequested)]
    if not requests:
        return
    accounts = sorted(
        {(p.account, item.as_of) for item in requests for p in item.request.pipelines}
    )
    rows = await db.fetch(sql.load_for_requests, *map(list, zip(*accounts, strict=True)))
    loaded.running = rows[0]["running"]
    loaded.today = _purse(rows[0], settings)
    loaded.strategies_running = rows[0]["strategies_running"]
    proposers = [item.requester for item in requests if item.request.proposal is not None]
    for row in await db.fetch(sql.count_proposals, proposers) if proposers else ():
        loaded.proposed[row["requester"]] = Proposed(row["lately"], row["open"])
    loaded.memories = {(row["account"], row["as_of"]): row["op_id"] for row in rows if row["op_id"]}


async def _lock_day(db: PoolConnection, settings: Settings) -> CallBudget:
    row = await db.fetchrow(sql.lock_day)
    while row is None:
        await db.execute(sql.open_day)
        row = await db.fetchrow(sql.lock_day)
    return _purse(row, settings)


def _purse(row: Record, settings: Settings) -> CallBudget:
    """A day's budget."""
    return CallBudget(
        settings.budget.day_tokens_max,
        settings.budget.day_cost_usd_max,
        row["tokens_spent"],
        row["cost_usd_spent"],
        row["tokens_reserved"],
        row["cost_usd_reserved"],
    )


async def write(db: PoolConnection, group: InputBatch, settings: Settings) -> Mapping[UUID, bytes]:
    """Write all that the group changed; returns the new commands that do not rest (decision 0028).

    Raises `UniqueViolationError` where a new cycle is not new.
    """
    cycles = group.changed_cycles()
    results = await _results(db, group)
    await strategies.keep(db, group)
    past = await _past_decisions(db, group) | await strategies.command_fields(db, group, results)
    commands = {
        new.start.op_id: command_json(
            new.cycle,
            new.start,
            {name: results[op_id] for name, op_id in new.start.takes.items()}
            | past.get(new.start.op_id, {}),
            settings,
        )
        for new in group.starts
    }
    written = await db.fetchrow(
        sql.write_group,
        *sql.arrays(
            sql.write_group,
            changed=[_changed(row) for row in cycles if not row.new],
            accepted=[_accepted(row) for row in cycles if row.new],
            ended=[_ended(op_id, *end) for op_id, end in group.ends.items()],
            started=[_started(new, commands[new.start.op_id], settings) for new in group.starts],
            event=[_event(event) for event in group.events],
            touched=[_touched(row, settings) for row in group.touched],
            called=[_called(new) for new in group.entries],
        ),
    )
    day = group.day
    if day is not None:
        spent, reserved = day.tokens_spent, day.tokens_reserved
        await db.execute(sql.save_day, spent, reserved, day.cost_usd_spent, day.cost_usd_reserved)
    if used := [_used(group, new) for new in group.used]:
        await db.execute(sql.add_usage, *sql.arrays(sql.add_usage, used=used))
    await study_answers.keep(db, group.answered)
    if texts := _texts(group.entries):
        await db.execute(sql.keep_texts, *sql.arrays(sql.keep_texts, text=texts))
    group.written(written["at"])
    resting = frozenset(written["resting"])
    return {op_id: command for op_id, command in commands.items() if op_id not in resting}


async def write_paces(db: PoolConnection, loaded: Loaded) -> None:
    """Write how fast endpoints may be asked from now on; under the locks of `load`."""
    changed = [
        {
            "provider": pace.provider,
            "calls_s": pace.calls.full_in_s,
            "tokens_s": pace.tokens.full_in_s,
            "closed_s": pace.closed_s,
        }
        for pace in loaded.paces.values()
        if pace.changed
    ]
    if changed:
        await db.execute(sql.save_paces, *sql.arrays(sql.save_paces, pace=changed))


async def _results(db: PoolConnection, group: InputBatch) -> dict[UUID, bytes]:
    """The contracts that new operations take: from this group's own results, else stored ones."""
    results = {
        op_id: ended.result for op_id, (_, ended) in group.ends.items() if ended.result is not None
    }
    wanted = {op_id for new in group.starts for op_id in new.start.takes.values()} - set(results)
    if wanted:
        rows = await db.fetch(sql.load_results, list(wanted))
        results |= {row["op_id"]: row["result"] for row in rows}
    return results


async def _past_decisions(db: PoolConnection, group: InputBatch) -> dict[UUID, dict[str, bytes]]:
    """For each new operation that wants them: what its account decided before its as_of."""
    wanted = {
        new.start.op_id: (new.cycle.pipelines[new.start.lane]["account"], new.cycle.as_of)
        for new in group.starts
        if PAST_DECISIONS in new.start.step.serves.message.model_fields
    }
    if not wanted:
        return {}
    accounts, days = map(list, zip(*sorted({*wanted.values()}), strict=True))
    memories: dict[tuple[str, date], list[bytes]] = {}
    for row in await db.fetch(sql.past_memories, accounts, days, PAST_DAYS):
        memories.setdefault((row["account"], row["as_of"]), []).append(row["result"])
    return {
        op_id: {PAST_DECISIONS: awaited(memories.get(key, ()))} for op_id, key in wanted.items()
    }


Row = Mapping[str, object]
"""A row for `libs.postgres.queries`, by the names of the statement's columns."""


def _accepted(row: CycleRow) -> Row:
    return {
        "cycle_id": row.cycle_id,
        "kind": row.kind,
        "workflow_version": row.workflow_version,
        "requester": row.requester,
        "idempotency_key": row.idempotency_key,
        "body_sha256": row.body_sha256,
        "request": row.request,
        "as_of": row.as_of,
        "started_on": row.started_on,
        "status": row.state.status,
        "reason": row.state.reason,
        "state": dump_state(row.state),
        "timeout_s": row.timeout_s,
        "tokens_max": row.purse.tokens_max,
        "cost_usd_max": row.purse.cost_usd_max,
        "data_version": row.data_version,
    }


def _changed(row: CycleRow) -> Row:
    return {
        "cycle_id": row.cycle_id,
        "status": row.state.status,
        "reason": row.state.reason,
        "state": dump_state(row.state),
        "tokens_spent": row.purse.tokens_spent,
        "tokens_reserved": row.purse.tokens_reserved,
        "cost_usd_spent": row.purse.cost_usd_spent,
        "cost_usd_reserved": row.purse.cost_usd_reserved,
        "waiting": row.waiting,
    }


def _started(new: NewOperation, command: bytes, settings: Settings) -> Row:
    start, cycle = new.start, new.cycle
    return {
        "op_id": start.op_id,
        "cycle_id": cycle.cycle_id,
        "started_on": cycle.started_on,
        "pipeline": start.lane,
        "account": cycle.pipelines[start.lane]["account"],
        "state": start.state,
        "step": start.step.name,
        "service": start.step.serves.owner,
        "attempt": start.attempt,
        "as_of": cycle.as_of,
        "claimed": start.step.serves.claimed,
        "must_answer": start.step.must_answer,
        "command": command,
        "due_in_s": new.due_in_s(settings),
        "limit_s": settings.approval.timeout_s if start.step.asks else start.step.time_limit_s,
        "may_rest": cycle.of_study,
        "epoch": new.epoch,
    }


def _touched(row: OperationRow, settings: Settings) -> Row:
    return {
        "op_id": row.op_id,
        "epoch": row.epoch,
        "tokens": row.tokens,
        "cost_usd": row.cost_usd,
        "tokens_reserved": row.reserved.tokens,
        "cost_usd_reserved": row.reserved.cost_usd,
        "reserved_today": row.reserved_today,
        "progress": row.progress.decode() if row.progress else None,
        "lease_s": settings.orchestrator.lease_s,
    }


def _used(group: InputBatch, new: NewUsage) -> Row:
    usage = new.usage
    return {
        "op_id": new.operation.op_id,
        "cycle_id": new.operation.cycle_id,
        "given": usage.input_tokens,
        "made": usage.output_tokens,
        "cache_read": usage.cache_read_tokens,
        "cache_write": usage.cache_write_tokens,
        "unpriced": usage.cost_usd is None,
        "of_day": not group.cycle(new.operation.cycle_id).of_study,
    }


def _ended(op_id: UUID, row: OperationRow | None, end: EndedOperation) -> Row:
    return {
        "op_id": op_id,
        "status": end.status,
        "result": end.result,
        "failure": end.failure.decode() if end.failure else None,
        "tokens": row.tokens if row else None,
        "cost_usd": row.cost_usd if row else None,
    }


def _called(new: NewEntry) -> Row:
    return {
        "started_on": new.operation.started_on,
        "op_id": new.operation.op_id,
        "index": new.entry.index,
        "epoch": new.operation.epoch,
        "entry": new.entry.model_dump_json(exclude={"texts"}).encode(),
    }


def _texts(entries: Sequence[NewEntry]) -> Sequence[Row]:
    """Texts that models were sent, each once a month, in one order for all who write."""
    texts = {
        (new.operation.started_on.replace(day=1), hashlib.sha256(text.encode()).digest()): text
        for new in entries
        for text in new.entry.texts
    }
    return [
        {"started_on": month, "sha256": digest, "text": text}
        for (month, digest), text in sorted(texts.items())
    ]


def _event(event: NewEvent) -> Row:
    return {
        "started_on": event.started_on,
        "op_id": event.node,
        "seq": event.seq,
        "cycle_id": event.cycle_id,
        "type": event.type,
        "pipeline": event.pipeline,
        "state": event.state,
        "session_id": event.session_id,
        "data": orjson.dumps(event.data, default=str).decode(),
    }


def failure_of(error: Exception) -> Failure:
    """The failure for data that Postgres refuses."""
    why = f"the database refused this operation's data: {type(error).__name__}: {error}"
    return Failure(code="not_storable", message=why[:800])
