"""Orders of a whole desk at a broker that fails, while all four that carry them are killed.

    python -m tests.chaos.orders_at_broker [--orders 1000] [--faults 300] [--seed 1] [--keep]

`deskbus up --processes` on servers of our own, with prices and orders at stand-ins of Alpaca, by a
clock that is moved from evening to open. Each evening the account's exits and then its decision run
as real cycles of the `rules` provider; the broker loses answers, takes orders late, hangs, resets,
refuses, lists fills late and twice, and its clock goes wrong; each open somebody trades by hand or
leaves an order. Beside it execution, the orchestrator, NATS and Postgres are killed with kill -9 in
turn, again and again.

No cycle may fail. At the end no order is there twice, none is lost, no fill is booked twice, the
cash of both books is equal, and each difference was found by the first comparison after it. Exits 1
where not.
"""

import argparse
import asyncio
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

import nats.errors

from contracts.cycle import CycleRequest, CycleStatus
from contracts.message import Pipeline
from contracts.subjects.subject import Answered, Asked, Subject
from contracts.subjects.venue import BIND, RECONCILE
from contracts.venue import BindAccount, LookVerdict, LookView, ReconcileAccount, Reconciled
from libs.bus.client import Client, QuestionRefused, open_client
from libs.runtime.errors import DeskError
from libs.telemetry.logging import configure_logging
from tests.chaos import books, invariants
from tests.chaos.desk import POSTGRES_GONE, QUICK
from tests.chaos.load import User, user_of
from tests.chaos.outages import Outage, OwnDesk, desk_on, own_servers
from tests.fakes.alpaca_desk import CALENDAR, AlpacaDesk, alpaca_desk
from tests.integration.execution.faults_at_broker import require_whole
from tests.open_folder import open_folder

ACCOUNT = "main"
TICKERS = tuple(f"T{chr(65 + n // 26)}{chr(65 + n % 26)}" for n in range(36))
FIRST, LAST = date(2025, 4, 1), date(2025, 11, 21)
"""Past sessions: of a real decision nothing is known before it was made."""
LIMITS = {
    "sector_pct_max": 100,
    "cluster_pct_max": 100,
    "volatility_pct_max": 100,
    "exits_veto_buys": False,
    "cooling_off_sessions": 0,
}
EXITS = """
[default.hold_period]
sessions = 1
sell_pct = 100
"""
NOISE = 0.01
"""Of prices, so that each evening looks at other tickers."""
FAULTY = 0.4
SKEWED = 0.2
"""Of the evenings, whose beginning has a broker's clock that is wrong."""
LIVES_S = (0.5, 8.0)
"""How long all four live between two kills."""
KILLS_MAX = 10_000
PATIENCE_S = 600.0
POLL_S = 0.1
ANSWER_S = 10.0
HAND = "HAND"
NOT_OF_BOUND = {
    # Fills in part are several, and come in exact prices, of which each is posted in whole cents.
    "an order is filled once, and whole",
    "cash is what fills, splits and dividends left",
    "a stop is placed on what its buy or exit left, or a higher one stays",
    # What was sold by hand was not filled, and is settled by a person.
    "what is held was filled",
}
"""Promises of `tests.chaos.books` that hold for the simulated broker alone."""
LOST = """
with decided as (
    select o.cycle_id, o.pipeline, d ->> 'asset' as ticker, d ->> 'action' as side,
           (d ->> 'quantity')::numeric as quantity
    from operations o
    cross join jsonb_array_elements(convert_from(o.result, 'utf8')::jsonb -> 'decisions') d
    where o.step in ('validate', 'validate_exits') and o.status = 'completed'
)
select d.* from decided d left join orders o using (cycle_id, pipeline, ticker, side)
where d.quantity > 0 and d.side in ('buy', 'sell') and o.order_id is null
"""
"""Trades that were decided, and of which there is no order."""


class Bearer(StrEnum):
    """What carries orders, and is killed."""

    EXECUTION = "execution"
    ORCHESTRATOR = "orchestrator"
    NATS = "nats"
    POSTGRES = "postgres"


@dataclass
class StormOutcome:
    """What became of a storm, and every promise that it broke."""

    seed: int
    orders: int = 0
    filled: int = 0
    evenings: int = 0
    drifts: int = 0
    took_s: float = 0.0
    kills: Counter[Bearer] = field(default_factory=Counter)
    faults: Mapping[str, int] = field(default_factory=dict)
    broken: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        kills = ", ".join(f"{count} {name}" for name, count in sorted(self.kills.items()))
        faults = ", ".join(f"{count} {name}" for name, count in sorted(self.faults.items()))
        return (
            f"seed {self.seed}: {self.orders} orders at the broker ({self.filled} filled) in "
            f"{self.evenings} evenings and {self.took_s:.0f} s; killed: {kills}; "
            f"{sum(self.faults.values())} faults: {faults}; {self.drifts} differences made; "
            f"{len(self.broken)} promises broken"
        )


