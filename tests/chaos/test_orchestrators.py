"""Two orchestrators at once: joins, the same request at both, one of them frozen."""

import asyncio

import psutil
import pytest

from contracts.cycle import CycleStatus
from contracts.subjects.table import REQUESTS
from libs.runtime import ids
from libs.servers.postgres_server import SUPERUSER
from tests.chaos.desk import ChaosDesk, Database
from tests.chaos.load import User
from tests.fakes.chaos_workflow import Behaviour

pytestmark = pytest.mark.asyncio(loop_scope="session")

JOINS = 300
AT_ONCE = 32
REPEATS = 60
DEADLINE_S = 120.0


def questions_heard(desk: ChaosDesk) -> list[int]:
    """Messages that NATS has delivered to each orchestrator."""
    return sorted(sent for name, sent in desk.connections() if name == "deskbus-orchestrator")


async def many(user: User, kind: str, count: int) -> list[CycleStatus | None]:
    """Run cycles, some at once."""
    slots = asyncio.Semaphore(AT_ONCE)

    async def one(number: int) -> CycleStatus | None:
        async with slots:
            return await user.run(user.request(number, kind))

    return await asyncio.gather(*(one(number) for number in range(count)))


async def test_parallel_children_join_each_time_whichever_orchestrator_hears_them(
    desk: ChaosDesk, user: User
) -> None:
    before = questions_heard(desk)
    async with desk.within(DEADLINE_S):
        statuses = await many(user, "join", JOINS)
    assert statuses == [CycleStatus.COMPLETED] * JOINS
    shares = [after - then for after, then in zip(questions_heard(desk), before, strict=True)]
    assert min(shares) > JOINS, f"only one orchestrator worked: {shares}"


async def test_the_same_request_at_both_orchestrators_at_once_is_one_cycle(
    desk: ChaosDesk, user: User
) -> None:
    async with desk.within(DEADLINE_S):
        for number in range(REPEATS):
            request = user.request(number, "join", ("alpha",))
            answers = await asyncio.gather(*(user.ask(REQUESTS[0], request) for _ in range(4)))
            assert {answer.outcome for answer in answers} == {"accepted"}, answers
            assert {answer.cycle_id for answer in answers} == {user.cycle_id(request)}


@pytest.mark.parametrize("frozen", ["orchestrator-1", "orchestrator-2"])
async def test_a_frozen_orchestrator_stops_neither_cycles_nor_events(
    desk: ChaosDesk, user: User, frozen: str
) -> None:
    desk.freeze(frozen)
    try:
        async with desk.within(DEADLINE_S):
            request = user.request(frozen)
            assert await user.run(request) is CycleStatus.COMPLETED
            # Heard, not looked up: whichever orchestrator relays, its lock does not stay frozen.
            await user.heard.ended[user.cycle_id(request)].wait()
    finally:
        desk.thaw(frozen)


async def test_an_orchestrator_frozen_inside_a_transaction_gives_up_its_locks(
    desk: ChaosDesk, user: User
) -> None:
    request = user.request("locked", "single", ("alpha",), behaviour=Behaviour.SLOW)
    cycle_id = user.cycle_id(request)
    op_id = ids.operation_id(cycle_id, "alpha", "working", "work", 1)
    async with desk.within(DEADLINE_S):
        cycle = asyncio.create_task(user.run(request))
        await desk.model.saw("begin", op_id, 0)
        async with desk.database(SUPERUSER) as db, db.transaction():
            await db.execute("select from cycles where cycle_id = $1 for update", cycle_id)
            frozen = await _waiting(desk, db)
            desk.freeze(frozen)
        try:
            assert await cycle is CycleStatus.COMPLETED
        finally:
            desk.thaw(frozen)


async def _waiting(desk: ChaosDesk, db: Database) -> str:
    """The orchestrator whose transaction waits for a row's lock."""
    while True:
        port = await db.fetchval(
            "select client_port from pg_stat_activity where wait_event_type = 'Lock'"
            " and application_name = 'deskbus_orchestrator' limit 1"
        )
        for name in ("orchestrator-1", "orchestrator-2"):
            connections = psutil.Process(desk.pid(name)).net_connections("tcp4")
            if port in {connection.laddr.port for connection in connections}:
                return name
        await asyncio.sleep(0.02)
