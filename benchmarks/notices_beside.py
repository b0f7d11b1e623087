"""Cycles beside notices: `python -m benchmarks.notices_beside [--rate 1000] [--seconds 60]`.

`deskbus up`, all services in one process, whose notifier has a good, a slow and a dead channel.
Real `rules` cycles of one account, one after the other, in three spans that take turns in every
round: nothing else happens; so many events a second that nobody is told; as many that all three
channels are told. Between two spans the good and the slow channel catch up.

Prints a cycle's p50 and p95 and the cycles a second of each span, and the ratios to the events that
nobody is told, of the same round: that is what telling costs others. Exits 1 where an event was not
taken by the good and the slow channel.
"""

import argparse
import asyncio
import json
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from datetime import UTC, date, datetime
from pathlib import Path
from statistics import median, quantiles
from typing import Any, Final, TypeAlias

import asyncpg
import orjson

from benchmarks.cycles import desk_up
from benchmarks.footprint import RUNTIME_FILE
from benchmarks.report import spread, table
from benchmarks.year import LAST_SESSION, Running, running, sessions_before
from contracts.audit import EventType
from libs.postgres.pool import ORCHESTRATOR_ROLE, dsn_for
from libs.runtime import ids
from libs.runtime.loop import run
from tests.fakes.channel_server import Answer, ChannelServer, channel_server
from tests.fakes.notable import DATA

SLOW_S: Final = 0.25
BATCH_S: Final = 0.1
WARM: Final = 3
CAUGHT_UP_S: Final = 1_800.0
SESSIONS_MAX: Final = 2_000
INSERT: Final = """
insert into state_events (started_on, op_id, seq, cycle_id, type, owner, session_id, data)
select $1, node, 0, node, $4, 'execution', 'main/2012-06-29', $3::jsonb
from unnest($2::uuid[]) with ordinality as n (node, place) order by place
"""
SPANS: Final = {
    "nothing else": None,
    "events that nobody is told": EventType.DATA_READ,
    "events that three channels are told": EventType.ORDER_FILLED,
}
CONTROL: Final = "events that nobody is told"

Db: TypeAlias = "asyncpg.Connection[asyncpg.Record]"
Figures = dict[str, float]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.notices_beside")
    parser.add_argument("--rate", type=int, default=1_000)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="beside-") as name,
        channel_server() as good,
        channel_server() as slow,
    ):
        # Started by root, the servers drop its rights, and have to come in all the same.
        Path(name).chmod(0o711)
        slow.judge = lambda _: Answer(silence_s=SLOW_S)
        with desk_up(Path(name) / "data", _notify(good, slow)) as up:
            rounds = run(_measured(*up, (good, slow), options))
    print(render(rounds, options.rate))


def _notify(good: ChannelServer, slow: ChannelServer) -> dict[str, str]:
    """The desk's environment: every fill to all three."""
    addresses = {"good": good.url, "slow": slow.url, "dead": "http://127.0.0.1:9/nobody"}
    notify = {
        "channels": {name: {"service": "webhook"} for name in addresses},
        "rules": {"all": {"events": ["fill"], "to": list(addresses)}},
    }
    own = {f"DESKBUS_NOTIFY_{name.upper()}": url for name, url in addresses.items()}
    keys = dict.fromkeys((f"{name}_KEY" for name in own), "a key of the measure's own")
    return {"DESKBUS_NOTIFY": json.dumps(notify), **own, **keys}


async def _measured(
    pid: int, data: Path, servers: Sequence[ChannelServer], options: argparse.Namespace
) -> list[dict[str, Figures]]:
    place = json.loads((data / RUNTIME_FILE).read_bytes())
    dsn = dsn_for(place["postgres_dsn"], ORCHESTRATOR_ROLE, Path(place["secrets_dir"]))
    sessions = iter(sessions_before(LAST_SESSION, SESSIONS_MAX))
    async with AsyncExitStack() as stack:
        desk = await stack.enter_async_context(running(pid, data))
        db = await asyncpg.connect(dsn)
        stack.push_async_callback(db.close)
        for _ in range(WARM):
            await desk.cycle(next(sessions))
        rounds = []
        for number in range(1, options.rounds + 1):
            found = {}
            for name, kind in SPANS.items():
                found[name], events = await _span(desk, db, sessions, kind, options)
                if kind is EventType.ORDER_FILLED:
                    await _caught_up(servers, {*events})
                print(f"round {number}, {name}: {found[name]}", file=sys.stderr, flush=True)
            rounds.append(found)
        return rounds


async def _span(
    desk: Running, db: Db, sessions: Iterator[date], kind: EventType | None, options: Any
) -> tuple[Figures, list[str]]:
    """Cycles one after the other for so long, beside events at the rate."""
    began = time.monotonic()
    happening = asyncio.create_task(_happen(db, kind, options.rate, began + options.seconds))
    cycle_s = []
    while time.monotonic() < began + options.seconds:
        cycle_s.append(await desk.cycle(next(sessions)))
    took_s = time.monotonic() - began
    events = await happening
    figures = {
        "cycles/s": len(cycle_s) / took_s,
        "p50, ms": 1e3 * median(cycle_s),
        "p95, ms": 1e3 * (quantiles(cycle_s, n=20)[18] if len(cycle_s) > 1 else cycle_s[0]),
        "events/s": len(events) / took_s,
    }
    return figures, events


async def _happen(db: Db, kind: EventType | None, rate: int, until: float) -> list[str]:
    """Events at the rate until then; their ids. No event where there is no kind."""
    events = list[str]()
    began = time.monotonic()
    while kind is not None and (now := time.monotonic()) < until:
        due = int(rate * (now - began)) - len(events)
        nodes = [uuid.uuid4() for _ in range(due)]
        body = orjson.dumps(DATA[EventType.ORDER_FILLED]).decode()
        await db.execute(INSERT, datetime.now(UTC).date(), nodes, body, kind)
        events += [str(ids.event_id(node, 0)) for node in nodes]
        await asyncio.sleep(BATCH_S)
    return events


async def _caught_up(servers: Sequence[ChannelServer], wanted: set[str]) -> None:
    """Wait until the good and the slow channel took all; exits where they do not."""
    until = time.monotonic() + CAUGHT_UP_S
    for server in servers:
        while missing := wanted - set(server.event_ids):
            if time.monotonic() > until:
                sys.exit(f"{len(missing)} events were not taken")
            await asyncio.sleep(0.5)


def render(rounds: Sequence[dict[str, Figures]], rate: int) -> str:
    """Both tables."""
    names = list(rounds[0][CONTROL])
    rows = [
        [span, *(spread(each[span][name] for each in rounds) for name in names)] for span in SPANS
    ]
    ratios = [
        [
            f"{span}, times {CONTROL}",
            *(spread(each[span][n] / each[CONTROL][n] for each in rounds) for n in names[:3]),
        ]
        for span in SPANS
        if span != CONTROL
    ]
    head = f"cycles one after the other beside {rate:,} events/s, {len(rounds)} rounds"
    return f"{table([head, *names], rows)}\n\n{table(['ratio', *names[:3]], ratios)}"


if __name__ == "__main__":
    main()
