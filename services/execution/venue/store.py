"""The tables of what is for a broker: orders there, looks, moves."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from uuid import UUID

import orjson

from contracts.account import Side
from contracts.audit import EventType
from contracts.types import plain_shares
from contracts.venue import (
    BoundTo,
    Difference,
    LookEvent,
    LookVerdict,
    LookView,
    OrderAlarm,
    OrderChange,
    VenueOrderView,
    VenueState,
    VenueTerms,
)
from libs.broker.venue import VenueAccount, VenueMove
from libs.postgres.pool import PoolConnection, Record
from libs.postgres.queries import Queries
from libs.runtime import ids
from services.execution.venue.logic import VenueRow, blocks

sql = Queries(Path(__file__).parent / "queries.sql")

EXECUTION = "execution"
AGAIN = timedelta(minutes=1)
"""How often it is kept that there still is no answer."""


@dataclass(frozen=True, slots=True)
class BoundAccount:
    """An account that is bound to a broker's."""

    name: str
    bound: BoundTo
    clock: date
    opened_on: date


@dataclass(frozen=True, slots=True)
class Look:
    """A look as it is kept. `positions` are the broker's shares, where it answered."""

    at: datetime
    verdict: LookVerdict
    differences: tuple[Difference, ...] = ()
    note: str = ""
    account: VenueAccount | None = None
    by: str = EXECUTION
    reason: str = ""

    @property
    def view(self) -> LookView:
        """As people are shown it."""
        return LookView(
            at=self.at, verdict=self.verdict, differences=self.differences, note=self.note
        )


async def bound_accounts(db: PoolConnection) -> tuple[BoundAccount, ...]:
    """All accounts that are bound."""
    return tuple(map(_bound, await db.fetch(sql.bound_accounts)))


async def bound_account(db: PoolConnection, name: str) -> BoundAccount | None:
    """The account, where it is bound; None where there is none, or the simulated broker fills."""
    row = await db.fetchrow(sql.bound_account, name)
    return None if row is None or row["venue"] is None else _bound(row)


def _bound(row: Record) -> BoundAccount:
    bound = BoundTo(venue=row["venue"], account_number=row["venue_account"])
    return BoundAccount(row["account"], bound, row["clock"], row["opened_on"])


async def live(db: PoolConnection, account: str, *, lock: bool = False) -> tuple[VenueRow, ...]:
    """The orders that are not over, the oldest first; with `lock` nobody takes one meanwhile."""
    return tuple(map(_row, await db.fetch(sql.lock_live if lock else sql.live, account)))


async def by_id(
    db: PoolConnection, order_ids: Collection[UUID], *, lock: bool = False
) -> Mapping[str, VenueRow]:
    """Those of the orders that are for a broker, by client id."""
    rows = await db.fetch(sql.lock_by_id if lock else sql.by_id, list(order_ids))
    return {str(row["order_id"]): _row(row) for row in rows}


async def lease(db: PoolConnection, row: VenueRow, lease_s: float) -> VenueRow | None:
    """Hold the order for so long. None where somebody else does, or it is not to be sent."""
    leased = await db.fetchrow(sql.lease, row.order_id, lease_s)
    return None if leased is None else _row(leased)


async def take(db: PoolConnection, row: VenueRow, now: datetime) -> VenueRow | None:
    """Commit that the order may be at the broker from now on. None where it is not to be sent any
    more. Postgres refuses it under a halt, and beside another order of the ticker."""
    taken = await db.fetchrow(sql.take, row.order_id, now)
    return None if taken is None else _row(taken)


async def tell(db: PoolConnection, row: VenueRow) -> None:
    """Write what is known of an order now; its lease ends."""
    values = (row.state.value, row.status, row.filled, row.words, row.broker_id)
    await db.execute(sql.tell, row.order_id, *values)


async def want_cancel(db: PoolConnection, order_ids: Collection[UUID], why: str) -> None:
    """Keep that somebody wants these orders cancelled."""
    await db.execute(sql.want_cancel, list(order_ids), why)


