"""An orchestrator and services in one process, on real servers, without NATS between them."""

import asyncio
import json
import os
import signal
import sys
from asyncio.subprocess import PIPE
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import pytest
from nats.aio.client import Client
from pydantic import SecretStr

from contracts.cycle import CycleRequest, RequestAnswer
from contracts.message import MESSAGE_BYTES_MAX, Pipeline
from contracts.operation import (
    CallKind,
    Claim,
    ClaimAnswer,
    JournalEntry,
    Record,
    RecordAnswer,
    Result,
    ResultAnswer,
)
from contracts.subjects.commands import COMMANDS
from contracts.subjects.cycles import REQUEST_CYCLE
from contracts.subjects.operations import CLAIM, RECORD, RESULT
from contracts.subjects.subject import ORCHESTRATOR
from libs.bus.client import DeskNotReachable, open_client
from libs.bus.codec import decode, encode
from libs.bus.connection import connect
from libs.bus.local import LocalBus
from libs.bus.permissions import PROVISIONER
from libs.bus.pull import LocalDelivery
from libs.bus.streams import COMMAND_STREAM, Provisioner
from libs.postgres.pool import Pool
from libs.runtime import ids
from libs.runtime.errors import Unavailable
from libs.runtime.journal import Reply
from libs.runtime.settings import Settings
from libs.servers.postgres_server import SUPERUSER
from libs.servers.server_record import ServerRecord
from services.orchestrator import app
from tests.fakes.local_desk import (
    COMMIT_POINTS,
    LANE,
    PAID,
    PICK,
    WORDS,
    WORKFLOW,
    Picked,
    Services,
    renews,
)
from tests.integration.own_servers import OwnServers

DAY = date(2012, 6, 29)
PATIENCE_S = 90.0
AT_ONCE = 6
EVERY = int(os.environ.get("EVERY", "5"))
"""Of the points in a commit, every so many is tried; `make soak` tries all."""
SERVICES = sorted({row.owner for row in COMMANDS})


@pytest.fixture
def settings(servers: OwnServers) -> Settings:
    return Settings(
        data_dir=servers.data_dir,
        nats={"url": servers.nats_url},
        postgres={"dsn": SecretStr(servers.postgres_address)},
        secrets_dir=servers.secrets_dir,
        orchestrator={"sweep_s": 0.1, "resend_after_s": 0.5},
    )


@pytest.fixture
async def nats(servers: OwnServers) -> AsyncIterator[Client]:
    """Looks at the streams; they are new and empty."""
    client = await connect(servers.nats_url, PROVISIONER, servers.secrets_dir)
    await Provisioner(client, COMMANDS).provision()
    await client.jsm().purge_stream(COMMAND_STREAM)
    yield client
    await client.close()


@pytest.fixture
async def local(nats: Client, settings: Settings) -> AsyncIterator[LocalBus]:
    """A running orchestrator, and the bus of its process."""
    made = LocalBus()
    async with app.running(settings, (WORKFLOW,), made):
        yield made


async def begin(local: LocalBus, key: str = "") -> UUID:
    request = CycleRequest(
        idempotency_key=key or uuid4().hex,
        kind="local",
        as_of=DAY,
        pipelines=(Pipeline(name=LANE),),
    )
    answer = await local.ask(REQUEST_CYCLE, "user", encode(request))
    assert answer is not None
    assert decode(RequestAnswer, answer).outcome == "accepted"
    return ids.cycle_id("user", request.idempotency_key)


