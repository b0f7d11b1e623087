"""The ledger's tables: load an account under its lock, write what was decided, nothing else."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import orjson

from contracts.account import AccountLimits, Side
from contracts.audit import EventType
from contracts.execution import ExecutionResult, OrderStatus
from contracts.halt import Halt, HaltEvent
from libs.broker.broker import Filled
from libs.postgres.pool import Connection, Record
from libs.postgres.queries import Queries
from libs.runtime import ids
from services.execution.account import Account, BookedOrder
from services.execution.books import Book, Books, Entry, EntryKind, Holding, Line, fill_key
from services.execution.logic import Changes

sql = Queries(Path(__file__).parent / "queries.sql")

PLACED, ENDED = 0, 1
"""Sequence numbers of an order's two events."""

END_EVENTS = {
    OrderStatus.FILLED: EventType.ORDER_FILLED,
    OrderStatus.REJECTED: EventType.ORDER_REJECTED,
    OrderStatus.CANCELLED: EventType.ORDER_CANCELLED,
}


async def open_account(
    db: Connection,
    account: str,
    currency: str,
    session: date,
    starting_cash: Decimal,
    limits: AccountLimits,
) -> bool:
    """Make the account where there is none; whether it was made. Its cash is not posted yet."""
    done: str = await db.execute(
        sql.insert_account, account, currency, session, starting_cash, limits.model_dump_json()
    )
    return done == "INSERT 0 1"


async def load(
    db: Connection, account: str, as_of: date, *, since: date | None = None, lock: bool = False
) -> Account | None:
    """The account with its books from `since` (else as_of) on; None where there is no such account.

    With `lock` nobody else changes it, and nobody halts or resumes, before the transaction ends.
    """
    if lock:
        await db.execute(sql.hold_halts)
    row = await db.fetchrow(sql.lock_account if lock else sql.read_account, account)
    if row is None:
        return None
    since = min(since or as_of, row["clock"])
    books = _books(
        await db.fetch(sql.balances, account), await db.fetch(sql.recent_lines, account, since)
    )
    found = Account(
        name=account,
        currency=row["currency"],
        clock=row["clock"],
        limits=AccountLimits.model_validate_json(row["limits"]),
        books=books,
        orders=tuple(map(_order, await db.fetch(sql.open_orders, account, as_of))),
        halt=await _halt_of(db, account),
    )
    if not found.touched:
        return found
    sectors = await db.fetch(sql.sectors, account, found.touched)
    return replace(found, sectors={row["ticker"]: row["sector"] for row in sectors})


async def now(db: Connection) -> datetime:
    """The time by the database's clock, which all the desk goes by."""
    found: datetime = await db.fetchval("select clock_timestamp()")
    return found


async def keep_limits(db: Connection, account: Account) -> None:
    """Keep on record that the account is judged by other limits from now on."""
    await db.execute(sql.keep_limits, account.name, account.limits.model_dump_json())


async def account_names(db: Connection) -> list[str]:
    """The names of all accounts."""
    return [row["account"] for row in await db.fetch(sql.account_names)]


async def lock_halts(db: Connection) -> None:
    """Wait for the executions under way; none goes on before the transaction ends."""
    await db.execute(sql.lock_halts)


async def read_halts(db: Connection) -> tuple[Halt, ...]:
    """The halts that stand, the one of all accounts first."""
    return tuple(_halt(row) for row in await db.fetch(sql.halts))


async def _halt_of(db: Connection, account: str) -> Halt | None:
    row = await db.fetchrow(sql.halt_of, account)
    return None if row is None else _halt(row)


def _halt(row: Record) -> Halt:
    return Halt(account=row["account"], reason=row["reason"], by=row["by_whom"], since=row["at"])


async def change_halt(
    db: Connection, account: str | None, reason: str, by: str, *, halted: bool
) -> None:
    """Write a halt or its end, and its event."""
    row = await db.fetchrow(sql.insert_halt_change, account, halted, reason, by)
    kind = EventType.TRADING_HALTED if halted else EventType.TRADING_RESUMED
    event = HaltEvent(account=account, reason=reason, by=by).model_dump_json()
    node = ids.halt_id(row["change_id"])
    await db.execute(sql.insert_halt_event, row["at"].date(), node, kind.value, row["at"], event)


def _books(balances: Sequence[Record], lines: Sequence[Record]) -> Books:
    entries: dict[int, list[Record]] = {}
    for line in lines:
        entries.setdefault(line["entry_id"], []).append(line)
    return Books(
        cash=sum((row["amount"] for row in balances if row["book"] == Book.CASH), Decimal(0)),
        holdings={
            row["ticker"]: Holding(_shares(row["quantity"]), row["amount"])
            for row in balances
            if row["book"] == Book.POSITION
        },
        recent=tuple(map(_entry, entries.values())),
    )


def _entry(rows: Sequence[Record]) -> Entry:
    head = rows[0]
    return Entry(
        key=head["key"],
        kind=EntryKind(head["kind"]),
        session=head["session"],
        lines=tuple(
            Line(Book(row["book"]), row["amount"], row["ticker"], _shares(row["quantity"]))
            for row in rows
        ),
        ticker=head["about"],
        memo=head["memo"],
    )


