"""Least privilege: what each identity may not do on NATS, and each role in Postgres."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from uuid import UUID, uuid4

import asyncpg
import nats
import nats.errors
import pytest
import pytest_asyncio
from nats.aio.client import Client

from contracts.cycle import CycleStatus
from contracts.operation import Claim, ClaimAnswer, Record, RecordAnswer, Result, ResultAnswer
from contracts.subjects.commands import COMMANDS
from contracts.subjects.operations import CLAIM, RECORD, RESULT
from contracts.subjects.subject import PREFIX, USERS, Answered, Asked, Subject
from libs.bus.codec import decode, encode
from libs.bus.connection import options
from libs.bus.permissions import CONSOLE, PROVISIONER
from libs.postgres.pool import CONSOLE_ROLE, EXECUTION_ROLE, ORCHESTRATOR_ROLE
from libs.runtime import ids
from tests.chaos.desk import ChaosDesk
from tests.chaos.load import User, user_of
from tests.fakes.chaos_workflow import Behaviour

pytestmark = pytest.mark.asyncio(loop_scope="session")

DEADLINE_S = 30.0
SERVICES = sorted({row.owner for row in COMMANDS})
STRANGERS = [*SERVICES, CONSOLE, PROVISIONER, *USERS]
CYCLE = UUID(int=7)


@asynccontextmanager
async def as_identity(
    desk: ChaosDesk, identity: str
) -> AsyncIterator[tuple[Client, asyncio.Queue[str]]]:
    """A connection under one identity's key, and what the server refuses it."""
    refused: asyncio.Queue[str] = asyncio.Queue()

    async def on_error(error: Exception) -> None:
        refused.put_nowait(str(error))

    given = {**options(identity, desk.settings.secrets_path), "error_cb": on_error}
    client = await nats.connect(desk.settings.nats_address, **given)
    try:
        yield client, refused
    finally:
        await client.close()


def not_to_publish(identity: str) -> Sequence[str]:
    """Subjects that are the orchestrator's, or end with somebody else's name."""
    others = [name for name in (*SERVICES, *USERS) if name != identity]
    return [
        f"{PREFIX}.cmd.execution.execute",
        f"{PREFIX}.cmd.{identity}.anything",
        f"{PREFIX}.evt.orchestrator.decision.{CYCLE}",
        f"{PREFIX}.evt.orchestrator.cycle_ended.{CYCLE}",
        f"{PREFIX}.ctl.risk.cancel",
        *(
            f"{PREFIX}.qry.orchestrator.{what}.{others[0]}"
            for what in ("claim", "record", "result")
        ),
        f"{PREFIX}.qry.execution.portfolio.{others[0]}",
        f"{PREFIX}.req.orchestrator.cycle.{'cli' if identity != 'cli' else 'user'}",
        f"{PREFIX}.dlq.{others[0]}.anything",
        f"_INBOX_{PROVISIONER}.forged",  # whom nobody of the desk answers
    ]


def not_to_hear(identity: str) -> Sequence[str]:
    """Other people's answers, other services' work, and everything at once."""
    other = next(name for name in SERVICES if name != identity)
    return [
        ">",
        f"_INBOX_{other}.>",
        "_INBOX_orchestrator.>",
        "_INBOX.>",
        f"{PREFIX}.cmd.>",
        f"{PREFIX}.ctl.{other}.>",
        f"{PREFIX}.qry.orchestrator.>",
        f"{PREFIX}.req.orchestrator.>",
        f"{PREFIX}.dlq.>",
        "$JS.>",
    ]


@pytest.mark.parametrize("identity", STRANGERS)
async def test_an_identity_may_publish_nothing_of_the_orchestrators_or_anothers(
    desk: ChaosDesk, identity: str
) -> None:
    async with asyncio.timeout(DEADLINE_S), as_identity(desk, identity) as (client, refused):
        for subject in not_to_publish(identity):
            await client.publish(subject, b"{}")
            # nats-py tells errors in lower case.
            said = await refused.get()
            assert f'violation for publish to "{subject.lower()}"' in said.lower(), subject


@pytest.mark.parametrize("identity", STRANGERS)
async def test_an_identity_may_hear_nobody_elses_answers_and_work(
    desk: ChaosDesk, identity: str
) -> None:
    async with asyncio.timeout(DEADLINE_S), as_identity(desk, identity) as (client, refused):
        for subject in not_to_hear(identity):
            await client.subscribe(subject)
            said = (await refused.get()).lower()
            assert f'violation for subscription to "{subject.lower()}"' in said, subject


@pytest.mark.parametrize("identity", SERVICES)
async def test_a_service_may_not_change_streams_or_anothers_consumer(
    desk: ChaosDesk, identity: str
) -> None:
    other = next(row for row in COMMANDS if row.owner != identity)
    subjects = (
        "$JS.API.STREAM.PURGE.COMMANDS",
        "$JS.API.STREAM.DELETE.COMMANDS",
        "$JS.API.STREAM.MSG.GET.COMMANDS",
        f"$JS.API.CONSUMER.DELETE.COMMANDS.{other.durable}",
        f"$JS.API.CONSUMER.MSG.NEXT.COMMANDS.{other.durable}",
        f"$JS.ACK.COMMANDS.{other.durable}.1.1.1.1.1",
    )
    async with asyncio.timeout(DEADLINE_S), as_identity(desk, identity) as (client, refused):
        for subject in subjects:
            await client.publish(subject, b"{}")
            assert "violation for publish" in (await refused.get()).lower(), subject


async def test_without_a_key_nobody_gets_in(desk: ChaosDesk) -> None:
    with pytest.raises((nats.errors.Error, OSError)):
        await nats.connect(
            desk.settings.nats_address, allow_reconnect=False, max_reconnect_attempts=0
        )


