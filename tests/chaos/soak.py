"""The chaos run: cycles while everything is killed, frozen, wiped; then the tables are counted.

    python -m tests.chaos.soak --cycles 2000 [--seed 7] [--settings quick|defaults] [--json]
        [--one-process]

Runs with settings that notice faults quickly, then a tenth of the cycles with the desk's defaults.
With `--one-process` the desk is two processes, each an orchestrator and all services joined as
`deskbus up` joins them: what is said inside either is a call, and what the other lost goes by NATS.
Exits 1 and says what was broken if any promise was. `--keep` leaves the folders with all logs.
"""

import argparse
import asyncio
import json
import random
import signal
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from libs.telemetry.logging import configure_logging
from tests.chaos import faults, invariants
from tests.chaos.desk import ONE_PROCESS_ROLES, QUICK, ROLES_OF, ChaosDesk, chaos_desk
from tests.chaos.faults import Done, Fault
from tests.chaos.invariants import Story, Tables
from tests.chaos.load import Asked, User, user_of
from tests.fakes.chaos_workflow import SHAPES
from tests.open_folder import open_folder

CYCLES_A_FAULT = 20
IN_FLIGHT_MAX = 64
RECOVERY_TIMEOUT_S = 90.0
STALL_S_MAX = 120.0
"""When no cycle ends for so long, the run is over."""
FIRST_CYCLE_TIMEOUT_S = 120.0
RELAY_TIMEOUT_S = 30.0
DEFAULTS_SHARE = 10
CYCLES_MIN = 100
CALLS_AT_ONCE = 2
"""Paid calls that one operation of the made-up desk has in flight at most."""

CHAOS_SETTINGS = {**QUICK, "orchestrator_epochs_max": 50}
"""A random schedule may hit one operation more often than the five times that mean poison."""


@dataclass(frozen=True)
class Recovery:
    """How a fault healed: when it began (seconds into the run), and how many seconds later the next
    cycle completed. `alone`: no other fault was near, so that the time is its own."""

    name: str
    at_s: float
    next_s: float
    alone: bool


@dataclass
class Outcome:
    """What a run did, and every promise that it found broken."""

    seed: int
    cycles: int = 0
    took_s: float = 0.0
    calls: int = 0
    calls_needed: int = 0
    events: int = 0
    events_filled: int = 0
    recoveries: list[Recovery] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)

    def expect(self, promise: str, problems: Sequence[object]) -> None:
        """Note a promise that is broken."""
        shown = "; ".join(map(str, problems[:3]))
        if problems:
            self.broken.append(f"{promise}: {len(problems)} times, e.g. {shown}")

    def by_fault(self) -> Mapping[str, list[float]]:
        """The recovery times of each sort of fault, in seconds, where no other was near."""
        found: dict[str, list[float]] = defaultdict(list)
        for each in self.recoveries:
            if each.alone:
                found[each.name].append(each.next_s)
        return dict(sorted(found.items()))


class Stuck(Exception):
    """Cycles do not end."""


