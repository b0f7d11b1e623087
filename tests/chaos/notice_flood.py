"""10,000 events of several types in a minute into a good, a slow, a failing and a hanging channel,
and one alarm.

    python -m tests.chaos.notice_flood [--events 10000] [--keep]

Half of the events have happened when buys are halted: that alarm must pass the others. Prints when
each channel had the alarm and everything, what came twice, the notifier's memory, and how long a
commit takes beside it. Exits 1 where a message was lost in silence, came twice without a failure of
its channel, an alarm came later than ALARM_S_MAX, or memory was above MEMORY_MB_MAX.
"""

import argparse
import asyncio
import statistics
import sys
import time
import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import asyncpg
import orjson
import psutil

from contracts.audit import EventType
from libs.postgres.pool import ORCHESTRATOR_ROLE
from libs.runtime import ids
from tests.chaos.notices import Scene, scene_in
from tests.fakes.channel_server import Answer, Judge
from tests.fakes.notable import DATA
from tests.open_folder import open_folder

BATCH = 100
TYPES = (
    EventType.ORDER_PLACED,
    EventType.ORDER_FILLED,
    EventType.ORDER_CANCELLED,
    EventType.ORDER_REJECTED,
)
ALARM_S_MAX = 30.0
"""On a machine that is asked for seven times its cores."""
LASTS_S = 60.0
SLOW_S = 1.0
HANGS_S = 30.0
"""Longer than the channel's time-out."""
JUDGES: Mapping[str, Judge] = {
    "good": lambda _: Answer(),
    "slow": lambda _: Answer(silence_s=SLOW_S),
    "failing": lambda _: Answer(status=503),
    "hanging": lambda _: Answer(silence_s=HANGS_S),
}
TAKING = ("good", "slow")
MEMORY_MB_MAX = 300.0
SETTLED_S_MAX = 900.0
SAMPLE_S = 0.2
COMMIT = "update desk_clock set beat_at = beat_at"
INSERT = """
insert into state_events (started_on, op_id, seq, cycle_id, type, owner, session_id, data)
select $1, id, 0, id, $3, 'execution', 'main/2012-06-29', $4::jsonb from unnest($2::uuid[]) as id
"""


@dataclass
class Outcome:
    """What came of it."""

    events: int
    alarm_s: dict[str, float] = field(default_factory=dict)
    behind: dict[str, int] = field(default_factory=dict)
    """Events that a channel had before the alarm, of those before and after it."""
    all_s: dict[str, float] = field(default_factory=dict)
    repeats: Counter[str] = field(default_factory=Counter)
    on_record: Counter[str] = field(default_factory=Counter)
    memory_mb: dict[str, float] = field(default_factory=dict)
    commit_ms: tuple[float, float] = (0.0, 0.0)
    """95 % of commits take at most so long: at rest, and during the flood."""
    broken: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        rows = [
            f"| {name} | {self.alarm_s.get(name, float('nan')):.1f} s | {self.behind.get(name, 0)} "
            f"| {self.all_s.get(name, float('nan')):.1f} s | {self.repeats[name]} "
            f"| {self.on_record[name]} |"
            for name in JUDGES
        ]
        memory = ", ".join(f"{name} +{mb:.0f} MB" for name, mb in sorted(self.memory_mb.items()))
        head = "| channel | alarm after | before it | all after | twice | waiting |"
        rest_ms, flood_ms = self.commit_ms
        commits = f"a commit (p95): {rest_ms:.1f} ms at rest, {flood_ms:.1f} ms beside the flood"
        end = f"{self.events} events; {memory}; {commits}"
        return "\n".join([head, "| --- | --- | --- | --- | --- | --- |", *rows, end])


async def survive(folder: Path, count: int) -> Outcome:
    """Flood, and see what came of it."""
    outcome = Outcome(count)
    async with scene_in(folder, JUDGES, ("order", "stop", "fill", "halt")) as scene:
        await scene.set_up()
        dsn = scene.servers.postgres_dsn(ORCHESTRATOR_ROLE)
        db, beside = await asyncpg.connect(dsn), await asyncpg.connect(dsn)
        rest = await _commits(beside, 50)
        processes = {
            name: psutil.Process(scene.supervisor.pid(name))
            for name in ("orchestrator-1", "orchestrator-2", "notifier-1", "notifier-2")
        }
        before = {name: process.memory_info().rss for name, process in processes.items()}
        over = asyncio.Event()
        watching = asyncio.create_task(_memory(processes, before, outcome, over))
        commits: list[float] = []
        flooding = asyncio.create_task(_flood(db, count))
        while not flooding.done():
            commits += await _commits(beside, 5)
        alarm, alarm_at = await flooding
        await _settled(scene, count, alarm, alarm_at, outcome)
        over.set()
        await watching
        outcome.commit_ms = (_p95(rest), _p95(commits))
        rows = await db.fetch(
            "select channel, status, count(*) as n from notifications group by 1, 2 order by 1"
        )
        for row in rows:
            if row["status"] == "due":
                outcome.on_record[row["channel"]] = row["n"]
        total = Counter[str]()
        for row in rows:
            total[row["channel"]] += row["n"]
        for name in JUDGES:
            if total[name] != count + 1:
                outcome.broken.append(f"{name}: {total[name]} of {count + 1} are on record")
        await db.close()
        await beside.close()
    return outcome