T = TypeVar("T")


class DeskStorm:
    """One bound account on a desk of processes, from evening to open to evening."""

    def __init__(
        self, desk: OwnDesk, alpaca: AlpacaDesk, user: User, owner: Client, seed: int
    ) -> None:
        self.desk, self.alpaca, self.user, self.owner = desk, alpaca, user, owner
        self.host = alpaca.paper
        self.chance = random.Random(seed)
        self.found = StormOutcome(seed)
        self._over = asyncio.Event()

    async def blow(self, orders: int, faults: int, kills_max: int) -> StormOutcome:
        """Evenings until so many orders were for the broker; then judge."""
        began = time.monotonic()
        await self._ask(BIND, BindAccount(account=ACCOUNT, number=self.host.number))
        self.host.faults_left, self.host.fault_rate = faults, FAULTY
        self.host.late_fills, self.host.partly = 0.3, 0.3
        killing = asyncio.create_task(self._kill_in_turn(kills_max))
        session = CALENDAR.session_on_or_after(FIRST)
        try:
            while await self._count() < orders or self.found.evenings < 2:
                await self._evening(session)
                session = CALENDAR.next_session(session)
                self.alpaca.move(CALENDAR.open(session) + timedelta(minutes=1))
                await self._looked(LookVerdict.AGREES)
                await self._drift()
        finally:
            self._over.set()
            await killing
        # What is left of the last day ends, and is looked at without faults.
        self.host.faults_left = 0
        self.alpaca.move(CALENDAR.close(session) + timedelta(minutes=40))
        await self._looked(LookVerdict.AGREES)
        self.found.faults = {kind.name: n for kind, n in self.host.faults_made.items()}
        self.found.took_s = time.monotonic() - began
        await self._judge()
        return self.found

    # --- a day --------------------------------------------------------------------------------

    async def _evening(self, session: date) -> None:
        """Forty minutes after the close: exits, then the decision, then all that is for the broker
        is there or refused."""
        self.host.repeat_activities = self.chance.random() < 0.5
        if self.chance.random() < SKEWED:
            self.host.skew = timedelta(seconds=self.chance.choice((-120, 120)))
        self.alpaca.move(CALENDAR.close(session) + timedelta(minutes=40))
        for kind in ("exit", "decision"):
            request = CycleRequest(
                idempotency_key=f"{kind}-{session}",
                kind=kind,
                as_of=session,
                pipelines=(Pipeline(name="rules", account=ACCOUNT),),
                timeout_s=PATIENCE_S,
            )
            async with asyncio.timeout(PATIENCE_S):
                status = await self.user.run(request)
            if status is not CycleStatus.COMPLETED:
                self.found.broken.append(f"{kind} of {session}: {status}")
        self.host.skew = timedelta()
        async with asyncio.timeout(PATIENCE_S):
            while await self._count("and state in ('intent', 'sent')"):  # noqa: ASYNC110
                await asyncio.sleep(POLL_S)
        self.found.evenings += 1

    async def _drift(self) -> None:
        """Somebody trades by hand, or leaves an order: the next comparison must find it."""
        held = sorted(ticker for ticker, shares in self.host.positions.items() if shares > 0)
        kind = self.chance.randrange(3)
        order = None
        if kind == 0 or not held:
            order = self.host.manual_order(HAND, "buy", 1)
        elif kind == 1:
            self.host.manual_trade(self.chance.choice(held), -1)
        else:
            self.host.cash -= Decimal("12.34")
        self.found.drifts += 1
        look = await self._looked()
        if look.verdict is not LookVerdict.DIFFERS:
            self.found.broken.append(f"a difference of kind {kind} was not found: {look}")
        if order is not None:
            order["status"] = "canceled"
            await self._looked(LookVerdict.AGREES)
            return
        async with asyncio.timeout(PATIENCE_S):
            while (shown := await self._compared()).look.verdict is not LookVerdict.AGREES:
                with suppress(QuestionRefused):  # something else differs by now
                    asked = ReconcileAccount(
                        account=ACCOUNT, confirmed=shown.hash, reason="by hand"
                    )
                    await self._ask(RECONCILE, asked)

    async def _looked(self, wanted: LookVerdict | None = None) -> LookView:
        """The first comparison that has an answer, or the one that comes to what is wanted."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                look = (await self._compared()).look
                if look.verdict is wanted or (wanted is None and _is_known(look)):
                    return look
                await asyncio.sleep(POLL_S)

    async def _compared(self) -> Reconciled:
        return await self._ask(RECONCILE, ReconcileAccount(account=ACCOUNT))

    async def _ask(self, row: Subject[Asked, Answered], message: Asked) -> Answered:
        """As the desk's owner, until there is an answer."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                try:
                    return await self.owner.ask(row, message, timeout_s=ANSWER_S)
                except QuestionRefused:
                    raise
                except DeskError:
                    await asyncio.sleep(POLL_S)

    # --- the tables -----------------------------------------------------------------------------

    async def _count(self, which: str = "") -> int:
        """How many orders are or were for the broker, however often that must be asked."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                with suppress(*POSTGRES_GONE):
                    async with self.desk.database() as db:
                        statement = f"select count(*) from venue_orders where true {which}"
                        count: int = await db.fetchval(statement)
                        return count
                await asyncio.sleep(POLL_S)

    async def _judge(self) -> None:
        found = self.found
        async with self.desk.database() as db:
            rows: Sequence[Any] = await db.fetch(
                "select order_id, ticker, as_of, o.status from venue_orders join orders o"
                " using (order_id, ticker)"
            )
            found.orders = len(rows)
            found.filled = sum(row["status"] == "filled" for row in rows)
            decided = {row["order_id"]: (row["ticker"], row["as_of"]) for row in rows}
            try:
                await require_whole(db, ACCOUNT, self.host, decided)
            except AssertionError as error:
                found.broken.append(f"the books: {error}")
            for promise, broken in (await books.broken(db)).items():
                if promise not in NOT_OF_BOUND:
                    found.broken.append(f"{promise}: {len(broken)} times, e.g. {broken[:3]}")
            found.broken += [f"lost: {dict(row)}" for row in await db.fetch(LOST)]
            if left := await invariants.money_left_over(db):
                found.broken.append(f"money is held back or lost: {left}")
        if any(count > 1 for count in _accepted(self.host).values()):
            found.broken.append("an order is at the broker twice")
        found.broken += [f"a process ended: {each}" for each in self.desk.ended()]

    # --- what is killed ---------------------------------------------------------------------------

    async def _kill_in_turn(self, kills_max: int) -> None:
        """Each of the four, in another order each time round, until the storm is over."""
        victims: list[Bearer] = []
        while self.found.kills.total() < kills_max:
            with suppress(TimeoutError):
                async with asyncio.timeout(self.chance.uniform(*LIVES_S)):
                    await self._over.wait()
                return
            if not victims:
                victims = self.chance.sample(list(Bearer), len(Bearer))
            victim = victims.pop()
            match victim:
                case Bearer.NATS:
                    await self.desk.servers.nats.kill()
                    await self.desk.servers.nats.start()
                case Bearer.POSTGRES:
                    await self.desk.servers.strike(Outage.AWAY, 0.0)
                case _:
                    self.desk.send_signal((victim,), signal.SIGKILL)
            self.found.kills[victim] += 1
            await self._all_back()

    async def _all_back(self) -> None:
        """Wait until the two services answer: a desk that is always down shows nothing."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                with suppress(nats.errors.Error, OSError):
                    there = await self.owner.services()
                    if there[Bearer.EXECUTION] and there[Bearer.ORCHESTRATOR]:
                        return
                await asyncio.sleep(POLL_S)


