"""What models were paid for, read from rows written by hand."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from types import SimpleNamespace
from typing import Any
from uuid import UUID, uuid4

import pytest

from contracts.http import CostsView
from contracts.operation import JournalEntry
from contracts.types import Usage
from libs.postgres.pool import CONSOLE_ROLE, PoolConnection, open_pool
from libs.servers.embedded import Servers
from services.console.store import Store
from services.console.views import costs

TODAY = datetime(2031, 3, 3, 12, tzinfo=UTC)
"""A day that no other test here has."""


@pytest.fixture(autouse=True)
async def alone(db: PoolConnection) -> None:
    """Nothing of a test before."""
    await db.execute("delete from operations where created_at > '2031-01-01'")


async def paid(
    db: PoolConnection, step: str, at: datetime, tokens: int, cost: str, *calls: tuple[str, Usage]
) -> UUID:
    """An operation that used so much in all, with these calls in its journal."""
    op_id = uuid4()
    await db.execute(
        "insert into operations (op_id, cycle_id, started_on, pipeline, account, state, step,"
        " service, attempt, as_of, status, claimed, must_answer, command, tokens, cost_usd, due_at,"
        " created_at) values ($1, $1, $2, 'claude', 'main', 's', $3, 'research', 1, $2,"
        " 'completed', true, false, '{}', $4, $5, $6, $6)",
        op_id,
        at.date(),
        step,
        tokens,
        Decimal(cost),
        at,
    )
    for index, (name, usage) in enumerate(calls):
        entry = JournalEntry(
            index=index,
            kind="tool" if name == "look" else "model",
            name=name,
            request_sha256="0" * 64,
            request=None,
            reply="x",
            usage=usage,
        )
        await db.execute(
            "insert into journal (started_on, op_id, index, epoch, entry, recorded_at)"
            " values ($1, $2, $3, 1, $4, $5)",
            at.date(),
            op_id,
            index,
            entry.model_dump_json().encode(),
            at,
        )
    return op_id


def usage(tokens_in: int, tokens_out: int, cost: str) -> Usage:
    return Usage(input_tokens=tokens_in, output_tokens=tokens_out, cost_usd=Decimal(cost))


async def seen(servers: Servers, days: int) -> CostsView:
    async with open_pool(servers.postgres_dsn(CONSOLE_ROLE), size_max=1) as pool:
        desk: Any = SimpleNamespace(store=Store(pool), now=lambda: TODAY)
        return await costs.costs(days, desk)


async def test_costs_are_told_by_day_provider_model_and_step(
    servers: Servers, db: PoolConnection
) -> None:
    small, large = "claude:small", "openai:large:latest"
    await paid(
        db,
        "plan",
        TODAY,
        33,
        "0.3",
        (small, usage(10, 1, "0.1")),
        ("look", Usage()),
        (small, usage(20, 2, "0.2")),
    )
    await paid(db, "analyst", TODAY - timedelta(days=1), 5, "2", (large, usage(4, 1, "2")))
    await paid(db, "analyst", TODAY - timedelta(days=2), 5, "2", (large, usage(4, 1, "2")))

    view = await seen(servers, 2)
    assert (view.since, view.counted, view.cut) == (date(2031, 3, 2), 2, False)
    assert [
        (each.day.day, each.provider, each.model, each.stage, each.calls, each.usage)
        for each in view.rows
    ] == [
        (3, "claude", "small", "plan", 2, usage(30, 3, "0.3")),
        (2, "openai", "large:latest", "analyst", 1, usage(4, 1, "2")),
    ]


async def test_what_was_held_back_for_a_lost_reply_has_no_model(
    servers: Servers, db: PoolConnection
) -> None:
    await paid(db, "plan", TODAY, 111, "1.1", ("claude:small", usage(10, 1, "0.1")))
    lost = next(each for each in (await seen(servers, 1)).rows if each.model is None)
    assert lost.usage == Usage(unsorted_tokens=100, cost_usd=Decimal(1))
    assert (lost.provider, lost.calls) == ("unknown", 0)


async def test_only_so_many_operations_are_looked_at_and_the_view_says_so(
    servers: Servers, db: PoolConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(costs, "OPERATIONS_MAX", 2)
    for number in range(3):
        at = TODAY - timedelta(hours=number)
        await paid(db, f"step{number}", at, 11, "0.1", ("claude:small", usage(10, 1, "0.1")))
    view = await seen(servers, 1)
    assert (view.counted, view.cut) == (2, True)
    assert {each.stage for each in view.rows} == {"step0", "step1"}


async def test_the_query_reads_only_operations_that_were_paid_for(
    servers: Servers, db: PoolConnection
) -> None:
    await paid(db, "plan", TODAY, 0, "0")
    assert (await seen(servers, 1)).rows == ()
    await db.execute("set enable_seqscan = off")
    statement = "select op_id from operations where tokens > 0 and created_at >= now()"
    plan = await db.fetch(f"explain {statement} order by created_at desc limit 5")
    await db.execute("reset enable_seqscan")
    assert "operations_paid" in str(plan)
