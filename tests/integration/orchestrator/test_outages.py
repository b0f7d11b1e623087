"""Postgres cannot commit: nobody is answered before it can, and nothing is refused for it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, cast
from uuid import UUID, uuid4

import asyncpg
import pytest
import structlog.testing

from contracts.cycle import CycleRequest, RequestAnswer
from contracts.message import Command, Message, Pipeline
from contracts.operation import Result, ResultAnswer
from contracts.subjects.operations import RESULT
from contracts.subjects.subject import AnySubject
from contracts.types import Failure
from libs.bus.publisher import Publisher
from libs.postgres.pool import OWNER_ROLE, DatabaseDamaged
from libs.runtime import ids
from libs.runtime.errors import is_outage
from libs.servers.embedded import Servers
from libs.servers.postgres_server import SUPERUSER
from services.orchestrator.commit import NotCommitted
from services.orchestrator.group.inputs import CancelRequested
from services.orchestrator.handler import Handler
from services.orchestrator.preflight import Preflight
from services.orchestrator.store import sql
from tests.integration.orchestrator.conftest import CONTRACTS, DAY, LANE, Orchestrators

UNANSWERED_S = 0.5
BREAKS = {
    "the role may not write": "revoke insert on state_events from deskbus_orchestrator",
    "a table is not there": "alter table state_events rename to state_events_gone",
}
MENDS = {
    "the role may not write": "grant insert on state_events to deskbus_orchestrator",
    "a table is not there": "alter table state_events_gone rename to state_events",
}

Answer = Callable[[str, Message], Awaitable[Message | None]]


class Served:
    """As much of a server as the handler needs: what it answers, by what is asked."""

    def __init__(self) -> None:
        self.answers: dict[str, Answer] = {}

    async def serve(self, row: AnySubject, answer: Answer, _: object = None) -> None:
        self.answers[row.what] = answer


@pytest.fixture
async def told(orchestrators: Orchestrators) -> Callable[[Result], Awaitable[Message | None]]:
    """What the orchestrator answers to a service's result."""
    none = cast(Any, None)
    committer = orchestrators.committers[0]
    handler = Handler(committer, cast(Publisher, None), none, none, none, none, UNANSWERED_S, none)
    served = Served()
    await handler.serve(cast(Any, served))
    return lambda result: served.answers[RESULT.what]("maker", result)


@pytest.fixture
async def owner(servers: Servers) -> AsyncIterator["asyncpg.Connection[asyncpg.Record]"]:
    db = await asyncpg.connect(servers.postgres_dsn(OWNER_ROLE))
    yield db
    await db.close()


async def result_of(orchestrators: Orchestrators, cycle_id: UUID, step: str) -> Result:
    op_id = ids.operation_id(cycle_id, LANE, "sides", step, 1)
    row = "select command from operations where op_id = $1"
    command = Command.model_validate_json(await orchestrators.pool.fetchval(row, op_id))
    contract = CONTRACTS[step].of(command).model_dump(mode="json")
    return Result(op_id=op_id, contract=contract)


@pytest.mark.parametrize("why", BREAKS)
async def test_a_result_is_not_answered_while_the_database_is_not_in_order(
    orchestrators: Orchestrators,
    told: Callable[[Result], Awaitable[Message | None]],
    owner: "asyncpg.Connection[asyncpg.Record]",
    why: str,
) -> None:
    cycle_id = await orchestrators.begin()
    result = await result_of(orchestrators, cycle_id, "left")
    await owner.execute(BREAKS[why])
    try:
        assert await told(result) is None
    finally:
        await owner.execute(MENDS[why])
    assert ("left", "pending") in await orchestrators.steps(cycle_id)

    assert await told(result) == ResultAnswer(outcome="ok")
    assert ("left", "completed") in await orchestrators.steps(cycle_id)


async def test_a_result_that_cannot_be_stored_ends_its_operation_before_it_is_answered(
    orchestrators: Orchestrators, told: Callable[[Result], Awaitable[Message | None]]
) -> None:
    cycle_id = await orchestrators.begin()
    result = await result_of(orchestrators, cycle_id, "left")
    assert isinstance(result.contract, dict)
    # A text that JSON can hold and Postgres cannot, past the checks at the edge.
    broken = result.model_copy(update={"failure": _failure_with_nul()})
    assert await told(broken) == ResultAnswer(outcome="ok")
    assert ("left", "failed") in await orchestrators.steps(cycle_id)