def _is_known(look: LookView) -> bool:
    return look.verdict is not LookVerdict.UNKNOWN


def _accepted(host: Any) -> Counter[str]:
    return Counter(order["client_order_id"] for order in host.orders.values())


async def storm(
    folder: Path, *, orders: int, faults: int, seed: int, kills_max: int = KILLS_MAX
) -> StormOutcome:
    """Bring stand-ins, servers and desk up below `folder`, and let it blow."""
    (folder / "exit_signals.toml").write_text(EXITS)
    start = datetime.combine(FIRST, datetime.min.time(), UTC) + timedelta(hours=18)
    given = {"seed": seed, "hang_s": 1.5, "late_s": 0.3}
    with alpaca_desk(folder, start, LAST, TICKERS, noise=NOISE, **given) as alpaca:
        settings = {**QUICK, **alpaca.settings, "limits": LIMITS}
        environment = {**alpaca.environment, "QUICK_BROKER": "1.0"}
        async with (
            own_servers(folder) as servers,
            desk_on(servers, folder, settings, processes=True, environment=environment) as desk,
            user_of(desk.settings) as user,
            open_client(desk.settings.nats_address, desk.settings.secrets_path) as owner,
        ):
            return await DeskStorm(desk, alpaca, user, owner, seed).blow(orders, faults, kills_max)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run and tell."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.chaos.orders_at_broker", description=__doc__
    )
    parser.add_argument("--orders", type=int, default=1_000)
    parser.add_argument("--faults", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", action="store_true")
    given = parser.parse_args(arguments)
    configure_logging("error")
    with open_folder("deskbus-broker-", keep=given.keep) as folder:
        found = asyncio.run(
            storm(folder, orders=given.orders, faults=given.faults, seed=given.seed)
        )
    sys.stdout.write(f"{found}\n")
    for each in found.broken:
        sys.stderr.write(f"BROKEN: {each}\n")
    sys.exit(1 if found.broken else 0)


if __name__ == "__main__":
    main()
