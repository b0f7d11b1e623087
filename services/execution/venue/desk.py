"""The broker's side of execution, as the rest of it sees it: may a bound account decide now, and
what became of the orders that a halt or a person wants cancelled.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date

from contracts.venue import LookVerdict, VenueState
from libs.broker.alpaca import AlpacaPaper
from libs.postgres.pool import Pool, PoolConnection
from libs.runtime.errors import DeskError, Unavailable
from services.execution import store as accounts
from services.execution.account import Account
from services.execution.reads import ExecutionReads
from services.execution.venue import store
from services.execution.venue.logic import VenueRow, never, window_after
from services.execution.venue.looks import Clock, Looker
from services.execution.venue.sender import OrderSender, end
from services.execution.venue.store import BoundAccount

WAIT_S = 4.0
"""How long a halt or a cancel waits for the broker before it answers with what is known."""
POLL_S = 0.1
SHARED_KEY = "market data is read with the trading key, so services that talk to models can trade"
OWN_DATA_KEY = "make a second paper account, and name its key in DESKBUS_ALPACA_DATA_KEY_FILE"


class NoBroker(DeskError):
    """No trading key is set."""

    code = "no_broker"

    def __init__(self) -> None:
        super().__init__(
            "no trading key is set: put the key of a paper account into a file, name it in "
            "DESKBUS_ALPACA_TRADING_KEY_FILE, and start the desk again"
        )


class BrokerUnknown(Unavailable):
    """The broker's books could not be read, so the account's holdings are unknown."""

    code = "broker_unknown"


class NotLatest(DeskError):
    """A bound account decides only at the newest session, on live prices."""

    code = "not_latest"
    field = "as_of"


@dataclass
class VenueDesk:
    """The broker's side. `venue`, `looker` and `sender` are None where no trading key is set;
    `is_live` says whether the market source is live, `shares_key` whether the key of market data is
    the trading key, and `is_apart` whether execution has a process of its own. `watched_by` names
    the job that looks at an account's stops each session; empty where none does.
    """

    pool: Pool
    reads: ExecutionReads
    clock: Clock
    is_live: bool
    venue: AlpacaPaper | None = None
    looker: Looker | None = None
    sender: OrderSender | None = None
    watched_by: Callable[[str], str] = lambda _: ""
    shares_key: bool = False
    is_apart: bool = False
    wait_s: float = WAIT_S

    @property
    def parts(self) -> tuple[AlpacaPaper, Looker]:
        """The venue with what looks at it. Raises NoBroker."""
        if self.venue is None or self.looker is None:
            raise NoBroker
        return self.venue, self.looker

    def wake(self) -> None:
        """Let the loop begin its next round now."""
        if self.sender is not None:
            self.sender.wake.set()

    async def bound(self, account: str) -> BoundAccount | None:
        """What an account is bound to; None where the simulated broker fills it."""
        async with self.pool.acquire() as db:
            return await store.bound_account(db, account)

    async def require_ready(self, account: BoundAccount, as_of: date) -> None:
        """Raise unless the account may decide, or close a session, at as_of: it is the newest one,
        prices are live, and both books were compared after its close.

        Raises NotLatest, NoBroker and BrokerUnknown, which is waited for.
        """
        name, calendar = account.name, self.reads.calendar
        if not self.is_live or self.reads.market.label.synthetic:
            raise NotLatest(
                f"account {name} is bound to a broker and decides on live prices only: choose a "
                "live market source, or another account"
            )
        latest = calendar.last_closed(self.clock())
        if as_of != latest:
            raise NotLatest(
                f"account {name} is bound to a broker and decides for the newest session only, "
                f"{latest}: use another account for {as_of}"
            )
        _, looker = self.parts
        async with self.pool.acquire() as db:
            last = await store.newest_look(db, name, answered=True)
        if account.clock >= as_of and last is not None and last.at > calendar.close(as_of):
            return
        look, _ = await looker.look(account, as_of)
        if look.verdict is LookVerdict.UNKNOWN:
            raise BrokerUnknown(f"the broker's books of account {name} are unknown: {look.note}")

    def with_window(self, account: Account, as_of: date) -> Account:
        """The account with the time until which orders of as_of may be sent."""
        if account.broker is None:
            return account
        window = window_after(as_of, self.clock(), self.reads.calendar)
        return replace(account, broker=replace(account.broker, window=window))

    async def settled(self, rows: Sequence[VenueRow]) -> tuple[int, int]:
        """How many of these orders are over or were never sent, and how many are pending, once the
        broker has had its time to answer."""
        ids = [row.order_id for row in rows]
        if not ids:
            return 0, 0
        self.wake()
        pending = len(ids)
        for _ in range(max(1, int(self.wait_s / POLL_S))):
            async with self.pool.acquire() as db:
                now = await store.by_id(db, ids)
            pending = sum(row.is_live for row in now.values())
            if not pending:
                break
            await asyncio.sleep(POLL_S)
        return len(ids) - pending, pending


async def withdraw(db: PoolConnection, rows: Mapping[str, VenueRow], why: str) -> None:
    """Keep that these orders are to be cancelled; those that were never sent end with it. In the
    caller's transaction."""
    await store.want_cancel(db, [row.order_id for row in rows.values()], why)
    for name in sorted({row.account for row in rows.values()}):
        clock = await accounts.clock_of(db, name)
        account = None if clock is None else await accounts.load(db, name, clock, lock=True)
        locked = await store.by_id(db, [row.order_id for row in rows.values()], lock=True)
        for row in locked.values():
            is_unsent = row.state is VenueState.INTENT and row.tries == 0
            if account is None or row.account != name or not is_unsent:
                continue
            await store.tell(db, never(row))
            await end(db, account, never(row))
