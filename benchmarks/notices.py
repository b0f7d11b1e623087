"""Notices under load: a rate of events into a good, a slow and a dead channel, and at rest.

    python -m benchmarks.notices [--rate 1000] [--seconds 60] [--relay-poll 0.2]

What other processes than the orchestrator commit, as here, the relay finds within --relay-poll
seconds. Prints from an event's commit to the good channel's HTTP request (p50, p99), how long each
channel took to catch up, and the notifier's memory at rest and at most. Exits 1 where anything was
lost, twice, or out of order.
"""

import argparse
import asyncio
import sys
import time
import uuid
from collections.abc import Sequence
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from statistics import median, quantiles

import asyncpg
import orjson
import psutil
from pydantic import SecretStr

from contracts.audit import EventType
from libs.bus.permissions import permissions
from libs.postgres.migrate import migrate
from libs.postgres.pool import ORCHESTRATOR_ROLE, OWNER_ROLE, ROLES
from libs.runtime import ids
from libs.runtime.notify_settings import Notify
from libs.runtime.settings import Settings
from libs.servers.embedded import Servers, embedded_servers
from libs.servers.supervisor import Supervisor
from services.launcher import service_children
from tests.fakes.channel_server import Answer, ChannelServer, channel_server
from tests.fakes.notable import DATA
from tests.open_folder import open_folder

SLOW_S = 0.25
CHANNELS = 3
SINGLE = 200
"""Events one at a time, for the time from event to request."""
PAUSE_S = 0.05
BATCH_S = 0.1
CAUGHT_UP_S = 1_800.0
MB = 1024 * 1024
INSERT = """
insert into state_events (started_on, op_id, seq, cycle_id, type, owner, session_id, data)
select $1, node, 0, node, 'order_filled', 'execution', 'main/2012-06-29', $3::jsonb
from unnest($2::uuid[]) with ordinality as n (node, place) order by place
"""


async def happen(db: "asyncpg.Connection[asyncpg.Record]", count: int) -> Sequence[str]:
    """So many events in one commit; their ids."""
    nodes = [uuid.uuid4() for _ in range(count)]
    body = orjson.dumps(DATA[EventType.ORDER_FILLED]).decode()
    await db.execute(INSERT, datetime.now(UTC).date(), nodes, body)
    return [str(ids.event_id(node, 0)) for node in nodes]


async def one_at_a_time(
    db: "asyncpg.Connection[asyncpg.Record]", good: ChannelServer
) -> tuple[float, float]:
    """p50 and p99 from the commit to the request, in milliseconds."""
    waits: list[float] = []
    for _ in range(SINGLE):
        (event_id,) = await happen(db, 1)
        began = time.monotonic()
        await asyncio.to_thread(good.wait, lambda s, e=event_id: e in s.event_ids[-1:])
        waits.append((good.taken[-1].at - began) * 1_000)
        await asyncio.sleep(PAUSE_S)
    return median(waits), quantiles(waits, n=100)[98]


async def run(folder: Path, rate: int, seconds: float, relay_poll_s: float) -> None:
    """Measure and print."""
    async with AsyncExitStack() as stack:
        servers = await stack.enter_async_context(
            embedded_servers(folder / "desk", permissions(), ROLES, database_owner=OWNER_ROLE)
        )
        await migrate(servers.postgres_dsn(OWNER_ROLE))
        good, slow = (stack.enter_context(channel_server()) for _ in range(2))
        slow.judge = lambda _: Answer(silence_s=SLOW_S)
        supervisor = await stack.enter_async_context(
            _processes(servers, good.url, slow.url, relay_poll_s)
        )
        db = await asyncpg.connect(servers.postgres_dsn(ORCHESTRATOR_ROLE))
        stack.push_async_callback(db.close)
        while await db.fetchval("select count(*) from notice_channels") < CHANNELS:  # noqa: ASYNC110
            await asyncio.sleep(0.1)
        await asyncio.sleep(3)  # at rest
        notifier = psutil.Process(supervisor.pid("notifier-1"))
        rest_mb = notifier.memory_info().rss / MB
        p50_ms, p99_ms = await one_at_a_time(db, good)
        _say(f"one event at a time: p50 {p50_ms:.1f} ms, p99 {p99_ms:.1f} ms to the request")
        cpu_s = sum(notifier.cpu_times()[:2])
        began = time.monotonic()
        events, most_mb = await at_rate(db, rate, seconds, notifier)
        took_s = time.monotonic() - began
        for name, server in (("good", good), ("slow", slow)):
            most_mb = max(most_mb, await caught_up(name, server, events, began, notifier))
        waiting = await db.fetchval("select waiting from notice_channels where channel = 'dead'")
        _say(f"dead: {waiting:,} of {len(events) + SINGLE:,} wait in Postgres")
        cpu_s = sum(notifier.cpu_times()[:2]) - cpu_s
        _say(
            f"{len(events):,} events in {took_s:.0f} s ({len(events) / took_s:.0f} a second); the "
            f"notifier: {rest_mb:.0f} MB at rest, {most_mb:.0f} MB at most, {cpu_s:.0f} s of CPU"
        )
        if waiting != len(events) + SINGLE:
            raise SystemExit(1)