class Run:
    """One chaos run on a desk that is up."""

    def __init__(self, desk: ChaosDesk, user: User, seed: int) -> None:
        self._desk = desk
        self._user = user
        self._rng = random.Random(seed)
        self._slots = asyncio.Semaphore(IN_FLIGHT_MAX)
        self._asked: list[Asked] = []
        self._done: list[Done] = []
        self._ended = asyncio.Condition()
        self._ends = 0
        self.outcome = Outcome(seed)

    async def reference(self) -> Mapping[str, Story]:
        """One cycle of each shape without faults: what all others must come to."""
        asked = [await self._one(f"calm-{shape}", shape) for shape in SHAPES]
        self._ends = 0
        async with self._desk.database() as db:
            tables = await Tables.read(db, [each.cycle_id for each in asked])
            await self._relayed(db)
        stories = {each.label: tables.story(each.cycle_id) for each in asked}
        heard = self._user.heard
        self.outcome.expect(
            "without faults all events are heard", invariants.wrongly_heard(tables, heard, asked)
        )
        unordered = [c for c, order in heard.order.items() if order != sorted(order)]
        self.outcome.expect("without faults events come in order", unordered)
        return stories

    async def chaos(self, cycles: int, schedule: Sequence[Fault]) -> None:
        """`cycles` cycles, spread over the faults of `schedule`."""
        began = time.monotonic()
        shares = [cycles * n // len(schedule) for n in range(len(schedule) + 1)]
        tasks: list[asyncio.Task[Asked]] = []
        whole = True
        for fault, first, after in zip(schedule, shares, shares[1:], strict=False):
            tasks += [
                asyncio.create_task(self._one(str(n), SHAPES[n % len(SHAPES)]))
                for n in range(first, after)
            ]
            ends = self._ends
            done = await faults.do(self._desk, fault)
            # After every third fault the next one meets a desk that has not recovered.
            was_whole, whole = whole, self._rng.random() > 1 / 3
            if whole:
                await self._recovered(ends)
            self._done.append(replace(done, alone=was_whole and whole))
            # The faults are to meet cycles from the first to the last: no long queue behind them.
            await self._end_at_least(after - IN_FLIGHT_MAX)
        await self._end_at_least(cycles)
        self._asked = await asyncio.gather(*tasks)
        self.outcome.cycles = cycles
        self.outcome.took_s = time.monotonic() - began

    async def judge(self, expected: Mapping[str, Story]) -> Outcome:
        """Count from the tables, and compare with the fault-free stories."""
        asked, heard, outcome = self._asked, self._user.heard, self.outcome
        async with self._desk.database() as db:
            await self._relayed(db)
            tables = await Tables.read(db, [each.cycle_id for each in asked])
            outcome.expect(
                "the relay has published everything",
                [lag] if (lag := await invariants.relay_lag(db)) else [],
            )
            outcome.expect(
                "no money is held back or lost",
                [left] if (left := await invariants.money_left_over(db)) else [],
            )
        outcome.expect(
            "each cycle's rows are those of the fault-free run",
            invariants.stories_differ(tables, asked, expected),
        )
        for each in asked:
            outcome.events_filled += await self._user.fill_gaps(each.cycle_id)
        outcome.events = sum(len(rows) for rows in tables.events.values())
        outcome.expect(
            "events heard are those of the table, gapless",
            invariants.wrongly_heard(tables, heard, asked),
        )
        lines = self._desk.model.lines()
        outcome.expect(
            "no recorded call is repeated", invariants.calls_repeated_after_record(tables, lines)
        )
        self._judge_calls(tables, invariants.calls_made(tables, lines))
        self._measure(tables)
        return outcome

    def _judge_calls(self, tables: Tables, made: Mapping[Any, int]) -> None:
        """Calls made again were in flight at a fault; no operation has more than two at once."""
        epochs = {row["op_id"]: row["epoch"] for ops in tables.operations.values() for row in ops}
        self.outcome.calls = sum(made.values())
        self.outcome.calls_needed = len(made)
        repeats: dict[Any, int] = defaultdict(int)
        for (op_id, _), times in made.items():
            repeats[op_id] += times - 1
        excess = [
            f"{op_id}: {count} calls again in {epochs[op_id]} claims"
            for op_id, count in repeats.items()
            if count > CALLS_AT_ONCE * (epochs[op_id] - 1)
        ]
        self.outcome.expect("only calls in flight at a fault are made again", excess)

    def _measure(self, tables: Tables) -> None:
        ends = sorted(row["ended_at"].timestamp() for row in tables.cycles.values())
        for each in self._done:
            after = [end for end in ends if end > each.began_at]
            if after:
                at_s = round(each.began_at - self._done[0].began_at, 3)
                next_s = round(after[0] - each.began_at, 3)
                recovery = Recovery(each.fault.name, at_s, next_s, each.alone)
                self.outcome.recoveries.append(recovery)

    async def _one(self, number: str, shape: str) -> Asked:
        async with self._slots:
            request = self._user.request(number, shape=shape)
            await self._user.run(request)
        async with self._ended:
            self._ends += 1
            self._ended.notify_all()
        return Asked(self._user.cycle_id(request), shape)

    async def _end_at_least(self, count: int) -> None:
        """Wait until so many cycles have ended; raises `Stuck` when none ends for a long time."""
        while (seen := self._ends) < count:
            try:
                async with asyncio.timeout(STALL_S_MAX), self._ended:
                    await self._ended.wait_for(partial(self._more_than, seen))
            except TimeoutError as error:
                raise Stuck(await self._stuck()) from error

    def _more_than(self, count: int) -> bool:
        return self._ends > count

    async def _recovered(self, ends: int) -> None:
        """Wait until a further cycle has ended and every process is there again."""
        await self._end_at_least(ends + 1)
        async with asyncio.timeout(RECOVERY_TIMEOUT_S):
            await self._desk.whole()

    async def _stuck(self) -> str:
        """What is not done, and where every process stands (that goes to its log)."""
        self._desk.signal(signal.SIGUSR1)
        async with self._desk.database() as db:
            rows = await db.fetch(
                "select service, step, status, epoch, sends, count(*) from operations"
                " where status in ('pending', 'running') group by 1, 2, 3, 4, 5 order by 1, 2"
            )
        return "\n".join(str(dict(row)) for row in rows)

    async def _relayed(self, db: Any) -> None:
        """Wait for the relay; the judge says if it never comes."""
        with suppress(TimeoutError):
            async with asyncio.timeout(RELAY_TIMEOUT_S):
                while await invariants.relay_lag(db):  # noqa: ASYNC110
                    await asyncio.sleep(0.1)


async def run_on(desk: ChaosDesk, cycles: int, seed: int, schedule: Sequence[Fault]) -> Outcome:
    """A whole run on a desk that is up."""
    async with user_of(desk.settings, f"seed{seed}-{time.time_ns()}") as user:
        run = Run(desk, user, seed)
        expected = await asyncio.wait_for(run.reference(), FIRST_CYCLE_TIMEOUT_S)
        await run.chaos(cycles, schedule)
        return await run.judge(expected)


def schedule_of(desk: ChaosDesk, seed: int, count: int) -> list[Fault]:
    """Every kind once, then faults at random, `count` in all but at least every kind."""
    rng = random.Random(seed)
    names, lease_s = faults.targets(desk), desk.settings.orchestrator.lease_s
    first = faults.each_kind(rng, names, lease_s)
    return first + faults.at_random(rng, names, lease_s, max(count - len(first), 0))


async def soak(
    cycles: int,
    seed: int,
    settings: Mapping[str, float],
    folder: Path,
    roles: Mapping[str, int] = ROLES_OF,
) -> Outcome:
    """Bring a desk up below `folder`, run, judge."""
    async with chaos_desk(folder, settings, roles) as desk:
        schedule = schedule_of(desk, seed, cycles // CYCLES_A_FAULT)
        return await run_on(desk, cycles, seed, schedule)


def table(outcome: Outcome) -> str:
    """The recovery times, for people."""
    alone = sum(each.alone for each in outcome.recoveries)
    head = (
        f"{outcome.cycles} cycles in {outcome.took_s:.0f} s, seed {outcome.seed}; "
        f"{len(outcome.recoveries)} faults, {alone} of them alone (in the table); "
        f"{outcome.calls} paid calls for {outcome.calls_needed} needed; "
        f"{outcome.events} events, {outcome.events_filled} of them fetched after a gap"
    )
    lines = [
        head,
        "",
        "| fault | times | s to the next completed cycle: median | max |",
        "| --- | --- | --- | --- |",
    ]
    lines += [
        f"| {name} | {len(times)} | {statistics.median(times):.2f} | {max(times):.2f} |"
        for name, times in outcome.by_fault().items()
    ]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run and tell."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.soak", description=__doc__)
    parser.add_argument("--cycles", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--settings", choices=("quick", "defaults"))
    parser.add_argument("--one-process", action="store_true")
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args(arguments)
    configure_logging("error")
    outcomes = []
    if given.settings != "defaults":
        outcomes.append(_kept_or_not(given, given.cycles, CHAOS_SETTINGS))
    if given.settings != "quick":
        share = 1 if given.settings else DEFAULTS_SHARE
        outcomes.append(_kept_or_not(given, max(given.cycles // share, CYCLES_MIN), {}))
    sys.exit(1 if any(outcome.broken for outcome in outcomes) else 0)


def _kept_or_not(given: argparse.Namespace, cycles: int, settings: Mapping[str, float]) -> Outcome:
    """One soak in a folder of its own, and what it says."""
    roles = ONE_PROCESS_ROLES if given.one_process else ROLES_OF
    with open_folder("deskbus-soak-", keep=given.keep) as folder:
        outcome = asyncio.run(soak(cycles, given.seed, settings, folder, roles))
    told = json.dumps(asdict(outcome)) if given.json else f"{table(outcome)}\n"
    sys.stdout.write(f"{told}\n")
    for each in outcome.broken:
        sys.stderr.write(f"BROKEN: {each}\n")
    return outcome


if __name__ == "__main__":
    main()
