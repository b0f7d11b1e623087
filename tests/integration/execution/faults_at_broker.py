"""Evenings and opens at a broker that fails, with execution and Postgres killed: what must hold.

Every evening orders for as many tickers as are asked for are decided; a process sends them, and is
killed again and again; the broker loses answers, accepts orders late, hangs, resets and refuses. At
the end both books are compared with what the stand-in itself has on record.
"""

import asyncio
import json
import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, Protocol
from uuid import UUID

from pydantic import SecretStr

from contracts.venue import LookVerdict, ReconcileAccount
from libs.broker.alpaca import AlpacaPaper
from libs.runtime.errors import DeskError, Unavailable
from libs.runtime.key_pair import KeyPair
from services.execution.venue.binding import reconcile_account
from services.execution.venue.looks import Looker
from services.execution.venue.store import Look, sql
from tests.fakes.alpaca_trading import KEY_ID, SECRET, PaperHost
from tests.integration.execution.at_broker import BoundDesk
from tests.integration.execution.sending import ANSWER_S, clock_in
from tests.integration.own_servers import OwnServers

D = Decimal
SHARES = 10
EVENING_S_MAX = 120.0
POLL_S = 0.05
FAULTY = 0.4


@dataclass
class Found:
    """What became of a storm."""

    orders: int = 0
    faults: int = 0
    kills: int = 0
    outages: int = 0
    drifts: int = 0
    missed_drifts: int = 0
    faults_by_kind: dict[str, int] = field(default_factory=dict)


