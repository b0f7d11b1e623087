"""kill -9 of the notifier, NATS, Postgres, the orchestrator and the channel at seeded moments.

    python -m tests.chaos.notices --moments 50 [--seed 7] [--keep]

Events happen all the while. Each must reach each channel at least once; an event that comes twice
must have a blow between its two comings. Exits 1 where a promise was broken.
"""

import argparse
import asyncio
import json
import os
import random
import signal
import sys
import time
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import asyncpg
import orjson
from pydantic import SecretStr

from contracts.audit import EventType
from libs.bus.connection import connect
from libs.bus.permissions import permissions
from libs.bus.streams import NotProvisioned, channel_since
from libs.postgres.migrate import migrate
from libs.postgres.pool import ORCHESTRATOR_ROLE, OWNER_ROLE, ROLES
from libs.runtime import ids
from libs.runtime.notify_settings import Notify
from libs.runtime.settings import Settings
from libs.servers.embedded import Servers, embedded_servers
from libs.servers.supervisor import ChildError, Supervisor
from services.launcher import service_children
from tests.chaos.desk import POSTGRES_GONE, QUICK
from tests.fakes.channel_server import Answer, ChannelServer, Judge, channel_server
from tests.fakes.notable import DATA
from tests.flat_settings import nested
from tests.open_folder import open_folder

CHANNELS = ("ops", "audit")
PROCESSES = {"provisioner": 1, "orchestrator": 2, "notifier": 2}
SERVERS = ("nats", "postgres")
TARGETS = ("notifier-1", "notifier-2", "orchestrator-1", "orchestrator-2", *SERVERS, *CHANNELS)
FREEZE = "freeze notifier-1"
FROZEN_S = 3.0
DOWN_S = 0.5
EVERY_S = 0.03
"""Between two events."""
BETWEEN_S = (0.3, 2.5)
SETTLED_S = 120.0
INSERT = """
insert into state_events (started_on, op_id, seq, cycle_id, type, owner, session_id, data)
values ($1, $2, 0, $2, 'order_filled', 'execution', 'main/2012-06-29', $3::jsonb)
on conflict do nothing
"""


@dataclass
class Outcome:
    """What came of it."""

    moments: int
    events: int
    blows: Mapping[str, int]
    repeats: int
    broken: Sequence[str]

    def __str__(self) -> str:
        blows = ", ".join(f"{name} {count}" for name, count in sorted(self.blows.items()))
        return (
            f"{self.events} events over {len(CHANNELS)} channels, {self.moments} blows ({blows}): "
            f"{self.repeats} repeats, all with a blow between; "
            f"{len(self.broken)} promises broken"
        )


@dataclass
class Scene:
    """What is struck, and when it was."""

    servers: Servers
    supervisor: Supervisor
    channels: Mapping[str, ChannelServer]
    blows: list[tuple[float, str]] = field(default_factory=list)
    events: list[str] = field(default_factory=list)

    async def strike(self, target: str) -> None:
        """One blow; a process between two lives is left to it."""
        self.blows.append((time.monotonic(), target))
        if target in self.channels:
            self.channels[target].down = True
            await asyncio.sleep(DOWN_S)
            self.channels[target].down = False
            return
        with suppress(ChildError, ProcessLookupError):
            if target == FREEZE:
                pid = self.supervisor.pid(target.split()[1])
                os.kill(pid, signal.SIGSTOP)
                await asyncio.sleep(FROZEN_S)
                os.kill(pid, signal.SIGCONT)
            elif target in SERVERS:
                os.kill(self.servers.pid(target), signal.SIGKILL)
            else:
                os.kill(self.supervisor.pid(target), signal.SIGKILL)
        # It may have been in the middle of something until here.
        self.blows.append((time.monotonic(), ""))

    async def set_up(self) -> None:
        """Wait until NATS holds what happens for the channels."""
        bus = await connect(self.servers.nats_url, "provisioner", self.servers.secrets_dir)
        for name in self.channels:
            while True:
                with suppress(NotProvisioned):
                    await channel_since(bus, name)
                    break
                await asyncio.sleep(0.1)
        await bus.close()

    async def happen(self, until: asyncio.Event) -> None:
        """Events, one after the other, each written for certain before the next one."""
        while not until.is_set():
            node = uuid.uuid4()
            await self._written(node, len(self.events) + 1)
            self.events.append(str(ids.event_id(node, 0)))
            await asyncio.sleep(EVERY_S)

    async def _written(self, node: UUID, number: int) -> None:
        body = orjson.dumps({**DATA[EventType.ORDER_FILLED], "quantity": str(number)}).decode()
        today = datetime.now(UTC).date()
        while True:
            with suppress(*POSTGRES_GONE):
                dsn = self.servers.postgres_dsn(ORCHESTRATOR_ROLE)
                db = await asyncpg.connect(dsn, timeout=5)
                try:
                    await db.execute(INSERT, today, node, body)
                    return
                finally:
                    db.terminate()
            await asyncio.sleep(0.1)