def _order(row: Record) -> BookedOrder:
    fill = None
    if row["fill_price"] is not None:
        fill = Filled(
            row["fill_price"], _shares(row["fill_quantity"]), row["fill_fee"], row["fill_session"]
        )
    return BookedOrder(
        order_id=row["order_id"],
        account=row["account"],
        cycle_id=row["cycle_id"],
        started_on=row["started_on"],
        op_id=row["op_id"],
        pipeline=row["pipeline"],
        ticker=row["ticker"],
        sector=row["sector"],
        side=Side(row["side"]),
        quantity=_shares(row["quantity"]),
        hold=row["hold"],
        status=OrderStatus(row["status"]),
        reason=row["reason"],
        as_of=row["as_of"],
        fill=fill,
    )


def _shares(stored: Decimal) -> Decimal:
    """A whole number without the places that the column adds: 276, not 276.000000."""
    return stored.to_integral_value() if stored == stored.to_integral_value() else stored


async def find_orders(db: Connection, order_ids: Sequence[UUID]) -> Mapping[UUID, BookedOrder]:
    """Those of the orders that were placed before."""
    rows = await db.fetch(sql.orders_by_id, list(order_ids))
    return {row["order_id"]: _order(row) for row in rows}


async def find_execution(db: Connection, op_id: UUID) -> tuple[str, ExecutionResult] | None:
    """The command's hash and the answer that were stored under this operation."""
    row = await db.fetchrow(sql.find_execution, op_id)
    if row is None:
        return None
    return row["command_sha256"], ExecutionResult.model_validate_json(row["result"])


async def keep_execution(db: Connection, command_sha256: str, result: ExecutionResult) -> None:
    """Store the answer beside what it did."""
    await db.execute(
        sql.insert_execution,
        result.op_id,
        result.account,
        command_sha256,
        result.model_dump_json(),
    )


async def write(db: Connection, changes: Changes) -> None:
    """Write orders, entries, fills, events and the clock; the database checks the balance."""
    account = changes.account
    for order in changes.placed:
        await db.execute(sql.insert_order, *_order_values(order))
    for order in changes.ended:
        await db.execute(
            sql.end_order, order.order_id, order.status.value, order.quantity, order.reason
        )
    for entry in changes.entries:
        await db.execute(sql.insert_entry, *_entry_values(account.name, entry))
    for order in (*changes.placed, *changes.ended):
        await _write_fill(db, order)
    events = [_placed_event(o) for o in changes.placed if o.status is not OrderStatus.REJECTED]
    events += [_ended_event(o) for o in (*changes.placed, *changes.ended) if o.status in END_EVENTS]
    if events:
        await db.executemany(sql.insert_event, events)
    await db.execute(sql.move_clock, account.name, account.clock)


def _order_values(order: BookedOrder) -> tuple[Any, ...]:
    return (
        order.order_id,
        order.account,
        order.cycle_id,
        order.started_on,
        order.op_id,
        order.pipeline,
        order.ticker,
        order.sector,
        order.side.value,
        order.quantity,
        order.hold,
        order.status.value,
        order.reason,
        order.as_of,
    )


def _entry_values(account: str, entry: Entry) -> tuple[Any, ...]:
    return (
        account,
        entry.key,
        entry.kind.value,
        entry.session,
        entry.ticker,
        entry.memo,
        [line.book.value for line in entry.lines],
        [line.ticker for line in entry.lines],
        [line.amount for line in entry.lines],
        [line.quantity for line in entry.lines],
    )


async def _write_fill(db: Connection, order: BookedOrder) -> None:
    fill = order.fill
    if fill is not None:
        await db.execute(
            sql.insert_fill,
            order.order_id,
            order.account,
            fill_key(order.order_id),
            fill.price,
            fill.quantity,
            fill.fee,
            fill.session,
        )


def _placed_event(order: BookedOrder) -> tuple[Any, ...]:
    return _event(replace(order, status=OrderStatus.WORKING), PLACED, EventType.ORDER_PLACED, {})


def _ended_event(order: BookedOrder) -> tuple[Any, ...]:
    fill = order.fill
    more = {}
    if fill is not None:
        more = {"price": str(fill.price), "fee": str(fill.fee), "session": str(fill.session)}
    return _event(order, ENDED, END_EVENTS[order.status], more)


def _event(
    order: BookedOrder, seq: int, kind: EventType, more: Mapping[str, str]
) -> tuple[Any, ...]:
    data = {
        "account": order.account,
        "order_id": str(order.order_id),
        "asset": order.ticker,
        "side": order.side.value,
        "quantity": f"{order.quantity:f}",
        "type": "market",
        "status": order.status.value,
        "reason": order.reason,
        "op_id": str(order.op_id),
        **more,
    }
    session_id = f"{order.account}/{order.as_of}"
    return (
        order.started_on,
        order.order_id,
        seq,
        order.cycle_id,
        kind.value,
        order.pipeline,
        session_id,
        orjson.dumps(data).decode(),
    )
