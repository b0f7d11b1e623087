"""A cycle whose time is up begins nothing that binds, whether or not the sweep has looked."""

from collections.abc import AsyncIterator
from typing import Any, cast
from uuid import UUID

import pytest

from contracts.execution import ExecuteDecisions, ExecutionResult
from contracts.operation import Result
from contracts.types import Money
from libs.postgres.pool import Pool
from libs.runtime import ids
from libs.runtime.settings import Settings
from services.orchestrator.group.inputs import Resulted
from services.orchestrator.schedulers.sweep import Sweep
from tests.integration.orchestrator.conftest import LANE
from tests.integration.orchestrator.test_approval_races import Askers, asking

FROM_MEMORY, UNDER_LOCKS = 0, 1


@pytest.fixture
async def desk(pool: Pool) -> AsyncIterator[Askers]:
    """Two orchestrators; the first has in memory what it has accepted."""
    async with asking(pool) as askers:
        yield askers


async def time_is_up(desk: Askers, cycle_id: UUID) -> None:
    await desk.pool.execute(
        "update cycles set deadline_at = clock_timestamp() - interval '1 second'"
        " where cycle_id = $1",
        cycle_id,
    )


async def reason_of(desk: Askers, cycle_id: UUID) -> str:
    reason: str = await desk.pool.fetchval(
        "select reason from cycles where cycle_id = $1", cycle_id
    )
    return reason


@pytest.mark.parametrize("at", [FROM_MEMORY, UNDER_LOCKS])
@pytest.mark.parametrize("asks", [False, True])
async def test_a_late_cycle_orders_nothing_and_asks_nobody(
    desk: Askers, at: int, asks: bool
) -> None:
    cycle_id = await desk.begin(asks=asks)
    await time_is_up(desk, cycle_id)
    await desk.propose(at, cycle_id)
    status, executions, events = await desk.outcome(cycle_id)
    assert (status, executions, events["approval_requested"]) == ("failed", 0, 0)
    assert events["operation_cancelled"] == 1
    assert await reason_of(desk, cycle_id) == "proposing: time limit of 600 s passed"


@pytest.mark.parametrize("at", [FROM_MEMORY, UNDER_LOCKS])
async def test_what_execution_was_sent_in_time_is_heard_after_it(desk: Askers, at: int) -> None:
    cycle_id = await desk.begin(asks=False)
    await desk.propose(FROM_MEMORY, cycle_id)
    await time_is_up(desk, cycle_id)
    op_id = ids.operation_id(cycle_id, LANE, "executing", "execute", 1)
    body = await desk.pool.fetchval("select command from operations where op_id = $1", op_id)
    cash = Money(amount=100)
    done = ExecutionResult.of(
        ExecuteDecisions.model_validate_json(body), account=LANE, cash_before=cash, cash_after=cash
    )
    result = Result(op_id=op_id, contract=done.model_dump(mode="json"))
    assert (await desk.committers[at].ask(Resulted("execution", result))).outcome == "ok"
    assert (await desk.outcome(cycle_id))[0] == "completed"


async def test_a_cycle_that_cannot_be_ended_keeps_no_other_from_its_end(desk: Askers) -> None:
    broken, late = await desk.begin(asks=False), await desk.begin(asks=False)
    await desk.pool.execute(
        "update cycles set state = '{}', deadline_at = clock_timestamp() - interval '1 hour'"
        " where cycle_id = $1",
        broken,
    )
    await time_is_up(desk, late)
    sweep = Sweep(desk.pool, desk.committers[1], cast(Any, None), Settings())
    try:
        await sweep._end_late()
    finally:
        await desk.pool.execute(
            "update cycles set status = 'cancelled' where cycle_id = $1", broken
        )
    assert (await desk.outcome(late))[0] == "failed"
