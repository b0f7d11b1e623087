"""One function per question: read the rows, give the view that people get."""

import contextlib
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC
from typing import ParamSpec, TypeVar
from uuid import UUID

import orjson
from pydantic import JsonValue, ValidationError

from contracts.approval import ApprovalsPage, ApprovalsQuery
from contracts.audit import Event, EventAt, Events, EventsAfter, EventsPage, EventsSince, fits
from contracts.cycle import STRATEGY
from contracts.cycle_query import CycleQuery, CycleView, Recording, RecordingQuery
from contracts.execution import DecisionsPage, DecisionsQuery
from contracts.halt import Halts, HaltsQuery
from contracts.memory import DecisionOutcome
from contracts.operation import (
    JournalEntry,
    OperationDetail,
    OperationQuery,
    OperationsPage,
    OperationsQuery,
    OperationStatus,
    OperationView,
)
from contracts.position import position_of
from contracts.risk import UnreadableDecision
from contracts.types import Failure
from contracts.upkeep import (
    BudgetQuery,
    BudgetView,
    DeadLettersPage,
    DeadLettersQuery,
    Storing,
    StoringQuery,
)
from libs.bus.event_types import require_known
from libs.bus.health import BusHealth
from libs.postgres.events import Ranks, event_of
from libs.postgres.pool import CAN_COMMIT, Pool, Record
from libs.report import ending, why_not
from libs.report.reports import Reports
from libs.runtime import ids
from libs.runtime.errors import Unavailable
from libs.runtime.ids import NotFound
from libs.runtime.nearest import UnknownName
from services.console import logic
from services.console.listings.cycles import BadFilter
from services.console.listings.operations import OperationList
from services.console.live.event_log import EventLog
from services.console.live.frames import EventLine, behind
from services.console.sizes import ANSWER_BYTES_MAX, OperationSizes, cut, fitting, parts, size_of
from services.console.store import CALLS_OF_CYCLE_MAX, OPERATIONS_OF_CYCLE_MAX, Store, sql
from services.console.views import results, strategy, tree
from services.console.views.desk import DeskViews

COMMIT_TIMEOUT_S = 3.0
"""A person waits for the answer whether Postgres commits."""
P = ParamSpec("P")
T = TypeVar("T")
CYCLE_TYPE = "cycle"
COMMAND_BYTES_SHOWN = 120_000
RESULT_BYTES_SHOWN = 120_000
CALL_BYTES_SHOWN = 8_000


async def cycle_row(cycle_id: str, *, store: Store) -> Record:
    """The cycle of this id, or the only one whose id begins with it. Raises NotFound."""
    rows = await store.rows(sql.cycles_between, *ids.range_of("cycle", cycle_id))
    return ids.only_one("cycle", cycle_id, rows)


async def cycle(query: CycleQuery, *, store: Store) -> CycleView:
    """One cycle with all its contracts, found by its id or the beginning of it."""
    try:
        row = await cycle_row(query.cycle_id, store=store)
    except NotFound as error:
        return CycleView(found=False, message=error.message)
    wanted = {op_id for outputs in logic.outputs(row).values() for op_id in outputs.values()}
    view = logic.cycle_view(row, await store.contracts(list(wanted)))
    outcome = ending.of_cycle(view, ending.of_contracts)
    view = view.model_copy(update={"outcome": outcome})
    (view,) = await results.of_cycles([await _with_outcomes(view, store)], store=store)
    return logic.within(view)


async def _with_outcomes(view: CycleView, store: Store) -> CycleView:
    """The view with what later cycles have told of its decisions."""
    if view.cycle_id is None or view.as_of is None:
        return view
    pipelines = []
    for pipeline in view.pipelines:
        past = await store.outcomes(pipeline.account, view.as_of, view.cycle_id, pipeline.name)
        read = {outcome: _or_none(DecisionOutcome.model_validate_json, outcome) for outcome in past}
        known = [outcome for outcome in read.values() if outcome is not None]
        fields = {
            "not_bought": why_not.of(
                Reports.of(pipeline), pipeline.status, view.reason_of(pipeline)
            ),
            "outcomes": logic.each_once(known),
            "unreadable_outcomes": len(read) - len(known),
        }
        pipelines.append(pipeline.model_copy(update=fields))
    return view.model_copy(update={"pipelines": tuple(pipelines)})