async def ended(pool: Pool, cycle_id: UUID) -> str:
    """How the cycle ended; asked again where Postgres is away."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            with suppress(Unavailable):
                sql = "select status from cycles where cycle_id = $1"
                status = str(await pool.fetchval(sql, cycle_id))
                if status != "running":
                    return status
            await asyncio.sleep(0.02)  # nothing announces it without the bus


@asynccontextmanager
async def at_work(settings: Settings, local: LocalBus) -> AsyncIterator[Services]:
    """Both services, joined by the bus of a process."""
    services = Services()
    async with AsyncExitStack() as stack:
        for runner in services.runners(settings, local):
            await runner.start()
            stack.push_async_callback(runner.stop)
        yield services


async def on_stream(nats: Client) -> int:
    """Commands to the two services; what earlier tests left open is sent again meanwhile."""
    info = await nats.jsm().stream_info(COMMAND_STREAM, subjects_filter=">")
    owners = {step.serves.owner for state in WORKFLOW.states for step in state.steps}
    counts = (info.state.subjects or {}).items()
    return sum(count for subject, count in counts if subject.split(".")[3] in owners)


async def test_a_cycle_runs_in_one_process_with_every_row_and_no_command_on_the_stream(
    local: LocalBus, settings: Settings, pool: Pool, nats: Client
) -> None:
    async with at_work(settings, local) as services:
        cycles = [await begin(local) for _ in range(20)]
        assert {await ended(pool, each) for each in cycles} == {"completed"}

    assert (services.picked, services.reviewed) == (20, 20)
    assert await on_stream(nats) == 0
    rows = await pool.fetch(
        "select step, status, epoch, sends,"
        " (select count(*) from journal j where j.op_id = o.op_id) as calls"
        " from operations o where cycle_id = any($1)",
        cycles,
    )
    assert {tuple(row) for row in rows} == {
        ("picks", "completed", 1, 1, 4),
        ("review", "completed", 0, 1, 0),
    }
    told = await pool.fetch(
        "select cycle_id, array_agg(type order by id) as types from state_events"
        " where cycle_id = any($1) group by 1",
        cycles,
    )
    assert len({tuple(row["types"]) for row in told}) == 1, "a cycle has other events than another"
    assert {"operation_started", "data_read", "operation_completed"} <= set(told[0]["types"])


async def test_without_a_service_here_its_commands_are_on_the_stream_and_done_once_it_comes(
    local: LocalBus, settings: Settings, pool: Pool, nats: Client
) -> None:
    cycle_id = await begin(local)
    async with asyncio.timeout(PATIENCE_S):
        while not await on_stream(nats):  # noqa: ASYNC110 - published after the answer, by another
            await asyncio.sleep(0.02)

    async with at_work(settings, LocalBus()) as services:  # as in another process
        assert await ended(pool, cycle_id) == "completed"

    assert (services.picked, services.reviewed) == (1, 1)


async def test_a_command_that_was_taken_and_lost_is_sent_again_by_the_sweep(
    local: LocalBus, settings: Settings, pool: Pool, nats: Client
) -> None:
    lost: list[object] = []
    local.line("trader").hear(PICK, lambda handed: lost.append(handed) is None)  # and dies
    cycle_id = await begin(local)
    assert (len(lost), await on_stream(nats)) == (1, 0)

    async with at_work(settings, LocalBus()):
        assert await ended(pool, cycle_id) == "completed"

    sends = await pool.fetchval(
        "select sends from operations where cycle_id = $1 and step = 'picks'", cycle_id
    )
    assert sends >= 2


async def test_a_claimed_command_that_is_handed_over_and_lost_is_sent_again_after_its_lease(
    nats: Client, settings: Settings, pool: Pool
) -> None:
    lost: list[LocalDelivery] = []
    local, quick = LocalBus(), settings.changed(orchestrator={"lease_s": 2.0})
    async with app.running(quick, (WORKFLOW,), local):
        local.line("trader").hear(PICK, lambda handed: lost.append(handed) is None, lambda: 1)
        cycle_id = await begin(local)
        [handed] = lost
        assert handed.granted is not None
        assert (handed.granted.outcome, handed.granted.epoch) == ("granted", 1)
        row = await pool.fetchrow(
            "select status, epoch, started_at is not null as began,"
            " due_at - created_at between interval '1 second' and interval '3 seconds' as leased"
            " from operations where cycle_id = $1",
            cycle_id,
        )
        assert row is not None
        assert tuple(row) == ("running", 1, True, True)
        assert await on_stream(nats) == 0

        async with at_work(quick, LocalBus()):
            assert await ended(pool, cycle_id) == "completed"

    epoch = await pool.fetchval(
        "select epoch from operations where cycle_id = $1 and step = 'picks'", cycle_id
    )
    assert epoch == 2
    await each_row_once(pool, cycle_id)


@pytest.mark.parametrize("thief", [name for name in SERVICES if name != "trader"])
async def test_no_service_claims_records_or_answers_anothers_operation_inside_the_process(
    local: LocalBus, pool: Pool, thief: str
) -> None:
    cycle_id = await begin(local)
    op_id = ids.operation_id(cycle_id, LANE, "picking", "picks", 1)
    owner, line = local.line("trader"), local.line(thief)
    entry = JournalEntry(
        index=0, kind=CallKind.READ, name="x", request_sha256="0" * 64, request={}, reply=1
    )

    async def tried(epoch: int) -> list[str]:
        claim = await line.ask(CLAIM, encode(Claim(op_id=op_id, instance="trader")))
        record = await line.ask(RECORD, encode(Record(op_id=op_id, epoch=epoch, entries=(entry,))))
        body = Picked(cycle_id=cycle_id, op_id=op_id, as_of=DAY).model_dump(mode="json")
        result = await line.ask(RESULT, encode(Result(op_id=op_id, epoch=epoch, contract=body)))
        assert claim is not None
        assert record is not None
        assert result is not None
        return [
            decode(ClaimAnswer, claim).outcome,
            decode(RecordAnswer, record).outcome,
            decode(ResultAnswer, result).outcome,
        ]

    assert await tried(1) == ["forbidden"] * 3
    granted = await owner.ask(CLAIM, encode(Claim(op_id=op_id, instance="trader")))
    assert granted is not None
    assert decode(ClaimAnswer, granted).epoch == 1
    assert await tried(1) == ["forbidden"] * 3

    row = await pool.fetchrow(
        "select status, epoch, result, (select count(*) from journal j where j.op_id = o.op_id)"
        " as calls from operations o where op_id = $1",
        op_id,
    )
    assert row is not None
    assert tuple(row) == ("running", 1, None, 0)
    refused = await pool.fetch(
        "select data from state_events where cycle_id = $1 and type = 'message_refused'", cycle_id
    )
    assert len(refused) == 3, "each forged sort is on record once"


async def test_what_is_said_again_late_or_for_nothing_inside_the_process_changes_nothing(
    local: LocalBus, settings: Settings, pool: Pool
) -> None:
    async with at_work(settings, local):
        cycle_id = await begin(local)
        assert await ended(pool, cycle_id) == "completed"
    op_id = ids.operation_id(cycle_id, LANE, "picking", "picks", 1)
    line = local.line("trader")
    before = await rows_of(pool, cycle_id)
    again = Result(op_id=op_id, epoch=1, contract={"value": "other"})

    async def said(result: Result) -> str:
        answer = await line.ask(RESULT, encode(result))
        assert answer is not None
        return decode(ResultAnswer, answer).outcome

    results = (
        again,
        again.model_copy(update={"epoch": 9}),
        again.model_copy(update={"epoch": None}),
        again.model_copy(update={"op_id": uuid4()}),
    )
    assert [await said(each) for each in results] == ["ok", "fenced", "fenced", "unknown"]
    claim = await line.ask(CLAIM, encode(Claim(op_id=op_id, instance="late")))
    record = await line.ask(RECORD, encode(Record(op_id=op_id, epoch=1)))
    assert claim is not None
    assert decode(ClaimAnswer, claim).outcome == "done"
    assert record is not None
    assert decode(RecordAnswer, record).outcome == "cancelled"
    assert await rows_of(pool, cycle_id) == before


# --- what cannot be kept --------------------------------------------------------------------------


def nested(depth: int) -> Any:
    """A list in a list, so many times."""
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


UNKEEPABLE = {
    "a NUL": Reply({"thought": "a\x00b"}, PAID),
    "half a surrogate pair": Reply({"thought": "\ud800"}, PAID),
    "no number": Reply({"thought": float("nan")}, PAID),
    "too deep": Reply(nested(230), PAID),
    "too long": Reply("x" * 2 * MESSAGE_BYTES_MAX, PAID),
    "too dear": Reply(1, PAID.model_copy(update={"cost_usd": Decimal(10**12)})),
    "too many tokens": Reply(1, PAID.model_copy(update={"input_tokens": 10**30})),
    "too many for the table": Reply(1, PAID.model_copy(update={"input_tokens": 2**63})),
}


@pytest.mark.parametrize(
    ("what", "over"), [*((what, "a line") for what in UNKEEPABLE), ("too dear", "the bus")]
)
async def test_a_paid_call_that_cannot_be_kept_fails_its_operation_once_and_is_counted(
    local: LocalBus, settings: Settings, pool: Pool, what: str, over: str
) -> None:
    bus = local if over == "a line" else LocalBus()
    async with at_work(settings, bus) as services:
        services.reply = UNKEEPABLE[what]
        cycle_id = await begin(local)
        assert await ended(pool, cycle_id) == "failed"
    # By cycle: commands that earlier tests left open may be sent again meanwhile.
    assert services.paid[cycle_id] == 1
    [row] = await pool.fetch(
        "select status, epoch, tokens, failure->>'code' as code, failure->>'message' as message"
        " from operations where cycle_id = $1",
        cycle_id,
    )
    assert (row["status"], row["epoch"], row["code"]) == ("failed", 1, "not_storable")
    assert row["tokens"] == PAID.tokens, "it is in the budget, and no more than was held for it"
    bodies = await pool.fetch(
        "select entry from journal join operations using (op_id)"
        " where cycle_id = $1 order by index",
        cycle_id,
    )
    entries = [JournalEntry.model_validate_json(body["entry"]) for body in bodies]
    assert [entry.fault.get("code") for entry in entries] == [None, None, "not_storable"]


@pytest.mark.parametrize("step", ["picks", "review"])
async def test_a_result_that_cannot_be_kept_fails_its_operation_once_with_the_reason(
    local: LocalBus, settings: Settings, pool: Pool, step: str
) -> None:
    async with at_work(settings, local) as services:
        note = "a\x00b"
        if step == "picks":
            services.picked_note = note
        else:
            services.reviewed_note = note
        cycle_id = await begin(local)
        assert await ended(pool, cycle_id) == "failed"
    assert services.paid[cycle_id] == 1
    failure = await pool.fetchrow(
        "select failure->>'code' as code, failure->>'message' as message from operations"
        " where cycle_id = $1 and step = $2 and status = 'failed'",
        cycle_id,
        step,
    )
    assert failure["code"] == "not_storable"
    assert "NUL" in failure["message"]


async def test_no_line_is_the_orchestrators(local: LocalBus) -> None:
    line = local.line(ORCHESTRATOR)
    assert await line.ask(RESULT, encode(Result(op_id=UUID(int=1), contract={}))) is None


# --- a server is away ---------------------------------------------------------------------------


async def test_while_nats_hears_nothing_a_cycle_of_one_process_comes_to_its_end(
    local: LocalBus, settings: Settings, pool: Pool, servers: OwnServers
) -> None:
    nats_pid = ServerRecord.load(servers.data_dir).processes["nats"].pid
    async with at_work(settings, local):
        os.kill(nats_pid, signal.SIGSTOP)
        try:
            cycle_id = await begin(local)
            assert await ended(pool, cycle_id) == "completed"
        finally:
            os.kill(nats_pid, signal.SIGCONT)

    await each_row_once(pool, cycle_id)


async def test_postgres_lost_before_every_word_that_it_commits_the_cycle_has_each_row_once(
    local: LocalBus,
    settings: Settings,
    pool: Pool,
    servers: OwnServers,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ask, lost_before, key = LocalBus.ask, list[str](), uuid4().hex
    cycle_id = ids.cycle_id("user", key)
    # Operations that earlier tests have left are sent again meanwhile.
    own = {
        str(ids.operation_id(cycle_id, LANE, *place, 1))
        for place in (("picking", "picks"), ("reviewing", "review"))
    }
    admin = await asyncpg.connect(servers.postgres_dsn(SUPERUSER))
    one_at_a_time = asyncio.Lock()

    async def lost_first(bus: LocalBus, row: Any, identity: str, body: bytes) -> bytes | None:
        asked = row in (CLAIM, RECORD, RESULT) and json.loads(body)["op_id"] in own
        if asked and not renews(row, body):
            lost_before.append(row.what)
            async with one_at_a_time:
                await admin.execute(
                    "select pg_terminate_backend(pid) from pg_stat_activity"
                    " where datname = current_database() and pid <> pg_backend_pid()"
                )
        return await ask(bus, row, identity, body)

    try:
        async with at_work(settings, local):
            with monkeypatch.context() as patch:
                patch.setattr(LocalBus, "ask", lost_first)
                assert await begin(local, key) == cycle_id
                assert await ended(pool, cycle_id) == "completed"
    finally:
        await admin.close()

    # More where a lease ran out meanwhile: somebody else then had the work.
    assert Counter(lost_before) >= Counter(record=3, result=2)
    await each_row_once(pool, cycle_id)


# --- killed between any two words --------------------------------------------------------------


@asynccontextmanager
async def process(settings: Settings, die_at: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """The desk as a process of its own, at work; ended at the end of the block."""
    environment = {
        **os.environ,
        **settings.environment,
        "DESKBUS_ORCHESTRATOR_SWEEP_S": "0.1",
        "DESKBUS_ORCHESTRATOR_RESEND_AFTER_S": "0.3",
        "DESKBUS_ORCHESTRATOR_LEASE_S": "0.5",
        "DIE_AT": die_at,
    }
    argv = (sys.executable, "-m", "tests.fakes.local_desk")
    running = await asyncio.create_subprocess_exec(
        *argv, env=environment, stdout=PIPE, cwd=Path(__file__).parents[3]
    )
    assert running.stdout is not None
    try:
        async with asyncio.timeout(PATIENCE_S):
            while (line := await running.stdout.readline()) != b"ready\n":
                assert line, "it ended before it was ready"
        # Its log: a pipe that nobody empties would stop it, and its end would not be heard.
        emptying = asyncio.create_task(running.stdout.read())
        yield running
    finally:
        if running.returncode is None:
            running.kill()
        await running.wait()
    await emptying


@asynccontextmanager
async def next_desk(settings: Settings) -> AsyncIterator[None]:
    """A desk in the test's own process: it finds what the killed one left in Postgres and NATS."""
    quick = {"sweep_s": 0.1, "resend_after_s": 0.3, "lease_s": 0.5}
    orchestrator = settings.orchestrator.model_copy(update=quick)
    own, local = settings.model_copy(update={"orchestrator": orchestrator}), LocalBus()
    async with app.running(own, (WORKFLOW,), local), at_work(own, local):
        yield