def plan(moments: int, seed: int) -> Sequence[tuple[float, str]]:
    """A seeded list of blows and the waits before them; each target is in it as often as may be."""
    rng = random.Random(seed)
    each = [*TARGETS, FREEZE]
    targets = (each * (moments // len(each) + 1))[: max(moments, 0)]
    rng.shuffle(targets)
    return [(rng.uniform(*BETWEEN_S), target) for target in targets]


async def survive(folder: Path, moments: int, seed: int) -> Outcome:
    """Strike so often, and see what came of the events."""
    async with scene_in(folder) as scene:
        over = asyncio.Event()
        await scene.set_up()
        happening = asyncio.create_task(scene.happen(over))
        for wait_s, target in plan(moments, seed):
            await asyncio.sleep(wait_s)
            await scene.strike(target)
        await asyncio.sleep(BETWEEN_S[1])
        over.set()
        await happening
        broken = await _all_taken(scene, len(scene.events))
        return judged(scene, moments, broken)


async def _all_taken(scene: Scene, count: int) -> list[str]:
    """Wait until every channel took so many events; what is missing after SETTLED_S."""
    missing: list[str] = []
    for name, server in scene.channels.items():
        try:
            await asyncio.to_thread(
                server.wait, lambda s: len(set(s.event_ids)) >= count, SETTLED_S
            )
        except AssertionError:
            missing.append(f"{name}: {count - len(set(server.event_ids))} events never came")
    return missing


def judged(scene: Scene, moments: int, missing: Sequence[str]) -> Outcome:
    """Hold what came against what happened."""
    broken = list(missing)
    repeats = 0
    for name, server in scene.channels.items():
        came: dict[str, float] = {}
        for heard in server.taken:
            for event_id in heard.event_ids:
                if event_id not in came:
                    came[event_id] = heard.at
                    continue
                repeats += 1
                if not _struck_between(scene, came[event_id], heard.at):
                    broken.append(f"{name}: {event_id} came twice, and nothing was struck between")
                came[event_id] = heard.at
    blows = Counter(target for _, target in scene.blows if target)
    return Outcome(moments, len(scene.events), blows, repeats, broken)


def _struck_between(scene: Scene, first: float, second: float) -> bool:
    """Whether something was struck after the first coming, or while it was being remembered."""
    return any(first - DOWN_S <= at <= second for at, _ in scene.blows)


@asynccontextmanager
async def scene_in(
    folder: Path, judges: Mapping[str, Judge] | None = None, kinds: Sequence[str] = ("fill",)
) -> AsyncIterator[Scene]:
    """Embedded servers, and the processes that events pass through, while the block runs.

    `judges` are channels and how they answer; without them each of CHANNELS takes its time.
    """
    rng = random.Random(0)
    judges = judges or {name: lambda _: Answer(silence_s=rng.uniform(0, 0.05)) for name in CHANNELS}
    async with AsyncExitStack() as stack:
        servers = await stack.enter_async_context(
            embedded_servers(folder / "desk", permissions(), ROLES, database_owner=OWNER_ROLE)
        )
        await migrate(servers.postgres_dsn(OWNER_ROLE))
        channels = {name: stack.enter_context(channel_server()) for name in judges}
        for name, server in channels.items():
            server.judge = judges[name]
            os.environ[f"DESKBUS_NOTIFY_{name.upper()}"] = server.url
            os.environ[f"DESKBUS_NOTIFY_{name.upper()}_KEY"] = "a key of the test's own"
        settings = Settings.model_validate(
            {
                **nested(QUICK),
                "nats": {"url": servers.nats_url},
                "postgres": {"dsn": SecretStr(servers.postgres_address)},
                "secrets_dir": servers.secrets_dir,
                "data_dir": servers.data_dir,
                "notify": Notify.model_validate(
                    {
                        "channels": {
                            name: {"service": "webhook", "timeout_s": 2} for name in channels
                        },
                        "rules": {"all": {"events": list(kinds), "to": list(channels)}},
                    }
                ),
            }
        )
        children = [
            child
            for name, count in PROCESSES.items()
            for child in service_children(name, settings, count)
        ]
        supervisor = await stack.enter_async_context(Supervisor(children))
        yield Scene(servers, supervisor, channels)


def main(arguments: Sequence[str] | None = None) -> None:
    """Strike and tell."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.notices", description=__doc__)
    parser.add_argument("--moments", type=int, default=50)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--keep", action="store_true")
    given = parser.parse_args(arguments)
    with open_folder("deskbus-notices-", keep=given.keep) as folder:
        outcome = asyncio.run(survive(folder, given.moments, given.seed))
    sys.stdout.write(f"{outcome}\n")
    for problem in outcome.broken:
        sys.stderr.write(f"BROKEN: {json.dumps(problem)}\n")
    sys.exit(1 if outcome.broken else 0)


if __name__ == "__main__":
    main()
