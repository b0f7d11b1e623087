"""The ledger's tables: load an account under its lock, write what was decided, nothing else."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from uuid import UUID

from contracts.account import AccountLimits, OpenBooks, OrderStatus, Position
from contracts.audit import EventType
from contracts.capital import CashEvent, HoldingsEvent
from contracts.execution import ExecutionResult
from contracts.halt import Halt, HaltEvent
from contracts.message import Command
from contracts.types import Value
from contracts.venue import BoundTo
from libs.postgres.pool import PoolConnection, Record
from libs.postgres.queries import Queries
from libs.runtime import ids
from services.execution import exit_rows, rows
from services.execution.account import Account, BookedOrder, BrokerBinding, session_before
from services.execution.books import EntryKind
from services.execution.changes import Changes
from services.execution.exits import LOOK_BACK_DAYS
from services.execution.record import CommandRecord, require_on_record

sql = Queries(Path(__file__).parent / "queries.sql")


async def on_record(db: PoolConnection, command: Command, sha256: str) -> CommandRecord:
    """The orchestrator's record of the command. Raises NotOnRecord."""
    row = await db.fetchrow(sql.command_on_record, command.op_id)
    return require_on_record(command, sha256, None if row is None else rows.on_record(row))


async def open_account(
    db: PoolConnection,
    account: str,
    currency: str,
    session: date,
    starting_cash: Decimal,
    limits: AccountLimits,
    bound: BoundTo | None = None,
) -> bool:
    """Make the account where there is none, `bound` to a broker's for ever where that is said;
    whether it was made. Its cash is not posted yet."""
    done: str = await db.execute(
        sql.insert_account,
        account,
        currency,
        session,
        starting_cash,
        limits.model_dump_json(),
        bound.venue if bound else None,
        bound.account_number if bound else None,
    )
    return done == "INSERT 0 1"


async def is_bound(db: PoolConnection, account: str) -> bool:
    """Whether the account is bound to a broker; False where there is none."""
    return bool(await db.fetchval(sql.is_bound, account))


async def clock_of(db: PoolConnection, account: str) -> date | None:
    """The newest session that the account has seen; None where there is no such account."""
    clock: date | None = await db.fetchval(sql.clock_of, account)
    return clock


async def load(
    db: PoolConnection, account: str, as_of: date, *, lock: bool = False
) -> Account | None:
    """The account with its books from as_of on, and from its clock and newest snapshot where they
    are earlier; None where there is no such account.

    With `lock` nobody else changes it, and nobody halts or resumes, before the transaction ends.
    """
    if lock:
        await db.execute(sql.hold_halts)
    row = await db.fetchrow(sql.lock_account if lock else sql.read_account, account)
    if row is None:
        return None
    # Not in the statement that locks: what it joins would be as it was before it had to wait.
    snapped = await db.fetchrow(sql.snapshots_around, account, as_of)
    newest = snapped["newest"] or row["opened_on"] - timedelta(days=1)
    since = min(as_of, row["clock"], newest)
    balances = await db.fetch(sql.balances, account)
    recent = await db.fetch(sql.recent_lines, account, since)
    loaded = Account(
        name=account,
        currency=row["currency"],
        clock=row["clock"],
        limits=AccountLimits.model_validate_json(row["limits"]),
        books=rows.books(row["currency"], balances, recent),
        orders=tuple(map(rows.booked_order, await db.fetch(sql.open_orders, account, as_of))),
        halt=await _halt_of(db, account),
        snapped=newest,
        broker=await _binding(db, row),
    )
    if snapped["session"] is not None:
        paid_in = loaded.books.as_of(as_of).paid_in - snapped["paid_in"]
        before = session_before(snapped["session"], snapped["equity"], paid_in, loaded)
        loaded = replace(loaded, before=before)
    if snapped["closes"] is not None:
        loaded = replace(loaded, known=rows.known(snapped, loaded))
    if not loaded.touched:
        return loaded
    sectors = await db.fetch(sql.sectors, account, loaded.touched)
    plans = await db.fetch(sql.plans, account, as_of, loaded.touched)
    actions = await db.fetch(sql.newest_actions, account, loaded.touched, loaded.clock)
    return replace(
        loaded,
        sectors={row["ticker"]: row["sector"] for row in sectors},
        plans={row["ticker"]: rows.held_plan(row) for row in plans},
        actions={(row["ticker"], EntryKind(row["kind"])): row["session"] for row in actions},
    )


