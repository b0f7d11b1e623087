"""One function per question: read the rows, give the view that people get."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any, Protocol
from uuid import UUID

import orjson
from pydantic import JsonValue

from contracts.account import AccountLimits, OpenOrder, Portfolio, Position, Side
from contracts.audit import Events, EventsAfter
from contracts.execution import Fill
from contracts.halt import Halt, Halts, HaltsQuery
from contracts.memory import DecisionOutcome
from contracts.operation import JournalEntry, OperationStatus, OperationView
from contracts.query import (
    AccountQuery,
    AccountView,
    ApprovalsPage,
    ApprovalsQuery,
    CycleQuery,
    CyclesPage,
    CyclesQuery,
    CycleView,
    DeadLettersPage,
    DeadLettersQuery,
    EquityPoint,
    EquityQuery,
    EquityView,
    OperationDetail,
    OperationQuery,
    OperationsPage,
    OperationsQuery,
    Recording,
    RecordingQuery,
)
from contracts.types import ExchangeRate, Failure, Foreign, Money
from libs.bus.dead_letters import DeadLetters
from libs.postgres.events import event_of
from libs.postgres.pool import Record
from libs.quant.exchange import Mark
from services.console import logic, tree
from services.console.sizes import ANSWER_BYTES_MAX, OnRecord, cut, fitting, parts, size_of
from services.console.store import Store

COMMAND_BYTES_SHOWN = 120_000
RESULT_BYTES_SHOWN = 120_000
CALL_BYTES_SHOWN = 8_000
PRICE_STEP = Decimal("0.000001")

_NO_CYCLE = UUID(int=0)
"""Stands in an account's portfolio where no cycle has placed an order yet."""


class Closes(Protocol):
    """Closing prices of a session."""

    async def close(self, ticker: str, session: date, currency: str) -> Mark | None:
        """The close, and its value in `currency`; None where the source has none."""
        ...


async def cycle(query: CycleQuery, *, store: Store) -> CycleView:
    """One cycle with all its contracts, found by its id or the beginning of it."""
    between = logic.id_range(query.cycle_id)
    if between is None:
        text = f"{query.cycle_id!r} is no cycle id; an id or its first {logic.ID_CHARS_MIN} digits"
        return CycleView(found=False, message=text)
    rows = await store.cycles_between(*between)
    if len(rows) != 1:
        problem = "no cycle has the id" if not rows else "more than one cycle's id begins with"
        return CycleView(found=False, message=f"{problem} {query.cycle_id}")
    row = rows[0]
    wanted = {op_id for made in logic.outputs(row).values() for op_id in made.values()}
    view = logic.cycle_view(row, await store.contracts(list(wanted)))
    return logic.within(await _with_outcomes(view, store))


async def _with_outcomes(view: CycleView, store: Store) -> CycleView:
    """The view with what later cycles have told of its decisions."""
    if view.cycle_id is None or view.as_of is None:
        return view
    pipelines = []
    for pipeline in view.pipelines:
        told = await store.outcomes(pipeline.account, view.as_of, view.cycle_id, pipeline.name)
        outcomes = logic.each_once(map(DecisionOutcome.model_validate_json, told))
        pipelines.append(pipeline.model_copy(update={"outcomes": outcomes}))
    return view.model_copy(update={"pipelines": tuple(pipelines)})


async def cycles(query: CyclesQuery, *, store: Store) -> CyclesPage:
    """The newest cycles without their contracts."""
    statuses = [query.status.value] if query.status else None
    rows = await store.newest_cycles(statuses, query.limit)
    return CyclesPage(cycles=tuple(fitting(map(logic.cycle_view, rows))))


async def operations(query: OperationsQuery, *, store: Store) -> OperationsPage:
    """A cycle's tree, or the newest operations and cycles."""
    if query.cycle_id is None:
        return OperationsPage(operations=tuple(fitting(await _newest(query, store))))
    found = await store.cycles_between(query.cycle_id, query.cycle_id)
    if not found:
        return OperationsPage()
    rows = await store.operations_of(query.cycle_id)
    nodes = tree.tree(found[0], rows, await store.calls_of(query.cycle_id))
    wanted = [
        node
        for node in nodes
        if query.type in {None, node.type, node.name} and query.status in {None, node.status}
    ]
    return OperationsPage(operations=tuple(wanted))