async def owners(db: PoolConnection, broker_ids: Collection[str]) -> Mapping[str, str]:
    """The client ids of those of the orders that are known to be the desk's, by the broker's id."""
    rows = await db.fetch(sql.owners, list(broker_ids))
    return {row["broker_id"]: row["client_id"] for row in rows}


async def live_buys(db: PoolConnection, account: str | None) -> tuple[VenueRow, ...]:
    """The buys that are not over, of one account or of all."""
    return tuple(map(_row, await db.fetch(sql.live_buys, account)))


async def entry_keys(db: PoolConnection, account: str, keys: Collection[str]) -> set[str]:
    """Those of the keys that the account's books have."""
    return {row["key"] for row in await db.fetch(sql.entry_keys, account, list(keys))}


async def split_keys(db: PoolConnection, account: str) -> set[str]:
    """The keys of all splits that were booked."""
    return {row["key"] for row in await db.fetch(sql.split_keys, account)}


async def booked(db: PoolConnection, order_ids: Collection[UUID]) -> Mapping[UUID, Decimal]:
    """The shares in the books, by order."""
    rows = await db.fetch(sql.booked, list(order_ids))
    return {row["order_id"]: row["quantity"] for row in rows}


async def rounding(db: PoolConnection, account: str) -> Decimal:
    """How far exact cash is above the books', as fills are posted in whole cents."""
    above: Decimal = await db.fetchval(sql.rounding, account)
    return above


async def unseen(
    db: PoolConnection, account: str, moves: Sequence[VenueMove]
) -> tuple[VenueMove, ...]:
    """Those of the moves that were not kept yet."""
    names = [move.move_id for move in moves]
    seen = {row["move_id"] for row in await db.fetch(sql.seen_moves, account, names)}
    return tuple(move for move in moves if move.move_id not in seen)


async def keep_moves(
    db: PoolConnection, account: str, moves: Sequence[tuple[VenueMove, bool]]
) -> None:
    """Keep what was no trade, each with whether it was booked."""
    for move, is_booked in moves:
        values = (move.move_id, move.cause.value, move.amount, move.ticker, is_booked)
        await db.execute(sql.insert_move, account, *values)


async def dividends_paid(db: PoolConnection, account: str) -> Mapping[str, list[date]]:
    """The days on which the broker was seen to have paid a dividend, by ticker."""
    paid: dict[str, list[date]] = {}
    for row in await db.fetch(sql.dividends_paid, account):
        paid.setdefault(row["ticker"], []).append(row["at"].date())
    return paid


async def keep_look(db: PoolConnection, account: str, look: Look) -> None:
    """Keep a look, and its event where the verdict is another than before."""
    last = await newest_look(db, account)
    if _unknown(look) and last is not None and _unknown(last) and look.at < last.at + AGAIN:
        return
    before = await newest_look(db, account, answered=True)
    broker = look.account
    positions = {} if broker is None else {t: f"{q:f}" for t, q in broker.positions.items()}
    kept = await db.fetchrow(
        sql.insert_look,
        account,
        look.at,
        look.verdict.value,
        look.verdict is LookVerdict.DIFFERS and blocks(look.differences),
        None if broker is None else broker.cash,
        orjson.dumps(positions).decode(),
        orjson.dumps([one.model_dump(mode="json") for one in look.differences]).decode(),
        look.note,
        look.by,
        look.reason,
    )
    told = LookVerdict.AGREES if before is None else before.verdict
    same = before is not None and before.differences == look.differences
    if look.verdict is LookVerdict.UNKNOWN or (told is look.verdict and (same or _agree(look))):
        return
    event = LookEvent(
        account=account,
        verdict=look.verdict,
        differences=look.differences,
        reason=look.reason,
        by=look.by,
    )
    kind = EventType.BOOKS_DIFFER if _differ(look) else EventType.BOOKS_AGREE
    node = ids.look_id(account, kept["number"])
    at = kept["kept_at"]
    await db.execute(
        sql.insert_order_event, at.date(), node, node, kind.value, at, event.model_dump_json()
    )