async def operations(query: OperationsQuery, *, store: Store) -> OperationsPage:
    """A cycle's tree, or the newest operations and cycles; no cycles where a filter is for
    operations alone."""
    if query.cycle_id is None:
        _refuse_unknown(query.type)
        return await _newest(query, store, OperationList(store))
    row = await cycle_row(query.cycle_id, store=store)
    rows = await store.rows(sql.operations_of_cycle, row["cycle_id"], OPERATIONS_OF_CYCLE_MAX)
    nodes = tree.tree(
        row,
        rows,
        await store.rows(sql.calls_of_cycle, row["cycle_id"], 0, CALLS_OF_CYCLE_MAX, None),
    )
    _refuse_unknown(query.type, (name for node in nodes for name in (node.type, node.name)))
    wanted = [
        node
        for node in nodes
        if query.type in {None, node.type, node.name} and query.status in {None, node.status}
    ]
    return OperationsPage(operations=tuple(wanted))


def _refuse_unknown(wanted: str | None, here: Iterable[str] = ()) -> None:
    """Raise UnknownName for what no operation can be; a typo is not the same as nothing there."""
    if wanted is not None and wanted not in tree.TYPES and wanted not in set(here):
        raise UnknownName("type of operation", wanted, tree.TYPES, field="type")


async def _newest(query: OperationsQuery, store: Store, listed: OperationList) -> OperationsPage:
    nodes: list[OperationView] = []
    is_filtered = any((query.account, query.since, query.until, query.text, query.before))
    if is_filtered and query.type in {CYCLE_TYPE, strategy.PARENT}:
        text = (
            f"a {query.type} can only be filtered by status here; the list of cycles has all "
            "filters"
        )
        raise BadFilter(text, "type")
    if not is_filtered and query.type in {None, CYCLE_TYPE, strategy.PARENT}:
        statuses = _cycle_statuses(query.status)
        kind = STRATEGY if query.type == strategy.PARENT else None
        rows = await store.rows(sql.newest_cycles, statuses, query.limit, kind)
        nodes += [await _cycle_node(row, store) for row in rows]
    has_cycles, before = bool(nodes), None
    if query.type not in {CYCLE_TYPE, strategy.PARENT}:
        fit = await listed.page(query)
        # A page among whose operations are cycles has no next one: it is a glance.
        before = None if has_cycles else fit.before
        nodes += map(tree.operation_node, fit.rows)
    if has_cycles:
        nodes.sort(key=lambda node: node.created_at, reverse=True)
    kept = fitting(nodes[: query.limit])
    if not has_cycles and kept and len(kept) < len(nodes):
        before = kept[-1].op_id
    return OperationsPage(operations=tuple(kept), before=before)


async def _cycle_node(cycle: Record, store: Store) -> OperationView:
    node = tree.cycle_node(cycle)
    if not strategy.is_strategy(cycle):
        return node
    return strategy.parent(
        node,
        cycle,
        await store.rows(sql.operations_of_cycle, cycle["cycle_id"], OPERATIONS_OF_CYCLE_MAX),
    )


def _cycle_statuses(status: OperationStatus | None) -> list[str] | None:
    if status is None:
        return None
    return [cycle.value for cycle, node in tree.STATUS_OF.items() if node is status]


async def node(op_id: UUID, *, store: Store) -> OperationView | None:
    """An operation or a cycle as a node of its tree; None where neither has the id."""
    row = await store.operation(op_id)
    if row is not None:
        return tree.operation_node(row)
    rows = await store.rows(sql.cycles_between, op_id, op_id)
    return await _cycle_node(rows[0], store) if rows else None


async def operation_id(digits: str, *, store: Store) -> UUID:
    """The operation or cycle whose id begins with these digits. Raises NotFound."""
    between = ids.range_of("operation", digits)
    cycles = [row["cycle_id"] for row in await store.rows(sql.cycles_between, *between)]
    matches = [*await store.operations_between(*between), *cycles]
    op_id: UUID = ids.only_one("operation", digits, matches)
    return op_id