async def _newest(query: OperationsQuery, store: Store) -> list[OperationView]:
    dated: list[tuple[Any, OperationView]] = []
    if query.type in {None, "cycle"}:
        statuses = _cycle_statuses(query.status)
        rows = await store.newest_cycles(statuses, query.limit)
        dated += [((r["accepted_at"], r["accepted_at"]), tree.cycle_node(r)) for r in rows]
    if query.type != "cycle":
        step = None if query.type == "operation" else query.type
        rows = await store.newest_operations(query.status, step, query.limit)
        dated += [((r["accepted_at"], r["created_at"]), tree.operation_node(r)) for r in rows]
    dated.sort(key=lambda each: each[0], reverse=True)
    return [node for _, node in dated[: query.limit]]


def _cycle_statuses(status: OperationStatus | None) -> list[str] | None:
    if status is None:
        return None
    return [cycle.value for cycle, node in tree.STATUS_OF.items() if node is status]


async def operation(query: OperationQuery, *, store: Store) -> OperationDetail:
    """One operation with what went in and what came out, cut where it is large."""
    row = await store.operation(query.op_id)
    if row is None:
        return OperationDetail(found=False)
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
        OnRecord(row["op_id"], row["head_bytes"], row["entry_bytes"])
        for row in await store.sizes_on_record(query.cycle_id)
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
    return Recording(
        more=query.index + 1 < len(wanted),
        op_id=part.op_id,
        service=row["service"],
        step=row["step"],
        pipeline=row["pipeline"],
        status=row["status"],
        command=orjson.loads(row["command"]) if heads else None,
        result=_json(row["result"]) if heads else None,
        failure=Failure.model_validate_json(row["failure"]) if row["failure"] else None,
        journal=tuple(map(JournalEntry.model_validate_json, entries)),
    )


async def approvals(query: ApprovalsQuery, *, store: Store) -> ApprovalsPage:
    """The proposals that wait for a person."""
    rows = await store.waiting_approvals(query.cycle_id, query.limit + 1)
    kept = fitting(map(logic.waiting_approval, rows[: query.limit]))
    return ApprovalsPage(approvals=tuple(kept), more=len(kept) < len(rows))


async def events_after(query: EventsAfter, *, store: Store) -> Events:
    """A cycle's events after a sequence number, as they were or will be published."""
    rows = await store.events_after(query.cycle_id, query.sequence, query.limit + 1)
    numbered = enumerate(rows[: query.limit], start=query.sequence + 1)
    kept = fitting(event_of(row, sequence) for sequence, row in numbered)
    return Events(events=tuple(kept), more=len(kept) < len(rows))


async def dead_letters(query: DeadLettersQuery, *, letters: DeadLetters) -> DeadLettersPage:
    """The newest dead letters, or one with its body."""
    if query.sequence is None:
        return DeadLettersPage(letters=tuple(fitting(await letters.newest(query.limit))))
    found = await letters.one(query.sequence)
    return DeadLettersPage(letters=() if found is None else (found,))


async def halts(_: HaltsQuery, *, store: Store) -> Halts:
    """The halts that stand."""
    return Halts(halts=tuple(fitting(map(_halt, await store.halts()))))


def _halt(row: Record) -> Halt:
    return Halt(account=row["account"], reason=row["reason"], by=row["by_whom"], since=row["at"])


async def account(query: AccountQuery, *, store: Store, closes: Closes) -> AccountView:
    """One account as its books stand, with the names of all."""
    names = tuple(await store.accounts())
    row = await store.account(query.account)
    if row is None:
        return AccountView(found=False, accounts=names)
    balances = await store.balances(query.account)
    books = await _portfolio(row, balances, store, closes)
    fills = await store.newest_fills(query.account, query.fills)
    gains = _gains(books, balances)
    return AccountView(
        portfolio=books,
        starting_cash=row["starting_cash"],
        fills=tuple(_fill(each, row["currency"]) for each in fills),
        accounts=names,
        realised=gains.realised,
        dividends=gains.dividends,
        fees=gains.fees,
        unrealised=gains.unrealised,
        exposure_gross=gains.exposure,
        exposure_net=gains.exposure,
    )


@dataclass(frozen=True)
class _Gains:
    """Since the opening; nothing is ever sold short, so gross and net exposure are one."""

    realised: Decimal
    dividends: Decimal
    fees: Decimal
    unrealised: Decimal
    exposure: Decimal


def _gains(books: Portfolio, balances: Sequence[Record]) -> _Gains:
    sums: dict[str, Decimal] = {}
    for each in balances:
        sums[each["book"]] = sums.get(each["book"], Decimal(0)) + each["amount"]
    value = books.equity.amount - books.cash.amount
    return _Gains(
        # What came in is a credit, which the ledger writes with a minus.
        realised=-sums.get("realised", Decimal(0)),
        dividends=-sums.get("dividends", Decimal(0)),
        fees=sums.get("fees", Decimal(0)),
        unrealised=value - sums.get("position", Decimal(0)),
        exposure=value,
    )