async def at_rate(
    db: "asyncpg.Connection[asyncpg.Record]", rate: int, seconds: float, notifier: psutil.Process
) -> tuple[list[str], float]:
    """The events that happened, and the notifier's memory at most meanwhile."""
    most_mb, events = 0.0, list[str]()
    began = time.monotonic()
    while (elapsed := time.monotonic() - began) < seconds:
        due = int(rate * elapsed) - len(events)
        events += await happen(db, due) if due > 0 else ()
        most_mb = max(most_mb, notifier.memory_info().rss / MB)
        await asyncio.sleep(BATCH_S)
    return events, most_mb


async def caught_up(
    name: str,
    server: ChannelServer,
    events: Sequence[str],
    began: float,
    notifier: psutil.Process,
) -> float:
    """Wait until a channel took all, and say how; the notifier's memory at most meanwhile."""
    wanted, most_mb = len(events) + SINGLE, 0.0
    waiting = asyncio.create_task(
        asyncio.to_thread(server.wait, lambda s: _taken(s) >= wanted, CAUGHT_UP_S)
    )
    while not waiting.done():
        most_mb = max(most_mb, notifier.memory_info().rss / MB)
        await asyncio.wait({waiting}, timeout=0.5)
    await waiting
    is_right = server.event_ids[SINGLE:] == list(events)
    _say(
        f"{name}: all {wanted:,} events {time.monotonic() - began:.0f} s after the first, in "
        f"{len(server.taken):,} messages, {'once and in order' if is_right else 'NOT IN ORDER'}"
    )
    if not is_right:
        raise SystemExit(1)
    return most_mb


def _taken(server: ChannelServer) -> int:
    return sum(heard.body.count(b'"event_id"') for heard in list(server.taken))


def _processes(servers: Servers, good: str, slow: str, relay_poll_s: float) -> Supervisor:
    addresses = {"good": good, "slow": slow, "dead": "http://127.0.0.1:9/nobody"}
    settings = Settings.model_validate(
        {
            "nats_url": servers.nats_url,
            "postgres_dsn": SecretStr(servers.postgres_address),
            "secrets_dir": servers.secrets_dir,
            "data_dir": servers.data_dir,
            "log_level": "warning",
            "relay_poll_s": relay_poll_s,
            "notify": Notify.model_validate(
                {
                    "channels": {name: {"service": "webhook"} for name in addresses},
                    "rules": {"all": {"events": ["fill"], "to": list(addresses)}},
                }
            ),
        }
    )
    for name, url in addresses.items():
        (servers.secrets_dir / f"notify_{name}.url").write_text(url)
        (servers.secrets_dir / f"notify_{name}.key").write_text("a key of the measure's own")
    names = ("provisioner", "orchestrator", "notifier")
    return Supervisor([child for name in names for child in service_children(name, settings)])


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.notices", description=__doc__)
    parser.add_argument("--rate", type=int, default=1_000)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--relay-poll", type=float, default=Settings().relay_poll_s)
    options = parser.parse_args()
    with open_folder("deskbus-notices-") as folder:
        asyncio.run(run(folder, options.rate, options.seconds, options.relay_poll))


if __name__ == "__main__":
    main()
