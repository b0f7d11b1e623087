"""Real decision and exit cycles while everything is killed, frozen, wiped, full and away.

    python -m tests.chaos.real_cycles --cycles 1000 [--seed 7] [--one-process] [--keep]

The shipped services, each a process of `deskbus up --processes`, on servers of our own; with
`--one-process` all in the one of `deskbus up`, so that who kills a service kills all. Several
accounts, each trading its own stretch of the bundled prices by the `rules` provider, a week apart:
what one session buys the exits of the next ones sell, and stops wait on the rest.
No cycle may fail, the books must hold all that tests.chaos.books names, and exits must have sold:
otherwise the books of sales held nothing. Exits 1 where not.
"""

import argparse
import asyncio
import random
import signal
import sys
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, ExitStack, suppress
from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Generic, Protocol, TypeVar

import asyncpg

from contracts.cycle import CycleRequest, CycleStatus
from contracts.message import Pipeline
from contracts.subjects.subject import BACKBONE, SERVICES
from libs.market.calendar import exchange_calendar
from libs.telemetry.logging import configure_logging
from tests.chaos import books, faults, invariants
from tests.chaos.desk import QUICK
from tests.chaos.load import User, user_of
from tests.chaos.outages import NATS_STORE, Outage, OwnDesk, desk_on, own_servers
from tests.open_folder import open_folder
from tests.small_disk import Disk, NoSmallDisk, small_disk

ACCOUNTS = 9
FIRST, LAST = date(2007, 6, 1), date(2013, 2, 28)
SESSIONS_APART = 5
"""Between two looks of an account: longer than EXITS hold a position, and prices reach stops."""
SESSIONS_BETWEEN_ACCOUNTS = 120
"""So that some trade the fall of 2008, and others what came after."""
CYCLES_MAX = 1_700
"""What the sessions are enough for."""
RIVALS = 0.25
"""Of the exits, that two ask for at once."""
REPEATED = 0.1
"""Of the requests, that are made twice."""
DISK_BYTES = 256 * 1024 * 1024
"""Of NATS: room for what 1,000 cycles store."""
CYCLES_A_FAULT = 20
FROZEN_S = (0.3, 3.0)
"""Up to longer than a lease."""
OUTAGE_S_MIN, OUTAGE_S_MAX = 1.0, 6.0
STALL_S_MAX = 180.0
RELAY_TIMEOUT_S = 60.0
SETTINGS: Mapping[str, object] = {**QUICK, "orchestrator_epochs_max": 50}
EXITS = """
[default]
stop_pct = 5
[default.hold_period]
sessions = 3
sell_pct = 50
"""


OWED = ("buy filled", "exit filled", "stop waiting")
"""Orders that a run must have: books without them hold whatever the desk does."""


class Kind(StrEnum):
    """What is done besides the outages of Postgres."""

    KILL = "kill a service"
    KILL_THREE = "kill three services"
    FREEZE = "freeze a service"
    NATS = "kill NATS"
    WIPE = "kill NATS, store wiped"
    FULL = "NATS refuses to store"
    POSTGRES = "kill Postgres"
    EVERYTHING = "kill everything"


@dataclass(frozen=True)
class Fault:
    """One thing to do, `lasts_s` long where it lasts."""

    kind: Kind | Outage
    targets: tuple[str, ...] = ()
    lasts_s: float = 0.0


@dataclass
class Outcome:
    """What a run did, and every promise that it found broken."""

    seed: int
    cycles: int = 0
    took_s: float = 0.0
    faults: Counter[str] = field(default_factory=Counter)
    left_out: str = ""
    """Why NATS was not made to refuse; empty where it was."""
    kinds: Counter[str] = field(default_factory=Counter)
    orders: Counter[str] = field(default_factory=Counter)
    failed: int = 0
    stood_s: float = 0.0
    broken: list[str] = field(default_factory=list)


