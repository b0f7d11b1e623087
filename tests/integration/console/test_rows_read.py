"""What grows with a desk's life is not gone through: rows read among many others."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from libs.postgres.pool import PLANNING
from services.console.store import Store, sql
from services.study.record import sql as study_sql
from tests.integration.console.conftest import AS_OF, NOW

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping, Sequence

    import httpx2

    from libs.postgres.pool import PoolConnection, Record
    from tests.integration.console.conftest import Made

MANY = 3_000
READ_MAX = 60
"""Rows for one cycle or account, as of one with some operations."""
VALIDATED = {"decisions": [], "vetoed_tickers": [], "checks": []}


@pytest.fixture
async def among_many(db: PoolConnection) -> AsyncIterator[PoolConnection]:
    """A transaction with many decisions and memories of others; nothing of it is kept."""
    doing = db.transaction()
    await doing.start()
    await db.execute(
        "insert into operations (op_id, cycle_id, started_on, pipeline, account, state, step,"
        " service, attempt, as_of, status, claimed, must_answer, command, result, due_at,"
        " created_at, finished_at)"
        " select gen_random_uuid(), gen_random_uuid(), $1, 'rules', 'others', 'deciding', step,"
        " 'risk', 1, $2, 'completed', false, false, '{}', '{}', $3, $3,"
        " $3::timestamptz + n * interval '1 s'"
        " from generate_series(1, $4) as n, unnest(array['validate', 'memorize']) as step",
        NOW.date(),
        AS_OF,
        NOW,
        MANY,
    )
    await db.execute("analyze operations")
    for name, value in PLANNING.items():
        await db.execute(f"set local {name} = {value}")
    yield db
    await doing.rollback()


def scans(plan: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The nodes of a plan that read rows or an index's entries."""
    if "Scan" in plan["Node Type"]:
        yield plan
    for inner in plan.get("Plans", ()):
        yield from scans(inner)


async def rows_read(db: PoolConnection, statement: str, *literals: str) -> float:
    """The rows that the statement reads, planned for any values as the desk's own are."""
    await db.execute(f"prepare asked as {statement}")
    answer = await db.fetchval(
        f"explain (analyze, format json) execute asked({', '.join(literals)})"
    )
    await db.execute("deallocate asked")
    return sum(
        (scan["Actual Rows"] + scan.get("Rows Removed by Filter", 0)) * scan["Actual Loops"]
        for scan in scans(json.loads(answer)[0]["Plan"])
    )


async def test_decisions_of_a_cycle_or_an_account_are_found_among_those_of_others(
    among_many: PoolConnection, made: Made
) -> None:
    decided = await made.operation("deciding", "validate", result=VALIDATED)
    await among_many.execute("update operations set account = 'mine' where op_id = $1", decided)
    cycle = f"'{made.cycle_id}'"

    assert await rows_read(among_many, sql.decisions_of_cycle, cycle, "null", "40") <= READ_MAX
    assert await rows_read(among_many, sql.decisions_of_account, "'mine'", "40") <= READ_MAX
    briefly = await rows_read(among_many, sql.decisions_of_account_briefly, "'mine'", "40")
    assert briefly <= READ_MAX
    assert await rows_read(among_many, study_sql.decided, f"array[{cycle}::uuid]") <= READ_MAX


async def test_the_newest_memories_of_each_account_are_read_and_no_others(
    among_many: PoolConnection, made: Made
) -> None:
    memory = await made.operation("memorizing", "memorize", result={"outcomes": []})
    await among_many.execute("update operations set account = 'mine' where op_id = $1", memory)
    accounts, since = "array['others', 'mine']", f"'{AS_OF}'"

    asked = await among_many.fetch(sql.memories_of, ["others", "mine"], AS_OF, 5)
    read = await rows_read(among_many, sql.memories_of, accounts, since, "5")

    assert len(asked) == 6
    assert memory in {row["op_id"] for row in asked}
    assert read <= READ_MAX


async def test_the_newest_entry_of_each_ledger_is_found_without_going_through_it(
    among_many: PoolConnection,
) -> None:
    await among_many.execute(
        "insert into accounts (account, currency, starting_cash, opened_on, clock, limits)"
        " select name, 'USD', 1, $1, $1, '{}' from unnest(array['long', 'short']) as name",
        AS_OF,
    )
    await among_many.execute(
        "insert into entries (account, key, kind, session)"
        " select case when n < 3 then 'short' else 'long' end, n::text, 'fill', $1"
        " from generate_series(1, $2) as n",
        AS_OF,
        MANY,
    )
    await among_many.execute("analyze entries")
    accounts = ["long", "none", "short"]

    rows = await among_many.fetch(sql.newest_entries, accounts)
    newest = {row["account"]: row["entry_id"] for row in rows}
    read = await rows_read(among_many, sql.newest_entries, f"array{accounts}")

    assert newest["long"] - newest["short"] == MANY - 2
    assert set(newest) == {"long", "short"}
    assert read <= READ_MAX


async def test_failed_cycles_are_counted_up_to_a_bound(db: PoolConnection, made: Made) -> None:
    doing = db.transaction()
    await doing.start()
    await db.execute(
        "insert into cycles (cycle_id, kind, workflow_version, requester, idempotency_key,"
        " body_sha256, request, as_of, started_on, status, state, accepted_at, deadline_at,"
        " tokens_max, cost_usd_max)"
        " select gen_random_uuid(), kind, workflow_version, requester, gen_random_uuid()::text,"
        " body_sha256, request, as_of, started_on, 'failed', state, accepted_at, deadline_at,"
        " tokens_max, cost_usd_max from cycles, generate_series(1, 20) where cycle_id = $1",
        made.cycle_id,
    )
    since = await db.fetchval("select now() - interval '1 hour'")

    counted = await db.fetchrow(sql.attention, since, 4, since, 7)
    await doing.rollback()

    assert counted["failed"] == 7


@pytest.mark.parametrize(
    ("path", "read"),
    [
        ("/portfolio?account={}", {"snapshots": 1, "newest_fills": 1, "accounts": 1}),
        ("/api/v1/accounts?limit=1", {"snapshots": 1, "newest_fills": 0, "accounts": 0}),
    ],
)
async def test_an_accounts_books_are_read_once_and_nothing_that_is_not_shown(
    path: str,
    read: Mapping[str, int],
    http: httpx2.AsyncClient,
    db: PoolConnection,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    account = f"read-{uuid4().hex[:8]}"
    await db.execute(
        "insert into accounts (account, currency, starting_cash, opened_on, clock, limits)"
        " values ($1, 'USD', 1, $2, $2, '{}')",
        account,
        AS_OF,
    )
    statements = {getattr(sql, name): name for name in read}
    times = dict.fromkeys(read, 0)
    real = Store.rows

    async def counted(self: Store, statement: str, *values: object) -> Sequence[Record]:
        if statement in statements:
            times[statements[statement]] += 1
        return await real(self, statement, *values)

    monkeypatch.setattr(Store, "rows", counted)

    answer = await http.get(path.format(account), headers={"Accept": "text/html"})

    assert answer.status_code == 200, answer.text
    assert times == read