async def _commits(db: "asyncpg.Connection[asyncpg.Record]", count: int) -> list[float]:
    took = []
    for _ in range(count):
        began = time.monotonic()
        await db.execute(COMMIT)
        took.append((time.monotonic() - began) * 1e3)
        await asyncio.sleep(SAMPLE_S / 4)
    return took


def _p95(values: Sequence[float]) -> float:
    return statistics.quantiles(values, n=20)[-1]


async def _flood(db: "asyncpg.Connection[asyncpg.Record]", count: int) -> tuple[uuid.UUID, float]:
    """Happen at an even pace; the alarm's event, and when it happened."""
    today = datetime.now(UTC).date()
    halt = orjson.dumps(DATA[EventType.TRADING_HALTED]).decode()
    began, alarm, alarm_at = time.monotonic(), uuid.uuid4(), 0.0
    for done in range(0, count, BATCH):
        if not alarm_at and done >= count // 2:
            await db.execute(INSERT, today, [alarm], "trading_halted", halt)
            alarm_at = time.monotonic()
        nodes = [uuid.uuid4() for _ in range(min(BATCH, count - done))]
        kind = TYPES[done // BATCH % len(TYPES)]
        await db.execute(INSERT, today, nodes, kind.value, orjson.dumps(DATA[kind]).decode())
        due_at = began + LASTS_S * (done + len(nodes)) / count
        await asyncio.sleep(max(due_at - time.monotonic(), 0))
    return ids.event_id(alarm, 0), alarm_at


async def _memory(
    processes: Mapping[str, psutil.Process],
    before: Mapping[str, int],
    outcome: Outcome,
    over: asyncio.Event,
) -> None:
    while not over.is_set():
        for name, process in processes.items():
            more_mb = (process.memory_info().rss - before[name]) / 1e6
            outcome.memory_mb[name] = max(outcome.memory_mb.get(name, 0.0), more_mb)
        await asyncio.sleep(SAMPLE_S)
    outcome.broken += [
        f"{name} took {mb:.0f} MB" for name, mb in outcome.memory_mb.items() if mb > MEMORY_MB_MAX
    ]


async def _settled(
    scene: Scene, count: int, alarm: uuid.UUID, alarm_at: float, outcome: Outcome
) -> None:
    for name in TAKING:
        server = scene.channels[name]
        await asyncio.to_thread(server.wait, lambda s: len(set(s.event_ids)) > count, SETTLED_S_MAX)
        told: list[str] = []
        for heard in server.taken:
            if str(alarm) in heard.event_ids:
                outcome.alarm_s[name] = heard.at - alarm_at
                outcome.behind[name] = len(told)
                break
            told += heard.event_ids
        outcome.all_s[name] = server.taken[-1].at - alarm_at
        outcome.repeats[name] = len(server.event_ids) - len(set(server.event_ids))
        if outcome.repeats[name]:
            outcome.broken.append(f"{name}: {outcome.repeats[name]} came twice")
        if outcome.alarm_s.get(name, ALARM_S_MAX) >= ALARM_S_MAX:
            outcome.broken.append(f"{name}: the alarm came after {outcome.alarm_s.get(name)} s")


def main(arguments: Sequence[str] | None = None) -> None:
    """Flood and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.notice_flood", description=__doc__)
    parser.add_argument("--events", type=int, default=10_000)
    parser.add_argument("--keep", action="store_true")
    given = parser.parse_args(arguments)
    with open_folder("deskbus-flood-", keep=given.keep) as folder:
        outcome = asyncio.run(survive(folder, given.events))
    sys.stdout.write(f"{outcome}\n")
    for problem in outcome.broken:
        sys.stderr.write(f"BROKEN: {problem}\n")
    sys.exit(1 if outcome.broken else 0)


if __name__ == "__main__":
    main()