async def operation(query: OperationQuery, *, store: Store) -> OperationDetail:
    """One operation with what went in and what came out, cut where it is large."""
    try:
        op_id = await operation_id(query.op_id, store=store)
    except NotFound as error:
        return OperationDetail(found=False, message=error.message)
    row = await store.operation(op_id)
    if row is None:
        return OperationDetail(found=False, message=f"{op_id} is a cycle, not an operation")
    entries = [
        _shown(JournalEntry.model_validate_json(entry))
        for entry in await store.journal(row["started_on"], row["op_id"])
    ]
    command = cut(orjson.loads(row["command"]), COMMAND_BYTES_SHOWN)
    result = cut(_json(row["result"]), RESULT_BYTES_SHOWN)
    room = ANSWER_BYTES_MAX - size_of(command) - size_of(result)
    kept = fitting(entries, room)
    view = tree.operation_node(row)
    if len(kept) < len(entries):
        missing = {"calls_cut": len(entries) - len(kept)}
        view = view.model_copy(update={"metadata": {**view.metadata, **missing}})
    return OperationDetail(operation=view, command=command, result=result, journal=tuple(kept))


def _shown(entry: JournalEntry) -> JournalEntry:
    return entry.model_copy(
        update={
            "request": cut(entry.request, CALL_BYTES_SHOWN),
            "reply": cut(entry.reply, CALL_BYTES_SHOWN),
        }
    )


async def recording(query: RecordingQuery, *, store: Store) -> Recording:
    """One part of a cycle's record, whole and never cut.

    An operation whose journal is too large for one message comes in several parts that follow each
    other under the same op_id; command and result stand in the first.
    """
    sizes = [
        OperationSizes(row["op_id"], row["head_bytes"], row["entry_bytes"])
        for row in await store.rows(sql.sizes_on_record, query.cycle_id)
    ]
    wanted = parts(sizes)
    if query.index >= len(wanted):
        return Recording(found=False)
    part = wanted[query.index]
    row = await store.operation(part.op_id)
    if row is None:
        return Recording(found=False)
    entries = await store.journal(row["started_on"], part.op_id, part.first, part.count)
    heads = part.first == 0
    return Recording.model_validate(
        {
            **row,
            "more": query.index + 1 < len(wanted),
            "command": orjson.loads(row["command"]) if heads else None,
            "result": _json(row["result"]) if heads else None,
            "failure": Failure.model_validate_json(row["failure"]) if row["failure"] else None,
            "journal": tuple(map(JournalEntry.model_validate_json, entries)),
        }
    )


async def whole_cycle_id(digits: str, *, store: Store) -> UUID:
    """The whole id: of a cycle that there is, where only its first digits are given. Raises
    NotFound."""
    with contextlib.suppress(ValueError):
        return UUID(digits)  # whoever is asked says whether there is such a cycle
    full_id: UUID = (await cycle_row(digits, store=store))["cycle_id"]
    return full_id


async def approvals(query: ApprovalsQuery, *, store: Store) -> ApprovalsPage:
    """The proposals that wait for a person."""
    digits = query.cycle_id
    cycle_id = await whole_cycle_id(digits, store=store) if digits else None
    rows = await store.rows(sql.waiting_approvals, cycle_id, query.limit + 1)
    kept = fitting(map(logic.waiting_approval, rows[: query.limit]))
    return ApprovalsPage(
        approvals=tuple(one for one in kept if not isinstance(one, UnreadableDecision)),
        unreadable=tuple(one for one in kept if isinstance(one, UnreadableDecision)),
        more=len(kept) < len(rows),
    )


async def decisions(query: DecisionsQuery, *, store: Store) -> DecisionsPage:
    """The newest decisions, each with what was executed of it."""
    digits = query.cycle_id
    cycle_id = await whole_cycle_id(digits, store=store) if digits else None
    rows = await store.newest_decisions(cycle_id, query.account, query.limit)
    if not rows:
        await store.require_account(query.account)
    kept = fitting(map(logic.decision_view, rows))
    views = [one for one in kept if not isinstance(one, UnreadableDecision)]
    return DecisionsPage(
        decisions=tuple(await results.of_decisions(views, store=store)),
        unreadable=tuple(one for one in kept if isinstance(one, UnreadableDecision)),
        more=len(kept) < len(rows),
    )