async def _ask(
    client: Client, row: Subject[Asked, Answered], caller: str, message: Asked
) -> Answered:
    answer = await client.request(row.by(caller), encode(message), timeout=DEADLINE_S)
    return decode(row.reply, answer.data)


@pytest.fixture(params=["desk", "joined_desk"])
def either_desk(request: pytest.FixtureRequest) -> ChaosDesk:
    """A desk of processes, and one whose services hear and say nothing on the wire."""
    running: ChaosDesk = request.getfixturevalue(request.param)
    return running


@pytest_asyncio.fixture(loop_scope="session")
async def visitor(either_desk: ChaosDesk) -> AsyncIterator[User]:
    """A user of that desk, which is whole."""
    async with asyncio.timeout(DEADLINE_S):
        await either_desk.whole()
    async with user_of(either_desk.settings) as connected:
        yield connected


async def test_claim_record_and_result_of_another_service_are_refused_and_told(
    either_desk: ChaosDesk, visitor: User
) -> None:
    request = visitor.request("forged", "single", ("alpha",), behaviour=Behaviour.SLOW)
    cycle_id = visitor.cycle_id(request)
    op_id = ids.operation_id(cycle_id, "alpha", "working", "work", 1)
    async with asyncio.timeout(DEADLINE_S), as_identity(either_desk, "clerk") as (client, _):
        cycle = asyncio.create_task(visitor.run(request))
        await either_desk.model.saw("begin", op_id, 0)
        claim = await _ask(client, CLAIM, "clerk", Claim(op_id=op_id, instance="clerk"))
        record = await _ask(client, RECORD, "clerk", Record(op_id=op_id, epoch=1))
        forged = Result(op_id=op_id, epoch=1, contract={"value": "forged"})
        result = await _ask(client, RESULT, "clerk", forged)
        assert await cycle is CycleStatus.COMPLETED
    assert claim == ClaimAnswer(outcome="forbidden")
    assert record == RecordAnswer(outcome="forbidden")
    assert result == ResultAnswer(outcome="forbidden")
    async with either_desk.database() as db:
        told = await db.fetch(
            "select data ->> 'what' as what, data ->> 'service' as service from state_events"
            " where cycle_id = $1 and type = 'message_refused' order by 1",
            cycle_id,
        )
        stored = await db.fetchval("select result from operations where op_id = $1", op_id)
    assert [tuple(row) for row in told] == [
        ("claim", "clerk"),
        ("record", "clerk"),
        ("result", "clerk"),
    ]
    assert b"forged" not in stored


async def test_a_result_told_again_late_or_for_nothing_changes_nothing(
    either_desk: ChaosDesk, visitor: User
) -> None:
    request = visitor.request("repeated", "single", ("alpha",))
    cycle_id = visitor.cycle_id(request)
    op_id = ids.operation_id(cycle_id, "alpha", "working", "work", 1)
    async with asyncio.timeout(DEADLINE_S), as_identity(either_desk, "thinker") as (client, _):
        assert await visitor.run(request) is CycleStatus.COMPLETED
        before = await _rows(either_desk, cycle_id)
        again = Result(op_id=op_id, epoch=1, contract={"value": "other"})
        answers = [
            await _ask(client, RESULT, "thinker", each)
            for each in (
                again,
                again.model_copy(update={"epoch": 9}),
                again.model_copy(update={"op_id": uuid4()}),
            )
        ]
        assert answers == [ResultAnswer(outcome=o) for o in ("ok", "fenced", "unknown")]
        claim = await _ask(client, CLAIM, "thinker", Claim(op_id=op_id, instance="late"))
        assert claim == ClaimAnswer(outcome="done")
    assert await _rows(either_desk, cycle_id) == before


async def _rows(desk: ChaosDesk, cycle_id: UUID) -> list[list[asyncpg.Record]]:
    async with desk.database() as db:
        return [
            await db.fetch(f"select * from {table} where cycle_id = $1 order by 1, 2", cycle_id)
            for table in ("cycles", "operations", "state_events")
        ]


CORE = ("cycles", "operations", "journal", "state_events", "relay_cursor", "day_budgets")
LEDGER = ("accounts", "orders", "fills", "snapshots")
APPEND_ONLY = ("update state_events set type = type", "delete from state_events")
FORBIDDEN = {
    CONSOLE_ROLE: [f"delete from {table}" for table in (*CORE, *LEDGER)]
    + [f"insert into {table} default values" for table in (*CORE, *LEDGER)]
    + ["update cycles set status = 'completed'", "create table mine (x int)", *APPEND_ONLY],
    EXECUTION_ROLE: [f"delete from {table}" for table in CORE]
    + [f"select * from {table}" for table in ("cycles", "operations", "journal")]
    + ["update operations set status = 'completed'", "insert into journal default values"]
    + ["update relay_cursor set id = 0", "create table mine (x int)", *APPEND_ONLY],
    ORCHESTRATOR_ROLE: [f"delete from {table}" for table in (*CORE, *LEDGER)]
    + [f"insert into {table} default values" for table in LEDGER]
    + ["update snapshots set session = session", "update orders set status = status"]
    + ["create table mine (x int)", "drop table journal", "update journal set epoch = 1"]
    + list(APPEND_ONLY),
}


@pytest.mark.parametrize("role", FORBIDDEN)
async def test_a_role_is_refused_what_is_not_its_own(desk: ChaosDesk, role: str) -> None:
    async with desk.database(role) as db:
        for statement in FORBIDDEN[role]:
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await db.execute(statement)
