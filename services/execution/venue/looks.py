"""Looks at a broker's books: read all of them, book what is new, compare.

HTTP comes before the transaction, so that no lock waits for the network. What was read stays true:
fills are booked by the broker's own ids, so that a look that is repeated books nothing twice.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from uuid import UUID

import structlog

from contracts.audit import EventType
from contracts.venue import Difference, DifferenceKind, LookVerdict
from libs.broker.venue import (
    Activities,
    NoSuchOrder,
    OrderVenue,
    UnclearAnswer,
    VenueFill,
    VenueOrder,
)
from libs.market.errors import MarketError
from libs.market.source import CorporateAction
from libs.postgres.pool import Pool, PoolConnection
from services.execution import books as ledger
from services.execution import store as accounts
from services.execution.account import Account
from services.execution.reads import ExecutionReads
from services.execution.venue import booking, store
from services.execution.venue.booking import Booked
from services.execution.venue.logic import (
    Standing,
    VenueRow,
    blocks,
    differences,
    is_never,
    never,
    seen,
)
from services.execution.venue.store import BoundAccount, Look

BACK = timedelta(days=1)
"""Activities are read from so long before the last look on: some are listed late."""
ACTIONS_BACK = timedelta(days=30)
SETTLE_S = 10.0
"""Between the two reads that must agree on a difference."""
ROUNDS_MAX = 4
OWNERS_MAX = 20_000
"""Orders whose client id is remembered."""

log = structlog.get_logger()

Clock = Callable[[], datetime]


@dataclass
class Looker:
    """Reads a broker's books and compares them with the desk's. `settle_s` lies between two reads
    of a difference; `sleep` waits it. `number` is the account that the key was last seen to be of,
    empty before; `quiet_until` is how long the broker asks to be left alone.
    """

    pool: Pool
    venue: OrderVenue
    reads: ExecutionReads
    clock: Clock
    settle_s: float = SETTLE_S
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    quiet_until: datetime | None = None
    number: str = ""
    _owners: dict[str, str] = field(default_factory=dict)
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def look(
        self, account: BoundAccount, through: date | None = None
    ) -> tuple[Look, Standing | None]:
        """Compare the books now, and keep what was found. With `through` splits and dividends up to
        that session are compared too. Two reads must agree on a difference, without a fill of the
        desk's between them. The standing is that of the last read; None where there was no answer.
        """
        async with self._lock:
            began = self.clock()
            before: tuple[Difference, ...] | None = None
            note = "the books keep changing"
            for _ in range(ROUNDS_MAX):
                standing = await self._read(account)
                if isinstance(standing, UnclearAnswer):
                    note = standing.why
                    self._be_quiet(standing)
                    break
                found, is_new = await self._booked(account, standing, through)
                is_settled = not blocks(found) or (found == before and not is_new)
                if is_settled:
                    verdict = LookVerdict.DIFFERS if blocks(found) else LookVerdict.AGREES
                    look = Look(began, verdict, found, account=standing.account)
                    return await self._kept(account, look), standing
                before = found
                await self.sleep(self.settle_s)
            return await self._kept(account, Look(began, LookVerdict.UNKNOWN, note=note)), None

    def _be_quiet(self, answer: UnclearAnswer) -> None:
        if answer.wait_s:
            self.quiet_until = self.clock() + timedelta(seconds=answer.wait_s)

    async def _kept(self, account: BoundAccount, look: Look) -> Look:
        async with self.pool.acquire() as db, db.transaction():
            await store.keep_look(db, account.name, look)
        log.info(
            "execution.looked",
            account=account.name,
            verdict=look.verdict.value,
            differences=len(look.differences),
            note=look.note,
        )
        return look

    # --- reading --------------------------------------------------------------------------------

    async def _read(self, account: BoundAccount) -> Standing | UnclearAnswer:
        async with self.pool.acquire() as db:
            rows = await store.live(db, account.name)
            last = await store.newest_look(db, account.name, answered=True)
        at = self.clock()
        broker = await self.venue.account()
        if isinstance(broker, UnclearAnswer):
            return broker
        bound, self.number = account.bound, broker.number
        if (self.venue.name, broker.number) != (bound.venue, bound.account_number):
            is_of = f"{broker.number} of {self.venue.name}"
            bound_to = f"{bound.account_number} of {bound.venue}"
            return UnclearAnswer(f"the key is of account {is_of}, and {bound_to} is bound")
        found = await self.venue.open_orders()
        if isinstance(found, UnclearAnswer):
            return found
        since = None if last is None else last.at - BACK
        happened = await self.venue.activities(since)
        if isinstance(happened, UnclearAnswer):
            return happened
        return await self._with_orders(Standing(at, broker, found), happened, rows)

    async def _with_orders(
        self, standing: Standing, happened: Activities, rows: Sequence[VenueRow]
    ) -> Standing | UnclearAnswer:
        """With each live order of the desk as the broker has it, and whose orders fills are of."""
        orders: dict[str, VenueOrder | NoSuchOrder] = {
            order.client_id: order for order in standing.open_orders
        }
        for row in rows:
            if row.client_id in orders or not row.may_be_there:
                continue
            found = await self.venue.find(row.client_id)
            if isinstance(found, UnclearAnswer):
                return found
            orders[row.client_id] = found
        for order in orders.values():
            if isinstance(order, VenueOrder):
                self._remember(order)
        strange = {fill.broker_id for fill in happened.fills} - self._owners.keys()
        if strange:
            async with self.pool.acquire() as db:
                self._owners |= await store.owners(db, strange)
        for fill in happened.fills:
            if fill.broker_id in self._owners:
                continue
            found = await self.venue.order(fill.broker_id)
            if isinstance(found, UnclearAnswer):
                return found
            if isinstance(found, VenueOrder):
                self._remember(found)
        owners = {
            fill.broker_id: self._owners[fill.broker_id]
            for fill in happened.fills
            if fill.broker_id in self._owners
        }
        return replace(
            standing, orders=orders, fills=happened.fills, moves=happened.moves, owners=owners
        )

    def _remember(self, order: VenueOrder) -> None:
        if len(self._owners) >= OWNERS_MAX:
            self._owners.clear()
        self._owners[order.broker_id] = order.client_id

    # --- booking and comparing --------------------------------------------------------------------

    async def _booked(
        self, account: BoundAccount, standing: Standing, through: date | None
    ) -> tuple[tuple[Difference, ...], bool]:
        """What differs once everything is booked, and whether something was booked now."""
        actions = await self._actions(account, standing, through)
        async with self.pool.acquire() as db, db.transaction():
            ledger_now = await accounts.load(db, account.name, account.clock, lock=True)
            if ledger_now is None:
                raise RuntimeError(f"account {account.name} is gone")
            rows = await self._rows(db, account, standing)
            booked, splits = await self._book(db, ledger_now, rows, standing, actions)
            changes = booked.changes
            await accounts.write(db, replace(changes, account=ledger_now))
            for client_id, row in booked.rows.items():
                if row != rows[client_id]:
                    await store.tell(db, row)
            await store.keep_moves(db, account.name, booked.moves)
            for order_id, what in booked.alarms.items():
                row = booked.rows[str(order_id)]
                await store.tell_alarm(db, row, what, self.clock(), EventType.LATE_FILL)
            done = await store.booked(db, [row.order_id for row in booked.rows.values()])
            above = await store.rounding(db, account.name)
        for order_id, what in booked.alarms.items():
            log.error("execution.late_fill", order_id=str(order_id), what=what)
        books = changes.account.books
        found = differences(books, above, booked.rows, done, standing, splits)
        return found, booked.is_new

    async def _rows(
        self, db: PoolConnection, account: BoundAccount, standing: Standing
    ) -> Mapping[str, VenueRow]:
        """The desk's orders that are live, or that the broker names, by client id."""
        live = {row.client_id: row for row in await store.live(db, account.name, lock=True)}
        named = {*standing.owners.values(), *standing.orders} - live.keys()
        others = await store.by_id(db, [id_ for id_ in map(_uuid, named) if id_])
        return {**live, **{k: row for k, row in others.items() if row.account == account.name}}

    async def _book(
        self,
        db: PoolConnection,
        account: Account,
        rows: Mapping[str, VenueRow],
        standing: Standing,
        actions: Mapping[str, Sequence[CorporateAction]],
    ) -> tuple[Booked, tuple[Difference, ...]]:
        after = {
            client_id: seen(row, found)
            if isinstance(found := standing.orders.get(client_id), VenueOrder)
            else row
            for client_id, row in rows.items()
        }
        over = {
            client_id
            for client_id, found in standing.orders.items()
            if isinstance(found, VenueOrder) and found.is_over
        }
        fills = await self._new_fills(db, account.name, after, standing)
        ids = [row.order_id for row in after.values()]
        orders = await accounts.find_orders(db, ids)
        done = await store.booked(db, ids)
        moves = await store.unseen(db, account.name, standing.moves)
        calendar = self.reads.calendar
        booked = booking.book(account, after, orders, done, fills, moves, over, calendar)
        changes, kept = booked.changes, dict(booked.rows)
        for client_id, row in booked.rows.items():
            if row.is_live and is_never(row, standing, calendar):
                kept[client_id] = never(row)
                changes = booking.end(changes, kept[client_id], orders[row.order_id])
        there = standing.account.positions
        posted = await store.split_keys(db, account.name)
        changes, splits = booking.with_splits(changes, actions, posted, there)
        paid = await store.dividends_paid(db, account.name)
        told = (*splits, *booking.unpaid(changes.account.books, actions, paid))
        return replace(booked, changes=changes, rows=kept), told

    async def _new_fills(
        self,
        db: PoolConnection,
        account: str,
        rows: Mapping[str, VenueRow],
        standing: Standing,
    ) -> list[tuple[VenueRow, VenueFill]]:
        """The fills of the desk's own orders that are not in the books yet. Others are nobody's
        here: they show as differences."""
        own = [
            (rows[standing.owners[fill.broker_id]], fill)
            for fill in standing.fills
            if standing.owners.get(fill.broker_id) in rows
        ]
        keys = [ledger.broker_fill_key(fill.fill_id) for _, fill in own]
        there = await store.entry_keys(db, account, keys)
        return [it for it, key in zip(own, keys, strict=True) if key not in there]

    async def _actions(
        self, account: BoundAccount, standing: Standing, through: date | None
    ) -> Mapping[str, Sequence[CorporateAction]]:
        """The splits and dividends of the market source that matter now: with `through` those of
        everything held, else of the tickers whose shares differ or had a split that is open."""
        async with self.pool.acquire() as db:
            held = await accounts.load(db, account.name, account.clock)
            last = await store.newest_look(db, account.name, answered=True)
            decided = await store.reconciled_at(db, account.name)
        if held is None:
            return {}
        open_splits = {
            one.about: one
            for one in (last.differences if last else ())
            if one.kind in {DifferenceKind.SPLIT, DifferenceKind.DIVIDEND}
        }
        there = standing.account.positions
        tickers = {t for t, lot in held.books.holdings.items() if lot.quantity > 0}
        if through is None:
            differ = {t for t in tickers if held.books.quantity(t) != there.get(t, Decimal(0))}
            tickers &= differ | open_splits.keys()
            through = self.reads.calendar.session_on_or_before(
                self.clock().astimezone(self.reads.calendar.zone).date()
            )
        known: dict[str, Sequence[CorporateAction]] = {}
        for ticker in sorted(tickers):
            opened = held.books.holdings[ticker].opened_on or account.opened_on
            after = max(account.clock - ACTIONS_BACK, opened)
            if decided is not None:
                after = max(after, decided.date())
            try:
                known[ticker] = await self.reads.fills.actions(ticker, after, through)
            except MarketError as error:
                log.warning("execution.no_actions", ticker=ticker, why=error.message)
        return known


def _uuid(text: str) -> UUID | None:
    """A client id as the desk writes them; None for anybody else's."""
    try:
        return UUID(text) if str(UUID(text)) == text else None
    except ValueError:
        return None