def _unknown(look: Look) -> bool:
    return look.verdict is LookVerdict.UNKNOWN


def _agree(look: Look) -> bool:
    return look.verdict is LookVerdict.AGREES


def _differ(look: Look) -> bool:
    return look.verdict is LookVerdict.DIFFERS


async def newest_look(db: PoolConnection, account: str, *, answered: bool = False) -> Look | None:
    """The newest look, or the newest that had an answer; None before the first."""
    row = await db.fetchrow(sql.newest_answer if answered else sql.newest_look, account)
    if row is None:
        return None
    found = tuple(Difference.model_validate(one) for one in orjson.loads(row["differences"]))
    return Look(row["at"], LookVerdict(row["verdict"]), found, row["note"])


async def reconciled_at(db: PoolConnection, account: str) -> datetime | None:
    """When a person reconciled the account last; None where nobody has."""
    at: datetime | None = await db.fetchval(sql.reconciled_at, account)
    return at


async def tell_alarm(
    db: PoolConnection, row: VenueRow, what: str, at: datetime, kind: EventType
) -> None:
    """Write the event of an order that a person should look at; once a kind and order."""
    order = await db.fetchrow(sql.order_of, row.order_id)
    alarm = OrderAlarm(
        account=row.account,
        order_id=row.order_id,
        asset=row.ticker,
        state=row.state,
        what=what,
    )
    await db.execute(
        sql.insert_order_event,
        order["started_on"],
        ids.alarm_id(row.order_id, kind.value, what),
        order["cycle_id"],
        kind.value,
        at,
        alarm.model_dump_json(),
    )


async def mark_announced(db: PoolConnection, row: VenueRow, at: datetime) -> None:
    """Keep that people were told of an unresolved order."""
    await db.execute(sql.told, row.order_id, at)


async def newest(
    db: PoolConnection, account: str | None, limit: int, *, open_only: bool
) -> tuple[VenueOrderView, ...]:
    """The newest orders for a broker, as people are shown them."""
    rows = await db.fetch(sql.newest, account, open_only, limit)
    return tuple(view(_row(row)) for row in rows)


async def life(db: PoolConnection, order_id: UUID, limit: int) -> tuple[OrderChange, ...]:
    """What became of an order, the oldest first."""
    return tuple(
        OrderChange(
            at=row["at"],
            state=VenueState(row["state"]),
            status=row["status"],
            filled=row["filled"],
            words=row["words"],
        )
        for row in await db.fetch(sql.life, order_id, limit)
    )


def view(row: VenueRow) -> VenueOrderView:
    """An order as people are shown it."""
    return VenueOrderView(
        order_id=row.order_id,
        account=row.account,
        asset=row.ticker,
        side=row.side.value,
        quantity=row.quantity,
        terms=row.terms,
        session=row.session,
        send_by=row.send_by,
        state=row.state,
        status=row.status,
        filled=row.filled,
        words=row.words,
        cancel=row.cancel,
        broker_id=row.broker_id or "",
        tries=row.tries,
    )


def _row(row: Record) -> VenueRow:
    return VenueRow(
        order_id=row["order_id"],
        account=row["account"],
        ticker=row["ticker"],
        side=Side(row["side"]),
        quantity=plain_shares(row["quantity"]),
        terms=VenueTerms.model_validate_json(row["terms"]),
        session=row["session"],
        send_by=row["send_by"],
        state=VenueState(row["state"]),
        tries=row["tries"],
        cancel=row["cancel"],
        broker_id=row["broker_id"],
        status=row["status"],
        filled=row["filled"],
        words=row["words"],
        sent_at=row["sent_at"],
        told_at=row["told_at"],
    )
