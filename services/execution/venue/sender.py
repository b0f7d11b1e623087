"""The one loop that sends orders to a broker, asks for cancels, and looks at the books.

An order is taken (committed as sent, with a lease longer than any answer may take), looked for by
its id, and posted where the broker has none. Whatever dies between two of these steps, the next
round begins with the look.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from decimal import Decimal

import structlog

from contracts.account import Side
from contracts.audit import EventType
from contracts.venue import VenueState
from libs.broker.venue import (
    NoSuchOrder,
    OrderVenue,
    UnclearAnswer,
    VenueOrder,
    VenueRefusal,
)
from libs.postgres.pool import Pool, PoolConnection, is_not_storable
from libs.runtime.background import event_within
from libs.runtime.errors import is_outage
from services.execution import store as accounts
from services.execution.account import Account
from services.execution.changes import Changes
from services.execution.venue import booking, store
from services.execution.venue.logic import (
    Standing,
    VenueRow,
    after_answer,
    ticket_of,
    why_not_now,
)
from services.execution.venue.looks import Clock, Looker
from services.execution.venue.store import BoundAccount, Look

LEASE_S = 90.0
"""Longer than a look by id and a post may take together."""
TICK_S = 5.0
"""Between two rounds while something is under way, and around the open."""
IDLE_S = 60.0
LOOK_EVERY = timedelta(minutes=5)
FRESH = timedelta(minutes=1)
"""A look that is older is repeated before anything is sent."""
AROUND_OPEN = timedelta(minutes=10)
UNRESOLVED = timedelta(minutes=1)
"""After it people are told of an order that nobody knows the fate of."""
DEFECT_S = 60.0

log = structlog.get_logger()


@dataclass
class OrderSender:
    """Sends what execution has committed. `wake` ends a wait early."""

    pool: Pool
    venue: OrderVenue
    looker: Looker
    clock: Clock
    lease_s: float = LEASE_S
    tick_s: float = TICK_S
    idle_s: float = IDLE_S
    defect_s: float = DEFECT_S
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    looked: dict[str, tuple[Look, Standing | None]] = field(default_factory=dict)

    async def run(self) -> None:
        """Rounds without end. An outage is waited for; a defect is told, and tried again."""
        while True:
            try:
                wait_s = await self.round()
            except Exception as error:
                if is_outage(error):
                    log.warning("execution.venue_waits", why=str(error)[:300])
                    wait_s = self.tick_s
                else:
                    log.exception("execution.venue_defect")
                    wait_s = self.defect_s
            if await event_within(self.wake, wait_s):
                self.wake.clear()

    async def round(self) -> float:
        """One round over the bound accounts; how long to wait for the next."""
        async with self.pool.acquire() as db:
            bound = await store.bound_accounts(db)
        own = [it for it in bound if self.looker.number in {"", it.bound.account_number}]
        waits = [await self.round_of(account) for account in own]
        return min(waits, default=self.idle_s)

    async def round_of(self, account: BoundAccount) -> float:
        """One round over one account; how long to wait for the next."""
        now = self.clock()
        if self.looker.quiet_until is not None and now < self.looker.quiet_until:
            return self.tick_s
        async with self.pool.acquire() as db:
            rows = await store.live(db, account.name)
        unsent = [row for row in rows if row.state in {VenueState.INTENT, VenueState.SENT}]
        wanted = [row for row in rows if row.cancel and row.state is VenueState.KNOWN]
        is_near = self._is_near_open(now)
        if not await self._is_fresh(account, now, soon=bool(unsent or wanted) or is_near):
            self.looked[account.name] = await self.looker.look(account)
        look, standing = self.looked[account.name]
        if standing is not None:
            async with self.pool.acquire() as db:
                rows = await store.live(db, account.name)
            if await self._sent(account, rows, look, standing):
                self.looked[account.name] = await self.looker.look(account)
        await self._tell_unresolved(account)
        return self.tick_s if unsent or wanted or is_near else self.idle_s

    async def _is_fresh(self, account: BoundAccount, now: datetime, *, soon: bool) -> bool:
        """Whether the newest look is new enough, by whoever made it."""
        known = self.looked.get(account.name)
        if known is None or known[1] is None:
            return False
        return now - known[0].at < (FRESH if soon else LOOK_EVERY) and not (
            self._is_near_open(now) and now - known[0].at >= timedelta(seconds=self.tick_s)
        )

    def _is_near_open(self, now: datetime) -> bool:
        """From a little before an open until a while after it: fills come then."""
        calendar = self.looker.reads.calendar
        day = now.astimezone(calendar.zone).date()
        if not calendar.is_session(day):
            return False
        return abs(now - calendar.open(day)) < AROUND_OPEN

    async def _sent(
        self, account: BoundAccount, rows: Sequence[VenueRow], look: Look, standing: Standing
    ) -> bool:
        """Take care of each order; whether something changed that a look should see."""
        changed = False
        busy = {row.ticker for row in rows if row.may_be_there}
        async with self.pool.acquire() as db:
            ledger = await accounts.load(db, account.name, account.clock)
        holdings = {} if ledger is None else ledger.books.holdings
        for row in sorted(rows, key=lambda it: it.side is Side.BUY):
            held = holdings[row.ticker].quantity if row.ticker in holdings else Decimal(0)
            verdict = look.verdict
            now, calendar = self.clock(), self.looker.reads.calendar
            if row.state is VenueState.KNOWN:
                if row.cancel:
                    changed |= await self._cancelled(row)
                continue
            why = next(why_not_now(row, standing, verdict, held, now, calendar), "")
            if row.state is VenueState.INTENT and not why and row.ticker in busy:
                why = "another order of the ticker is at the broker: one at a time"
            if not why:
                busy.add(row.ticker)
                changed |= await self._post(row)
            elif row.words != why and row.state is VenueState.INTENT:
                await self._tell(replace(row, words=why))
        return changed

    async def _post(self, row: VenueRow) -> bool:
        """Lease, look, commit that it is sent, post, record. Whether there is something to see."""
        async with self.pool.acquire() as db:
            leased = await store.lease(db, row, self.lease_s)
        if leased is None:
            return False
        found = await self.venue.find(leased.client_id)
        answer: VenueOrder | VenueRefusal | UnclearAnswer
        if isinstance(found, NoSuchOrder):
            taken = await self._take(leased)
            if taken is None:
                return False
            leased = taken
            answer = await self.venue.submit(ticket_of(taken))
        else:
            answer = found
        if isinstance(answer, UnclearAnswer) and answer.wait_s:
            self.looker.quiet_until = self.clock() + timedelta(seconds=answer.wait_s)
        after = after_answer(leased, answer)
        log.info(
            "execution.sent",
            order_id=after.client_id,
            asset=after.ticker,
            state=after.state.value,
            status=after.status,
            words=after.words,
            tries=after.tries,
        )
        await self._tell(after)
        return True

    async def _take(self, row: VenueRow) -> VenueRow | None:
        if self.clock() >= row.send_by:
            return None
        try:
            async with self.pool.acquire() as db, db.transaction():
                await db.execute(accounts.sql.hold_halts)
                return await store.take(db, row, self.clock())
        except Exception as error:
            if not is_not_storable(error):
                raise
            # The last line in Postgres: a halt came between, or another order of the ticker.
            log.warning("execution.not_sent", order_id=row.client_id, why=str(error)[:300])
            return None

    async def _tell(self, row: VenueRow) -> None:
        """Write what is known; a refused order ends with it."""
        async with self.pool.acquire() as db, db.transaction():
            account = None
            if row.state is VenueState.OVER:
                clock = await accounts.clock_of(db, row.account)
                if clock is not None:
                    account = await accounts.load(db, row.account, clock, lock=True)
            now = (await store.by_id(db, [row.order_id], lock=True))[row.client_id]
            if now.state not in {VenueState.INTENT, VenueState.SENT}:
                return  # a look was faster, and knows more
            await store.tell(db, row)
            if account is not None:
                await end(db, account, row)

    async def _cancelled(self, row: VenueRow) -> bool:
        if row.broker_id is None:
            return False
        answer = await self.venue.cancel(row.broker_id)
        if isinstance(answer, VenueRefusal | UnclearAnswer):
            words = answer.words if isinstance(answer, VenueRefusal) else answer.why
            log.warning("execution.not_cancelled", order_id=row.client_id, why=words)
        else:
            log.info("execution.cancel_requested", order_id=row.client_id)
        return True

    async def _tell_unresolved(self, account: BoundAccount) -> None:
        now = self.clock()
        async with self.pool.acquire() as db, db.transaction():
            for row in await store.live(db, account.name, lock=True):
                since = row.sent_at
                is_late = since is not None and now - since >= UNRESOLVED
                if row.state is not VenueState.SENT or row.told_at is not None or not is_late:
                    continue
                what = f"it is unknown whether the broker has it: {row.words or 'no answer'}"
                kind = EventType.ORDER_UNRESOLVED
                await store.tell_alarm(db, row, what[:400], now, kind)
                await store.mark_announced(db, row, now)
                log.error("execution.unresolved", order_id=row.client_id, why=row.words)


async def end(db: PoolConnection, account: Account, row: VenueRow) -> None:
    """End the desk's order of a row that is over or never was, under the account's lock."""
    orders = await accounts.find_orders(db, [row.order_id])
    order = orders[row.order_id]
    changes = booking.end(Changes(account), row, order)
    await accounts.write(db, replace(changes, account=account))