async def events_after(query: EventsAfter, *, store: Store) -> Events:
    """A cycle's events after a sequence number, as they were or will be published."""
    rows = await store.rows(sql.events_after, query.cycle_id, query.sequence, query.limit + 1)
    numbered = enumerate(rows[: query.limit], start=query.sequence + 1)
    read = [_or_none(event_of, row, sequence) for sequence, row in numbered]
    known = [event for event in read if event is not None]
    kept = fitting(known)
    return Events(
        events=tuple(kept),
        more=len(kept) < len(known) or len(read) < len(rows),
        unreadable=len(read) - len(known),
    )


async def events_since(query: EventsSince, *, pool: Pool, log: EventLog) -> EventsPage:
    """The events of all cycles behind a position, in the relay's order. Raises UnknownName."""
    for pattern in query.types:
        require_known(pattern)
    start = None if query.after is None else position_of(query.after)
    at, gap = await log.entered(pool, query.back if start is None else start, None)
    batch = await log.since(pool, at, Ranks())
    wanted = [line for line in batch.lines if _is_wanted(line, query.types)]
    looked_at = wanted[: query.limit]
    read = [_or_none(_placed, line) for line in looked_at]
    known = [event for event in read if event is not None]
    # One event is always sent: who asks must get on.
    kept = fitting(known) or known[:1]
    if is_cut := len(kept) < len(known):
        end = kept[-1].position
    elif is_cut := len(looked_at) < len(wanted):
        end = str(behind(looked_at[-1].row))
    else:
        end = str(batch.end)
    return EventsPage(
        events=tuple(kept),
        position=end,
        more=is_cut or len(batch.lines) == log.read_max,
        gap=gap,
        unreadable=len(read) - len(known),
    )


def _or_none(read: Callable[P, T], *row: P.args, **named: P.kwargs) -> T | None:
    """Read a row; None where a later release wrote what this one cannot read."""
    try:
        return read(*row, **named)
    except ValidationError:
        return None


def _is_wanted(line: EventLine, patterns: Sequence[str]) -> bool:
    owner, kind = line.row["owner"], line.row["type"]
    return not patterns or any(fits(pattern, owner, kind) for pattern in patterns)


def _placed(line: EventLine) -> EventAt:
    return EventAt(position=str(behind(line.row)), event=Event.model_validate_json(line.body))


async def budget(query: BudgetQuery, desk: DeskViews) -> BudgetView:
    """The rest of today's budget, and the use of the last days."""
    at = desk.now()
    rows = await desk.store.rows(sql.day_budgets, at.astimezone(UTC).date(), query.days)
    return logic.budget_view(rows, at, desk.settings)


async def dead_letters(query: DeadLettersQuery, desk: DeskViews) -> DeadLettersPage:
    """The newest dead letters, or one with its body."""
    if query.sequence is None:
        return DeadLettersPage(letters=tuple(fitting(await desk.letters.newest(query.limit))))
    letter = await desk.letters.one(query.sequence)
    return DeadLettersPage(letters=() if letter is None else (letter,))


async def storing(query: StoringQuery, *, health: BusHealth, pool: Pool) -> Storing:
    """Whether NATS stores commands, or Postgres commits."""
    if query.server == "postgres":
        try:
            await pool.execute(CAN_COMMIT, timeout=COMMIT_TIMEOUT_S)
        except Unavailable as error:
            return Storing(problem=error.message)
        return Storing()
    return Storing(problem=await health.not_stored_now())


async def halts(_: HaltsQuery, *, store: Store) -> Halts:
    """The halts that stand."""
    return Halts(halts=tuple(fitting(map(logic.halt_of, await store.rows(sql.halts)))))


def _json(body: bytes | None) -> JsonValue:
    value: JsonValue = None if body is None else orjson.loads(body)
    return value