async def _binding(db: PoolConnection, row: Record) -> BrokerBinding | None:
    if row["venue"] is None:
        return None
    return rows.binding(row, await db.fetchrow(sql.newest_look, row["account"]))


async def with_exits(db: PoolConnection, account: Account, as_of: date) -> Account:
    """The account with what exits acted on of what it holds at as_of, and what was sold lately."""
    since = as_of - timedelta(days=LOOK_BACK_DAYS)
    sales = await db.fetch(sql.last_sales, account.name, since, as_of)
    account = replace(account, sales={row["ticker"]: row["sold_on"] for row in sales})
    holdings = account.books.as_of(as_of).holdings
    held = account.held(as_of)
    opened = [holdings[ticker].opened_on or date.min for ticker in held]
    exits = await db.fetch(sql.acted_exits, account.name, as_of, held, opened)
    acted = tuple(map(exit_rows.acted_exit, exits))
    if not acted:
        return account
    tickers = sorted({act.ticker for act in acted})
    split = await db.fetch(sql.splits_since, account.name, tickers, acted[0].as_of)
    return replace(account, acted=acted, splits=tuple(map(exit_rows.split_of, split)))


async def now(db: PoolConnection) -> datetime:
    """The time by the database's clock, which all the desk goes by."""
    moment: datetime = await db.fetchval("select clock_timestamp()")
    return moment


async def keep_limits(db: PoolConnection, account: Account) -> None:
    """Keep on record that the account is judged by other limits from now on."""
    await db.execute(sql.keep_limits, account.name, account.limits.model_dump_json())


async def account_names(db: PoolConnection) -> list[str]:
    """The names of all accounts."""
    return [row["account"] for row in await db.fetch(sql.account_names)]


async def is_halted(db: PoolConnection, account: str | None) -> bool:
    """Whether people halted this account, or (None) all; a difference of books is no halt."""
    stands: bool = await db.fetchval(sql.is_halted, account)
    return stands


async def lock_halts(db: PoolConnection) -> None:
    """Wait for the executions under way; none goes on before the transaction ends."""
    await db.execute(sql.lock_halts)


async def read_halts(db: PoolConnection) -> tuple[Halt, ...]:
    """The halts that stand, the one of all accounts first; of an account whose books differ from
    its broker's, that too."""
    return tuple(_halt(row) for row in await db.fetch(sql.halts))


async def _halt_of(db: PoolConnection, account: str) -> Halt | None:
    row = await db.fetchrow(sql.halt_of, account)
    return None if row is None else _halt(row)


def _halt(row: Record) -> Halt:
    return Halt(account=row["account"], reason=row["reason"], by=row["by_whom"], since=row["at"])


async def change_halt(
    db: PoolConnection, account: str | None, reason: str, by: str, *, halted: bool
) -> None:
    """Write a halt or its end, and its event."""
    row = await db.fetchrow(sql.insert_halt_change, account, halted, reason, by)
    kind = EventType.TRADING_HALTED if halted else EventType.TRADING_RESUMED
    event = HaltEvent(account=account, reason=reason, by=by).model_dump_json()
    node = ids.halt_id(row["change_id"])
    await db.execute(sql.insert_own_event, row["at"].date(), node, kind.value, row["at"], event)


async def has_entry(db: PoolConnection, account: str, key: str) -> bool:
    """Whether the account's books have an entry of that key."""
    is_there: bool = await db.fetchval(sql.has_entry, account, key)
    return is_there