def _failure_with_nul() -> Failure:
    return Failure.model_construct(code="broken", message="a\0b", field=None)


@asynccontextmanager
async def read_only(servers: Servers) -> AsyncIterator[None]:
    """The database writes nothing while the block runs."""
    db = await asyncpg.connect(servers.postgres_dsn(SUPERUSER))
    await db.execute("set default_transaction_read_only = off")
    try:
        await db.execute("alter database deskbus set default_transaction_read_only = on")
        await db.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity"
            " where datname = 'deskbus' and pid <> pg_backend_pid()"
        )
        yield
        await db.execute("alter database deskbus reset default_transaction_read_only")
    finally:
        await db.close()


async def test_a_committer_leaves_a_connection_that_can_only_read_and_commits_by_another(
    orchestrators: Orchestrators, servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = structlog.testing.CapturingLogger()
    monkeypatch.setattr("services.orchestrator.commit.log", log)
    cycle_id = await orchestrators.begin()
    async with read_only(servers):
        answering = asyncio.ensure_future(orchestrators.answer(0, cycle_id, "left"))
        async with asyncio.timeout(30):
            while not any("read-only" in str(call) for call in log.calls):  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        assert not answering.done()
    # The setting is one of new connections: the old one would go on to refuse.
    assert await asyncio.wait_for(answering, 30) == "ok"


async def test_a_request_is_not_answered_while_the_database_is_not_in_order(
    orchestrators: Orchestrators, owner: "asyncpg.Connection[asyncpg.Record]"
) -> None:
    async def outlook_of(*_: object) -> Preflight:
        return Preflight()

    async def no_version() -> None:
        return None

    none, committer = cast(Any, None), orchestrators.committers[0]
    handler = Handler(committer, none, none, no_version, outlook_of, none, UNANSWERED_S, none)
    request = CycleRequest(
        idempotency_key=uuid4().hex, kind="join", as_of=DAY, pipelines=(Pipeline(name=LANE),)
    )
    await owner.execute(BREAKS["the role may not write"])
    try:
        assert await handler.cycle("user", request) is None
    finally:
        await owner.execute(MENDS["the role may not write"])
    answer = await handler.cycle("user", request)
    assert isinstance(answer, RequestAnswer)
    assert answer.outcome == "accepted"


async def test_damaged_data_is_told_with_what_to_do_and_waited_for(
    orchestrators: Orchestrators,
) -> None:
    damaged = "raise exception 'invalid page in block 0' using errcode = 'data_corrupted'"
    with pytest.raises(DatabaseDamaged, match=r"invalid page.*deskbus db restore FILE") as told:
        await orchestrators.pool.execute(f"do $$ begin {damaged}; end $$")
    assert is_outage(told.value)


async def test_nothing_is_said_of_an_input_that_nobody_could_commit(
    orchestrators: Orchestrators, owner: "asyncpg.Connection[asyncpg.Record]"
) -> None:
    cycle_id = await orchestrators.begin()
    await owner.execute(BREAKS["the role may not write"])
    try:
        with pytest.raises(NotCommitted):
            await orchestrators.answer(0, cycle_id, "left")
    finally:
        await owner.execute(MENDS["the role may not write"])
    assert await orchestrators.status(cycle_id) == "running"


async def test_inputs_that_nobody_waits_for_any_more_do_not_end_the_loop_they_were_for(
    orchestrators: Orchestrators, owner: "asyncpg.Connection[asyncpg.Record]"
) -> None:
    cycle_id = await orchestrators.begin()
    busy, given_up = (CancelRequested(cycle_id, why) for why in ("first", "second"))
    await owner.execute(BREAKS["the role may not write"])
    try:
        async with orchestrators.pool.acquire() as holder, holder.transaction():
            await holder.execute(sql.lock_cycles, [cycle_id], [])
            committing = asyncio.create_task(orchestrators.committers[0].ask(busy))
            await asyncio.sleep(0.1)
            waiting = asyncio.create_task(orchestrators.committers[0].ask(given_up))
            await asyncio.sleep(0)
            waiting.cancel()
        with pytest.raises(NotCommitted):
            await committing
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await asyncio.sleep(0.1)
    finally:
        await owner.execute(MENDS["the role may not write"])
    async with asyncio.timeout(5):
        assert (await orchestrators.committers[0].ask(busy)).outcome == "accepted"