class Storm:
    """One account at one broker through as many evenings as the orders take."""

    def __init__(
        self,
        desk: BoundDesk,
        servers: OwnServers,
        dsn: str,
        folder: Path,
        *,
        seed: int,
        tickers: int,
        kill_postgres: bool = False,
    ) -> None:
        self.desk, self.servers, self.dsn = desk, servers, dsn
        self.host = desk.host
        self.chance = random.Random(seed)
        self.tickers = [f"T{chr(65 + n // 26)}{chr(65 + n % 26)}" for n in range(tickers)]
        self.kill_postgres = kill_postgres
        self.file = folder / "clock.json"
        self.found = Found()
        self.decided: dict[UUID, tuple[str, date]] = {}
        self.stopped = asyncio.Event()
        self.host.runs = True
        self.host.hang_s, self.host.late_s = 1.0, 0.3
        self._clock()

    def _clock(self) -> None:
        text = json.dumps({"now": self.host.time().isoformat(), "at": time.time()})
        new = self.file.with_suffix(".new")
        new.write_text(text)
        new.replace(self.file)

    def _move(self, to: object) -> None:
        self.host.move(to)  # type: ignore[arg-type]
        self._clock()

    async def blow(self, orders: int, faults: int) -> Found:
        """Evenings until so many orders were decided."""
        self.host.faults_left, self.host.fault_rate = faults, FAULTY
        killer = asyncio.create_task(self._killed_again_and_again())
        calendar = self.host.calendar
        try:
            while len(self.decided) < orders:
                as_of = calendar.last_closed(self.host.time())
                await self._evening(as_of)
                session = calendar.next_session(as_of)
                self._move(calendar.open(session) + timedelta(minutes=1))
                await self._drift()
                self._move(calendar.close(session) + timedelta(minutes=40))
            # What is left is looked at without faults.
            self.host.faults_left = 0
            await self._looked()
        finally:
            self.stopped.set()
            await killer
        self.found.orders = len(self.decided)
        self.found.faults = sum(self.host.faults_made.values())
        self.found.faults_by_kind = {
            kind.name: count for kind, count in self.host.faults_made.items()
        }
        return self.found

    async def _evening(self, as_of: date) -> None:
        """Decide on every ticker, and wait until nothing is undecided or the time is up."""
        await self._insist(lambda: self.desk.open(as_of))
        held = await self._held()
        legs = {t: -int(held[t]) if held.get(t) else SHARES for t in self.tickers}
        command = self.desk.decided(legs, as_of)
        result = await self._insist(lambda: self.desk.execute(command))
        for order in result.orders:
            if order.status.value == "working":
                self.decided[order.order_id] = (order.asset, as_of)
        until = time.monotonic() + EVENING_S_MAX
        for _ in range(int(EVENING_S_MAX / POLL_S)):
            if not await self._undecided() or time.monotonic() > until:
                break
            await asyncio.sleep(POLL_S)
        # Where NATS or the orchestrator was killed, the same command comes again.
        again = await self._insist(lambda: self.desk.execute(command))
        placed = [order.order_id for order in result.orders]
        assert [order.order_id for order in again.orders] == placed

    async def _insist(self, act):  # type: ignore[no-untyped-def]
        """Try again as the bus does: during an outage, and while the broker is unknown."""
        until = time.monotonic() + EVENING_S_MAX
        while True:
            try:
                return await act()
            except (Unavailable, OSError) as error:
                self.found.outages += 1
                if time.monotonic() > until:
                    raise AssertionError(f"still {error}") from error
                await asyncio.sleep(0.1)

    async def _undecided(self) -> int:
        async def count() -> int:
            number: int = await self.desk.pool.fetchval(
                "select count(*) from venue_orders where account = $1"
                " and state in ('intent', 'sent')",
                self.desk.account,
            )
            return number

        found: int = await self._insist(count)
        return found

    async def _held(self) -> dict[str, Decimal]:
        async def read() -> dict[str, Decimal]:
            rows = await self.desk.pool.fetch(
                "select ticker, quantity from balances where account = $1 and book = 'position'",
                self.desk.account,
            )
            return {row["ticker"]: row["quantity"] for row in rows}

        held: dict[str, Decimal] = await self._insist(read)
        return held

    async def _looked(self) -> Look:
        """A look of another execution, until there is an answer."""
        venue = AlpacaPaper(KeyPair(SecretStr(KEY_ID), SecretStr(SECRET)), self.host.url, ANSWER_S)
        clock = clock_in(self.file)
        looker = Looker(self.desk.pool, venue, self.desk.trading.reads, clock, settle_s=0.05)
        try:
            for _ in range(200):
                look, _ = await self._insist(self._once(looker))
                if look.verdict is not LookVerdict.UNKNOWN:
                    return look  # type: ignore[no-any-return]
                await asyncio.sleep(0.05)
        finally:
            await venue.close()
        raise AssertionError(f"no answer: {look.note}")

    def _once(self, looker: Looker):  # type: ignore[no-untyped-def]
        async def once():  # type: ignore[no-untyped-def]
            return await looker.look(await self.desk.bound())

        return once

    async def _drift(self) -> None:
        """Once an open somebody trades by hand, or leaves an order: the next look must find it."""
        assert (await self._looked()).verdict is LookVerdict.AGREES
        held = {t: q for t, q in self.host.positions.items() if q > 0}
        kind = self.chance.randrange(3)
        order = None
        if kind == 0 or not held:
            order = self.host.manual_order("HAND", "buy", 1)
        elif kind == 1:
            self.host.manual_trade(self.chance.choice(sorted(held)), -1)
        else:
            self.host.cash -= D("12.34")
        self.found.drifts += 1
        look = await self._looked()
        self.found.missed_drifts += look.verdict is not LookVerdict.DIFFERS
        if order is not None:
            order["status"] = "canceled"
        else:
            await self._reconciled()
        assert (await self._looked()).verdict is LookVerdict.AGREES

    async def _reconciled(self) -> None:
        account = self.desk.account
        for _ in range(200):
            try:
                asked = ReconcileAccount(account=account)
                shown = await reconcile_account("cli", asked, desk=self.desk.venue_desk)
                if shown.hash is None:
                    if shown.look.verdict is LookVerdict.AGREES:
                        return
                    continue
                asked = ReconcileAccount(account=account, confirmed=shown.hash, reason="a drift")
                await reconcile_account("cli", asked, desk=self.desk.venue_desk)
            except (DeskError, OSError):
                await asyncio.sleep(0.05)
        raise AssertionError("the books could not be reconciled")

    async def _killed_again_and_again(self) -> None:
        while not self.stopped.is_set():
            child = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "tests.integration.execution.sending",
                self.dsn,
                self.host.url,
                str(self.file),
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                env={**os.environ, "DESKBUS_LOG_LEVEL": "error"},
            )
            assert child.stdout is not None
            first = await child.stdout.readline()
            life_s = 0.5 + self.chance.random() * 4
            try:
                async with asyncio.timeout(life_s):
                    await self.stopped.wait()
            except TimeoutError:
                self.found.kills += first != b""
            if child.returncode is None:
                child.send_signal(signal.SIGKILL)
            await child.wait()
            if self.kill_postgres and self.chance.random() < 0.15 and not self.stopped.is_set():
                self._kill_postgres()

    def _kill_postgres(self) -> None:
        file = self.servers.data_dir / "servers" / "postgres" / "cluster" / "postmaster.pid"
        try:
            os.kill(int(file.read_text().split()[0]), signal.SIGKILL)
        except (OSError, ValueError):
            return  # it is being started again
        self.found.kills += 1


