"""The console on real servers, asked over the real bus; rows are written by hand."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID, uuid4

import httpx2
import orjson
import pytest
from pydantic import SecretStr

from contracts.message import Pipeline
from contracts.operation import JournalEntry
from contracts.subjects.commands import COMMANDS
from libs.bus.client import Client, open_client
from libs.bus.connection import connect
from libs.bus.permissions import PROVISIONER
from libs.bus.service import ServiceRunner
from libs.bus.streams import Provisioner
from libs.postgres.pool import OWNER_ROLE, PoolConnection, open_pool
from libs.runtime import ids
from libs.runtime.settings import Settings
from libs.servers.embedded import Servers
from libs.servers.embedded_thread import held_in_thread
from services.console.app import service
from tests.integration.conftest import ServersIn, migrated_servers
from tests.integration.console.over_http import client_of, serving
from tests.integration.own_servers import OwnServers

AS_OF = date(2012, 6, 29)
NOW = datetime(2026, 11, 22, 2, 0, tzinfo=UTC)


@pytest.fixture(scope="session")
def servers(servers_in: ServersIn) -> Iterator[OwnServers]:
    """One pair of servers for all tests here; each test makes cycles and accounts of its own."""
    with migrated_servers(servers_in) as held:
        asyncio.run(_provision(held))
        yield held


async def _provision(servers: OwnServers) -> None:
    client = await connect(servers.nats_url, PROVISIONER, servers.secrets_dir)
    await Provisioner(client, COMMANDS).provision()
    await client.close()


@pytest.fixture(scope="session")
def settings(servers: Servers) -> Settings:
    """The settings a service gets."""
    return Settings(
        data_dir=servers.data_dir,
        nats={"url": servers.nats_url},
        postgres={"dsn": SecretStr(servers.postgres_address)},
        secrets_dir=servers.secrets_dir,
    )


@pytest.fixture(scope="module")
def url(settings: Settings) -> Iterator[str]:
    """Where one console answers over HTTP for most tests of a file."""
    with held_in_thread(lambda: serving(settings)) as held:
        yield held
        # The rows that a file leaves are those that the next one finds, in any order of files.
        for path in ("/", "/api/v1/agent/status"):
            answer = httpx2.get(f"{held}{path}", timeout=30)
            assert answer.status_code == 200, f"rows of this file's tests break {path}: see the log"


@pytest.fixture
async def http(url: str) -> AsyncIterator[httpx2.AsyncClient]:
    async with client_of(url) as client:
        yield client


@pytest.fixture
async def client(servers: Servers, settings: Settings) -> AsyncIterator[Client]:
    """The CLI's side of a running console."""
    async with AsyncExitStack() as stack:
        routes = await stack.enter_async_context(service(settings))
        runner = ServiceRunner(routes, servers.nats_url, settings)
        await runner.start()
        stack.push_async_callback(runner.stop)
        yield await stack.enter_async_context(open_client(servers.nats_url, servers.secrets_dir))


@pytest.fixture
async def db(servers: Servers) -> AsyncIterator[PoolConnection]:
    """A connection that may write anything."""
    async with (
        open_pool(servers.postgres_dsn(OWNER_ROLE), size_max=2) as pool,
        pool.acquire() as held,
    ):
        yield held


@dataclass
class Made:
    """A cycle written by hand; operations and events are added to it."""

    db: PoolConnection
    cycle_id: UUID
    pipelines: tuple[Pipeline, ...]
    count: int = 0

    def op_id(self, state: str, step: str, pipeline: str = "rules", attempt: int = 1) -> UUID:
        """The id of an operation."""
        return ids.operation_id(self.cycle_id, pipeline, state, step, attempt)

    async def operation(
        self,
        state: str,
        step: str,
        *,
        pipeline: str = "rules",
        status: str = "completed",
        command: Any = None,
        result: Any = None,
        failure: Any = None,
        calls: int = 0,
        call_chars: int = 10,
    ) -> UUID:
        """Insert an operation with its journal; later ones are younger."""
        op_id = self.op_id(state, step, pipeline)
        self.count += 1
        at = NOW + timedelta(milliseconds=self.count)
        await self.db.execute(
            "insert into operations (op_id, cycle_id, started_on, pipeline, account, state, step,"
            " service, attempt, as_of, status, claimed, must_answer, epoch, command, result,"
            " failure, tokens, cost_usd, due_at, created_at, started_at, finished_at)"
            " values ($1, $2, $3, $4, 'main', $5, $6, 'research', 1, $7, $8, true, false, 1, $9,"
            " $10, $11, 100, 0.5, $12, $12, $12, $12)",
            op_id,
            self.cycle_id,
            NOW.date(),
            pipeline,
            state,
            step,
            AS_OF,
            status,
            orjson.dumps(command or {"step": step}),
            None if result is None else orjson.dumps(result),
            None if failure is None else orjson.dumps(failure).decode(),
            at,
        )
        for index in range(calls):
            entry = JournalEntry(
                index=index,
                kind="tool",
                name=f"tool {index}",
                request_sha256="0" * 64,
                request=None,
                reply="x" * call_chars,
                duration_ms=2.0,
            )
            await self.db.execute(
                "insert into journal (started_on, op_id, index, epoch, entry)"
                " values ($1, $2, $3, 1, $4)",
                NOW.date(),
                op_id,
                index,
                entry.model_dump_json().encode(),
            )
        return op_id

    async def event(self, number: int, kind: str = "state_entered", **data: Any) -> None:
        """Append an event."""
        await self.db.execute(
            "insert into state_events (started_on, op_id, seq, cycle_id, type, owner, pipeline,"
            " state, data) values ($1, $2, $3, $4, $5, 'orchestrator', 'rules', 'planning', $6)",
            NOW.date(),
            self.cycle_id,
            number,
            self.cycle_id,
            kind,
            orjson.dumps(data).decode(),
        )

    async def lanes(self, **outputs: dict[str, UUID]) -> None:
        """Write the state machine's state: which operation made each contract, by lane."""
        state = {
            "main": self.pipelines[0].name,
            "lanes": {
                name: {
                    "name": name,
                    "state": "planning",
                    "live": {},
                    "done": [],
                    "outputs": {what: str(op_id) for what, op_id in made.items()},
                    "ending": {"status": "completed", "reason": ""},
                    "substitutes": [],
                    "status": "completed",
                    "entered": 1,
                }
                for name, made in outputs.items()
            },
        }
        await self.db.execute(
            "update cycles set state = $2 where cycle_id = $1", self.cycle_id, orjson.dumps(state)
        )


@pytest.fixture
async def made(db: PoolConnection) -> Made:
    """A completed cycle with one pipeline."""
    pipelines = (Pipeline(name="rules"),)
    cycle = Made(db, uuid4(), pipelines)
    await db.execute(
        "insert into cycles (cycle_id, kind, workflow_version, requester, idempotency_key,"
        " body_sha256, request, as_of, started_on, status, reason, state, accepted_at,"
        " deadline_at, ended_at, tokens_max, cost_usd_max, tokens_spent, cost_usd_spent)"
        " values ($1, 'decision', 1, 'cli', $2, '', $3, $4, $5, 'completed', '', '', $6, $6, $7,"
        " 1000, 10, 300, $8)",
        cycle.cycle_id,
        str(cycle.cycle_id),
        orjson.dumps({"pipelines": [each.model_dump() for each in pipelines]}),
        AS_OF,
        NOW.date(),
        datetime.now(UTC),
        datetime.now(UTC) + timedelta(seconds=1),
        Decimal("1.5"),
    )
    await cycle.lanes(shared={}, rules={})
    return cycle