async def equity(query: EquityQuery, *, store: Store, closes: Closes) -> EquityView:
    """The account's equity over its sessions.

    A session up to the account's clock is its snapshot. What was filled after the clock shows in
    the last point, marked as the account itself is: its closes are not known to it yet.
    """
    row = await store.account(query.account)
    if row is None:
        return EquityView(found=False)
    balances = await store.balances(query.account)
    now = await _portfolio(row, balances, store, closes)
    gains = _gains(now, balances)
    last = EquityPoint(
        session=now.as_of,
        cash=now.cash.amount,
        equity=now.equity.amount,
        realised=gains.realised,
        unrealised=gains.unrealised,
        exposure_gross=gains.exposure,
        exposure_net=gains.exposure,
    )
    taken = [each for each in await store.snapshots(query.account) if each["session"] < now.as_of]
    kept = logic.picked(taken, query.points - 1)
    return EquityView(points=(*(EquityPoint(**dict(each)) for each in kept), last))


async def _portfolio(
    row: Record, balances: Sequence[Record], store: Store, closes: Closes
) -> Portfolio:
    name, currency = row["account"], row["currency"]
    cash = sum((each["amount"] for each in balances if each["book"] == "cash"), Decimal(0))
    held = {
        each["ticker"]: each
        for each in sorted(balances, key=lambda each: each["ticker"])
        if each["book"] == "position" and each["quantity"] > 0
    }
    facts = await store.held(name, list(held))
    marked = await asyncio.gather(*(closes.close(t, row["clock"], currency) for t in held))
    positions = tuple(
        _position(each, facts.get(ticker), mark, row)
        for (ticker, each), mark in zip(held.items(), marked, strict=True)
    )
    last = await store.last_order(name)
    return Portfolio(
        cycle_id=last.get("cycle_id", _NO_CYCLE),
        op_id=last.get("op_id", _NO_CYCLE),
        as_of=row["as_of"],
        account=name,
        cash=_money(cash, currency),
        equity=_money(cash + sum((each.value for each in positions), Decimal(0)), currency),
        positions=positions,
        open_orders=tuple(_open(each, currency) for each in await store.working_orders(name)),
        limits=AccountLimits.model_validate_json(row["limits"]),
        halt=next((h for h in map(_halt, await store.halts()) if h.account in {None, name}), None),
    )


def _position(held: Record, fill: Record | None, mark: Mark | None, row: Record) -> Position:
    """Marked by the newest price that the account has seen: a fill after its clock, else the close
    at its clock, else the fill."""
    currency, cost = row["currency"], held["amount"] / held["quantity"]
    close = None if mark is None else mark.amount
    if fill is not None and (close is None or fill["session"] > row["clock"]):
        price, foreign = fill["price"], _foreign(fill, currency)
    else:
        price, foreign = close or cost, mark.foreign if mark else None
    return Position(
        ticker=held["ticker"],
        quantity=held["quantity"],
        average_cost=_money(cost, currency),
        price=_money(price, currency),
        sector=fill["sector"] if fill is not None else "unknown",
        foreign=foreign,
    )


def _foreign(fill: Record, into: str) -> Foreign | None:
    if fill["currency"] is None:
        return None
    traded = {"currency": fill["currency"], "into": into}
    rate = ExchangeRate(**traded, rate=fill["rate"], on=fill["rate_on"])
    return Foreign(price=Money(amount=fill["foreign_price"], currency=fill["currency"]), rate=rate)


def _money(amount: Decimal, currency: str) -> Money:
    return Money(amount=amount.quantize(PRICE_STEP), currency=currency)


def _open(row: Record, currency: str) -> OpenOrder:
    return OpenOrder(
        order_id=row["order_id"],
        asset=row["ticker"],
        side=Side(row["side"]),
        quantity=row["quantity"],
        hold=_money(row["hold"], currency),
    )


def _fill(row: Record, currency: str) -> Fill:
    return Fill(
        order_id=row["order_id"],
        asset=row["ticker"],
        side=Side(row["side"]),
        price=_money(row["price"], currency),
        quantity=row["quantity"],
        fee=_money(row["fee"], currency),
        session=row["session"],
        foreign=_foreign(row, currency),
    )


def _json(body: bytes | None) -> JsonValue:
    value: JsonValue = None if body is None else orjson.loads(body)
    return value