async def request(settings: Settings, key: str) -> None:
    """Have the cycle accepted; asked for once."""
    wish = CycleRequest(
        idempotency_key=key, kind="local", as_of=DAY, pipelines=(Pipeline(name=LANE),)
    )
    async with open_client(settings.nats_address, settings.secrets_path, "user") as user:
        answer = await user.ask(REQUEST_CYCLE, wish, timeout_s=2.0)
    assert answer.outcome == "accepted"


async def accepted(settings: Settings, key: str) -> None:
    """Ask for the cycle until somebody answers."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            with suppress(DeskNotReachable):
                return await request(settings, key)


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("number", range(1, len(WORDS) + 1), ids=WORDS)
async def test_killed_at_any_word_the_cycle_completes_with_each_row_once(
    settings: Settings, pool: Pool, nats: Client, number: int, when: str
) -> None:
    del nats  # the streams are there
    key = uuid4().hex
    cycle_id = ids.cycle_id("user", key)

    async with process(settings, f"{number}-{when}") as first:
        with suppress(DeskNotReachable):  # the answer may die with it
            await request(settings, key)
        async with asyncio.timeout(PATIENCE_S):
            assert await first.wait() == -signal.SIGKILL
    async with next_desk(settings):
        await accepted(settings, key)
        assert await ended(pool, cycle_id) == "completed"

    await each_row_once(pool, cycle_id)


@pytest.mark.parametrize("point", COMMIT_POINTS[::EVERY])
async def test_killed_between_steps_of_a_commit_all_cycles_complete_with_each_row_once(
    settings: Settings, pool: Pool, nats: Client, point: str
) -> None:
    del nats  # the streams are there
    keys: list[str] = []
    async with process(settings, point) as first:

        async def ask_for_cycles() -> None:
            while first.returncode is None:
                keys.append(uuid4().hex)
                with suppress(DeskNotReachable):  # the answer may die with it
                    await request(settings, keys[-1])

        async with asyncio.timeout(PATIENCE_S):
            await asyncio.gather(*(ask_for_cycles() for _ in range(AT_ONCE)))
            assert await first.wait() == -signal.SIGKILL
    async with next_desk(settings):
        for key in keys:
            await accepted(settings, key)
            cycle_id = ids.cycle_id("user", key)
            assert await ended(pool, cycle_id) == "completed"
            await each_row_once(pool, cycle_id)


async def rows_of(pool: Pool, cycle_id: UUID) -> list[list[tuple[Any, ...]]]:
    """All that is on record of a cycle."""
    return [
        [
            tuple(row)
            for row in await pool.fetch(
                f"select * from {table} where cycle_id = $1 order by 1, 2", cycle_id
            )
        ]
        for table in ("cycles", "operations", "state_events")
    ]


async def each_row_once(pool: Pool, cycle_id: UUID) -> None:
    """Every operation, call and event of the cycle is there, and no second time; no money is held
    back."""
    rows = await pool.fetch(
        "select step, status, (select array_agg(index order by index) from journal j"
        " where j.op_id = o.op_id) from operations o where cycle_id = $1 order by step",
        cycle_id,
    )
    assert [tuple(row) for row in rows] == [
        ("picks", "completed", [0, 1, 2, 3]),
        ("review", "completed", None),
    ]
    told = await pool.fetch(
        "select type, count(*) from state_events where cycle_id = $1 group by type", cycle_id
    )
    counts = {row["type"]: row["count"] for row in told}
    epoch = await pool.fetchval(
        "select epoch from operations where cycle_id = $1 and step = 'picks'", cycle_id
    )
    # Whoever has the work next begins the call anew where its reply was not on record: once each,
    # of whom there are more where a busy machine keeps somebody for longer than the lease.
    assert counts.pop("llm_requested") in range(1, epoch + 1)
    assert counts == {
        "cycle_accepted": 1,
        "state_entered": 2,
        "operation_started": 1,  # of claimed work alone
        "data_read": 3,
        "llm_called": 1,
        "operation_completed": 2,
        "pipeline_ended": 1,
        "cycle_ended": 1,
    }
    held = await pool.fetchval(
        "select sum(tokens_reserved) + (select tokens_reserved from cycles where cycle_id = $1)"
        " from operations where cycle_id = $1",
        cycle_id,
    )
    assert held == 0