async def count_cash_moved(db: PoolConnection, account: str) -> int:
    """The deposits and withdrawals of the account."""
    count: int = await db.fetchval(sql.count_cash_moved, account)
    return count


async def tell_capital(
    db: PoolConnection, kind: EventType, key: str, event: HoldingsEvent | CashEvent
) -> None:
    """Write the event of what the owner has brought in or taken out, posted as `key`."""
    await tell_of_nobody(db, kind, ids.capital_id(event.account, key), event)


async def tell_of_nobody(db: PoolConnection, kind: EventType, node: UUID, event: Value) -> None:
    """Write an event that no cycle has caused; `node` stands for what did."""
    at = await now(db)
    await db.execute(sql.insert_own_event, at.date(), node, kind.value, at, event.model_dump_json())


async def find_orders(db: PoolConnection, order_ids: Sequence[UUID]) -> Mapping[UUID, BookedOrder]:
    """Those of the orders that were placed before."""
    found = await db.fetch(sql.orders_by_id, list(order_ids))
    return {row["order_id"]: rows.booked_order(row) for row in found}


async def find_execution(db: PoolConnection, op_id: UUID) -> ExecutionResult | None:
    """The answer that was stored under this operation."""
    result = await db.fetchval(sql.find_execution, op_id)
    return None if result is None else ExecutionResult.model_validate_json(result)


async def keep_execution(db: PoolConnection, command_sha256: str, result: ExecutionResult) -> None:
    """Store the answer beside what it did."""
    await db.execute(
        sql.insert_execution,
        result.op_id,
        result.account,
        command_sha256,
        result.model_dump_json(),
    )


async def write(db: PoolConnection, changes: Changes) -> None:
    """Write orders, entries, fills, snapshots, events and the clock; the database checks the
    balance.
    """
    account = changes.account
    new = {order.order_id for order in changes.placed}
    gone = {order.order_id: order for order in changes.ended}
    # In the order of what happened: a stop order makes room for the one that takes its place.
    await _update(db, [order for order in changes.ended if order.order_id not in new])
    for order in changes.placed:
        await db.execute(sql.insert_order, *rows.order_values(order))
        if order.is_working and order.terms is not None and order.window is not None:
            await db.execute(sql.insert_intent, *rows.intent_values(order, order.window))
        await _update(db, [gone[order.order_id]] if order.order_id in gone else [])
    await _update(db, [order for order in changes.altered if order.order_id not in gone])
    for entry in changes.entries:
        await db.execute(sql.insert_entry, *rows.entry_values(account.name, entry))
    ended = [
        order for order in (*changes.placed, *changes.ended) if order.status in rows.END_EVENTS
    ]
    for order, fill, key in changes.fills:
        await db.execute(sql.insert_fill, *rows.fill_values(order, fill, key))
    for order in ended:
        if order.fill is not None and order.terms is None:
            await db.execute(sql.insert_fill, *rows.fill_values(order, order.fill))
    if changes.snapshots:
        taken = [rows.snapshot_values(account.name, snapshot) for snapshot in changes.snapshots]
        await db.executemany(sql.insert_snapshot, taken)
    placed = [order for order in changes.placed if order.status is not OrderStatus.REJECTED]
    events = [rows.placed_event(order, account.currency) for order in placed]
    events += [rows.ended_event(order, account.currency) for order in ended]
    if events:
        await db.executemany(sql.insert_event, events)
    await db.execute(sql.move_clock, account.name, account.clock)


async def tell_unpriced(db: PoolConnection, command: OpenBooks, held: Sequence[Position]) -> None:
    """Write an event of each position that has no price at the command's as_of."""
    events = [rows.unpriced_event(command, position) for position in held]
    if events:
        await db.executemany(sql.insert_event, events)


async def _update(db: PoolConnection, orders: Sequence[BookedOrder]) -> None:
    for order in orders:
        await db.execute(sql.update_order, *rows.update_values(order))