def schedule(
    seed: int, count: int, *, full: bool = True, outage_s_max: float = OUTAGE_S_MAX
) -> list[Fault]:
    """Every kind once in a seeded order, then at random; at least one of each. Not `full`: NATS is
    not made to refuse."""
    rng = random.Random(seed)
    kinds: list[Kind | Outage] = [*Kind, *Outage]
    if not full:
        kinds.remove(Kind.FULL)
    rng.shuffle(kinds)
    kinds += rng.choices(list(kinds), k=max(count - len(kinds), 0))
    return [_fault(rng, kind, outage_s_max) for kind in kinds]


def _fault(rng: random.Random, kind: Kind | Outage, outage_s_max: float) -> Fault:
    names = (*BACKBONE, *SERVICES)
    count = {Kind.KILL: 1, Kind.FREEZE: 1, Kind.KILL_THREE: 3}.get(kind, 0)
    span = FROZEN_S if kind is Kind.FREEZE else (OUTAGE_S_MIN, outage_s_max)
    return Fault(kind, tuple(rng.sample(names, count)), round(rng.uniform(*span), 2))


class Stalled(Exception):
    """For so long no cycle came to its end."""


class RealDesk(Protocol):
    """A desk of the shipped services."""

    def database(self) -> AbstractAsyncContextManager["asyncpg.Connection[asyncpg.Record]"]:
        """A connection that may read all tables."""

    def ended(self) -> list[str]:
        """Its processes that ended or failed, with why."""


FaultT = TypeVar("FaultT", Fault, faults.Fault)