class Reads(Protocol):
    """A pool, or a connection."""

    async def fetch(self, statement: str, *given: object) -> Any:
        """Rows."""

    async def fetchval(self, statement: str, *given: object) -> Any:
        """The first value."""


async def require_whole(
    db: Reads, account: str, host: PaperHost, decided: Mapping[UUID, tuple[str, date]]
) -> None:
    """0 duplicates, 0 lost, 0 double fills, cash equal. `decided` are ticker and session of each
    order that was for the broker."""
    rows = await db.fetch("select * from venue_orders where account = $1", account)
    names = {str(order_id) for order_id in decided}
    assert {str(row["order_id"]) for row in rows} == names, (rows, names)
    own = {o["client_order_id"]: o for o in host.orders.values() if o["symbol"] != "HAND"}
    by_hand = [o for name, o in own.items() if name not in names and o["filled_qty"] == "1"]
    strangers = [o for name, o in own.items() if name not in names and o not in by_hand]
    assert strangers == [], "orders at the broker that nobody decided"
    # One order at most of each ticker and session is at the broker: none was placed twice.
    placed = Counter(decided[UUID(name)] for name in own if name in names)
    assert max(placed.values(), default=0) <= 1, placed
    for row in rows:
        there = own.get(str(row["order_id"]))
        if there is None:
            assert row["state"] in {"never", "over"}, dict(row)
            assert row["state"] == "never" or row["status"] == "rejected", dict(row)
        else:
            assert row["state"] == "over", dict(row)
            assert row["filled"] == D(there["filled_qty"]), dict(row)
    fills = {
        a.row["id"]: a.row
        for a in host.listed
        if a.row["activity_type"] == "FILL" and _client_of(host, a.row) in names
    }
    booked = await db.fetch(
        "select e.key, f.quantity, f.price from entries e join fills f using (entry_id)"
        " where e.account = $1",
        account,
    )
    keys, theirs = (
        Counter(it) for it in ([row["key"] for row in booked], map("fill/{}".format, fills))
    )
    assert keys == theirs, f"booked without a fill: {keys - theirs}; not booked: {theirs - keys}"
    held = await db.fetch(
        "select ticker, quantity from balances where account = $1 and book = 'position'", account
    )
    there = {t: q for t, q in host.positions.items() if q}
    ours = {row["ticker"]: row["quantity"] for row in held if row["quantity"]}
    assert ours == there, f"held in the books {ours}, at the broker {there}"
    cash = await db.fetchval(
        "select amount from balances where account = $1 and book = 'cash'", account
    )
    # The broker counts with every digit, the books post each fill in whole cents.
    exact = cash + await db.fetchval(sql.rounding, account)
    assert abs(exact - host.cash) <= D("0.01"), f"cash {cash}, exactly {exact}, there {host.cash}"


def _client_of(host: PaperHost, row: dict[str, str]) -> str:
    return str(host.orders[row["order_id"]]["client_order_id"])