class Trading(ABC, Generic[FaultT]):
    """Accounts that trade on a desk that is up, and what happens to it meanwhile."""

    def __init__(self, desk: RealDesk, user: User, seed: int) -> None:
        self._desk = desk
        self._user = user
        self._ended = 0
        self._cycles = 0
        self._begins_below = ACCOUNTS
        """The number of the first cycle that waits, so that some are left for each fault."""
        self._news = asyncio.Condition()
        self.outcome = Outcome(seed)

    @abstractmethod
    async def strike(self, fault: FaultT) -> None:
        """Do it, and undo it where it lasts."""

    async def chaos(self, cycles: int, struck: Sequence[FaultT]) -> None:
        """`cycles` cycles and the exits' rivals, with the faults spread over them: each fault meets
        cycles under way, and others begin after it."""
        began = time.monotonic()
        self._cycles = cycles
        shares = [cycles * n // len(struck) for n in range(len(struck) + 1)]
        async with asyncio.TaskGroup() as trading:
            for number in range(ACCOUNTS):
                trading.create_task(self._trade(number, range(number, cycles, ACCOUNTS)))
            for fault, (first, after) in zip(struck, pairwise(shares), strict=True):
                await self._until(first)
                async with self._news:
                    self._begins_below = after + ACCOUNTS
                    self._news.notify_all()
                await self.strike(fault)
                self.outcome.faults[fault.kind] += 1
            await self._until(cycles)
        self.outcome.cycles = self.outcome.kinds.total()
        self.outcome.took_s = time.monotonic() - began

    async def _trade(self, account: int, numbers: Sequence[int]) -> None:
        """An account's cycles, one after the other: at each session exits, then decisions."""
        rng = random.Random(f"{self.outcome.seed}-{account}")
        sessions = exchange_calendar().sessions(FIRST, LAST)[account * SESSIONS_BETWEEN_ACCOUNTS :]
        for turn, number in enumerate(numbers):
            async with self._news:
                await self._news.wait_for(partial(self._may_begin, number))
            request = CycleRequest(
                idempotency_key=f"{self._user.run_name}-{number}",
                kind="exit" if turn % 2 else "decision",
                as_of=sessions[SESSIONS_APART * ((turn + 1) // 2)],
                pipelines=(Pipeline(name="rules", account=f"{self._user.run_name}-{account}"),),
                timeout_s=600.0,
            )
            # Whoever is not sure asks again, at once too.
            asked = [request] * (1 + (rng.random() < REPEATED))
            if request.kind == "exit" and rng.random() < RIVALS:
                rival = request.model_copy(
                    update={"idempotency_key": f"{request.idempotency_key}-rival"}
                )
                asked.append(rival)
            statuses = await asyncio.gather(*map(self._user.run, asked))
            self.outcome.kinds[request.kind] += len({each.idempotency_key for each in asked})
            if set(statuses) != {CycleStatus.COMPLETED}:
                self.outcome.broken.append(f"{request.kind} {request.as_of}: {statuses}")
            async with self._news:
                self._ended += 1
                self._news.notify_all()

    def _may_begin(self, number: int) -> bool:
        return number < self._begins_below

    async def _until(self, count: int) -> None:
        """Wait until so many cycles have ended. Raises `Stalled`."""
        while (seen := self._ended) < count:
            try:
                async with asyncio.timeout(STALL_S_MAX), self._news:
                    while self._ended == seen:
                        await self._news.wait()
            except TimeoutError as error:
                raise Stalled(f"{seen} of {count} cycles ended; {await self._open()}") from error

    async def _open(self) -> str:
        """What is under way, and what the desk's clock and processes do."""
        async with self._desk.database() as db:
            rows = await db.fetch(
                "select c.cycle_id, o.step, o.status, o.service, o.attempt, o.epoch, o.sends,"
                " now() - o.created_at as age, o.due_at - now() as due"
                " from cycles c left join operations o"
                " on o.cycle_id = c.cycle_id and o.status in ('pending', 'running')"
                " where c.status = 'running'"
            )
            outages = await db.fetch("select * from outages order by since_at desc limit 3")
        under_way = "; ".join(", ".join(map(str, row.values())) for row in rows)
        last = "; ".join(", ".join(map(str, row.values())) for row in outages)
        return (
            f"under way: {under_way or 'nothing'}; last outages: {last}; "
            f"faults: {dict(self.outcome.faults)}; ended processes: {self._desk.ended()}"
        )

    async def judge(self) -> Outcome:
        """Count from the tables."""
        outcome = self.outcome
        async with self._desk.database() as db:
            async with asyncio.timeout(RELAY_TIMEOUT_S):
                while await invariants.relay_lag(db):  # noqa: ASYNC110
                    await asyncio.sleep(0.1)
            for promise, rows in (await books.broken(db)).items():
                outcome.broken.append(f"{promise}: {len(rows)} times, e.g. {rows[:3]}")
            if left := await invariants.money_left_over(db):
                outcome.broken.append(f"money is held back or lost: {left}")
            for row in await db.fetch("select * from cycles where status <> 'completed'"):
                outcome.failed += 1
                outcome.broken.append(f"{row['cycle_id']} {row['status']}: {row['reason']}")
            rows = await db.fetch(
                "select case when type = 'stop' then 'stop' when exit then 'exit' else side end"
                " || ' ' || status as name, count(*) from orders group by 1"
            )
            outcome.orders.update({row["name"]: row["count"] for row in rows})
            outcome.broken += [f"no order is '{each}'" for each in OWED if not outcome.orders[each]]
            outcome.stood_s = await db.fetchval(
                "select coalesce(extract(epoch from sum(until_at - since_at)), 0)::float8"
                " from outages"
            )
        outcome.broken += [f"a process ended: {each}" for each in self._desk.ended()]
        return outcome


class Run(Trading[Fault]):
    """One run on servers of our own."""

    def __init__(self, desk: OwnDesk, user: User, seed: int, disk: Disk | None) -> None:
        super().__init__(desk, user, seed)
        self._own = desk
        self._disk = disk

    async def strike(self, fault: Fault) -> None:
        """An outage, or one of our own processes or servers goes."""
        servers = self._own.servers
        match fault.kind:
            case Outage():
                await servers.strike(fault.kind, fault.lasts_s)
            case Kind.KILL | Kind.KILL_THREE:
                self._own.send_signal(fault.targets, signal.SIGKILL)
            case Kind.FREEZE:
                self._own.send_signal(fault.targets, signal.SIGSTOP)
                await asyncio.sleep(fault.lasts_s)
                self._own.send_signal(fault.targets, signal.SIGCONT)
            case Kind.NATS:
                await servers.nats.kill()
                await servers.nats.start()
            case Kind.WIPE:
                await servers.wipe()
            case Kind.FULL:
                assert self._disk is not None
                await servers.refuse_to_store(self._disk, fault.lasts_s)
            case Kind.POSTGRES:
                await servers.strike(Outage.AWAY, 0.0)
            case Kind.EVERYTHING:
                self._own.send_signal((*BACKBONE, *SERVICES), signal.SIGKILL)
                await asyncio.gather(servers.wipe(), servers.strike(Outage.AWAY, 0.0))


async def real_chaos(
    cycles: int,
    seed: int,
    folder: Path,
    *,
    outage_s_max: float = OUTAGE_S_MAX,
    processes: bool = True,
) -> Outcome:
    """Bring servers and desk up below `folder`, run, judge."""
    (folder / "exit_signals.toml").write_text(EXITS)
    with ExitStack() as stack:
        disk, left_out = None, ""
        try:
            disk = stack.enter_context(small_disk(folder / NATS_STORE, DISK_BYTES))
        except NoSmallDisk as error:
            left_out = str(error)
        struck = schedule(
            seed, cycles // CYCLES_A_FAULT, full=disk is not None, outage_s_max=outage_s_max
        )
        async with (
            own_servers(folder, cycles) as servers,
            desk_on(servers, folder, SETTINGS, processes=processes) as desk,
            user_of(desk.settings) as user,
        ):
            run = Run(desk, user, seed, disk)
            run.outcome.left_out = left_out
            # One process has nobody who starts it again.
            keeping = None if processes else asyncio.create_task(desk.keep())
            try:
                await run.chaos(cycles, struck)
            finally:
                if keeping is not None:
                    keeping.cancel()
                    with suppress(asyncio.CancelledError):
                        await keeping
            return await run.judge()


def told(outcome: Outcome) -> str:
    """The run, for people."""
    head = (
        f"{outcome.cycles} cycles ({_counts(outcome.kinds)}) of {ACCOUNTS} accounts in "
        f"{outcome.took_s:.0f} s, seed {outcome.seed}: {outcome.failed} failed, "
        f"{len(outcome.broken)} promises broken; orders: {_counts(outcome.orders)}; "
        f"the desk's clock stood for {outcome.stood_s:.0f} s"
    )
    lines = [head, f"{outcome.faults.total()} faults: {_counts(outcome.faults)}"]
    if outcome.left_out:
        lines.append(f"left out: {Kind.FULL}: {outcome.left_out}")
    return "\n".join(lines)


def _counts(counter: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in sorted(counter.items()))


def main(arguments: Sequence[str] | None = None) -> None:
    """Run and tell."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.real_cycles", description=__doc__)
    parser.add_argument("--cycles", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--one-process", action="store_true")
    parser.add_argument("--keep", action="store_true")
    given = parser.parse_args(arguments)
    if not ACCOUNTS <= given.cycles <= CYCLES_MAX:
        parser.error(f"--cycles is {ACCOUNTS} to {CYCLES_MAX}")
    configure_logging("error")
    with open_folder("deskbus-real-", keep=given.keep) as folder:
        processes = not given.one_process
        outcome = asyncio.run(real_chaos(given.cycles, given.seed, folder, processes=processes))
    sys.stdout.write(f"{told(outcome)}\n")
    for each in outcome.broken:
        sys.stderr.write(f"BROKEN: {each}\n")
    sys.exit(1 if outcome.broken else 0)


if __name__ == "__main__":
    main()
