"""How long pages take over big tables: `python -m tests.browser.big_tables`; `make soak` runs it.

Cycles of the rules (a decision, sales, one that failed) are copied many times, with other ids and
earlier times, with their events and journal. Each page is asked for several times, by itself; the
median must be under the limit. Then Postgres says how it would answer each statement of each
service: none may read a large table whole. `python -m benchmarks.pages` has the p95 of each page.
"""

import argparse
import asyncio
import statistics
import sys
import time
from collections.abc import Iterator, Mapping, Sequence

import asyncpg
import httpx2

from tests.browser.desk import Shown, shown_desk
from tests.browser.looks import PAGES, STATUSES, path_of
from tests.browser.plans import Reading, whole_readings

LIMIT_S = 0.2
TIMES = 7
OPERATIONS, EVENTS = 100_000, 5_000_000
FILTERED = (
    "/cycles?status=failed",
    "/cycles?status=expired",
    "/cycles?kind=exit",
    "/cycles?kind=report",
    "/cycles?text=nowhere",
    "/cycles?text=AAPL",
    "/cycles?account=main",
    "/cycles?sort=took",
    "/cycles?since=2000-01-01",
    "/cycles?provider=rules&kind=exit",
    "/operations?text=nowhere",
    "/operations?account=main",
    "/api/v1/search?q=aapl",
    "/api/v1/search?q=abcd",
    "/operations?status=failed",
    "/operations?status=running",
    "/operations?status=completed",
    "/operations?type=train",
    "/operations?type=validate",
    "/api/v1/operations?status=failed",
    "/api/v1/operations?type=train",
    "/api/v1/leaderboard",
    "/api/v1/accounts",
)
COPY = """
insert into {table} ({columns})
select {values} from {table}, generate_series({first}, {last}) as n
where {which}
"""
EARLIER = "{column} - n * interval '7 seconds'"
OTHER_ID = "md5({column}::text || n)::uuid"
COPIES: Mapping[str, Mapping[str, str]] = {
    "cycles": {
        "cycle_id": OTHER_ID,
        "idempotency_key": "{column} || n",
        "accepted_at": EARLIER,
        "ended_at": EARLIER,
    },
    "operations": {
        "op_id": OTHER_ID,
        "cycle_id": OTHER_ID,
        "command": "'{{}}'",
        **dict.fromkeys(("created_at", "started_at", "finished_at", "due_at"), EARLIER),
    },
    "state_events": {"op_id": OTHER_ID, "cycle_id": OTHER_ID, "at": EARLIER},
    "journal": {"op_id": OTHER_ID, "recorded_at": EARLIER},
}
"""By table: what differs in a copy. No list reads commands, which are large. The events keep their
transaction's id: the relay is past it, and publishes none of them again."""
OF_CYCLE = "cycle_id in ('{}')"
OF_ITS_OPERATIONS = "op_id in (select op_id from operations where cycle_id in ('{}'))"
BATCH = 2_000


async def _columns(db: "asyncpg.Connection[asyncpg.Record]", table: str) -> list[str]:
    rows = await db.fetch(
        "select column_name from information_schema.columns "
        "where table_schema = 'public' and table_name = $1 "
        "and is_identity = 'NO'",
        table,
    )
    return [row["column_name"] for row in rows]


async def grow(shown: Shown, operations: int, events: int | None = None) -> dict[str, int]:
    """Copy the desk's cycles until the tables have so many rows; how many they have.

    A decision, an exit cycle and one that failed are copied as often. Without a number of events
    each copy has its own.
    """
    cycle_ids = [shown.decided["cycle_id"], shown.sold, shown.failed]
    async with shown.desk.postgres() as db:
        held = {
            table: await db.fetchval(
                f"select count(*) from {table} where cycle_id = any($1::uuid[])", cycle_ids
            )
            for table in ("operations", "state_events")
        }
        cycles = operations // held["operations"]
        told = cycles if events is None else events // held["state_events"]
        numbers = dict.fromkeys(("cycles", "journal", "operations"), cycles) | {
            "state_events": told
        }
        for table, number in numbers.items():
            await _copy(db, table, cycle_ids, number)
        await db.execute("vacuum analyze", timeout=1_200)
        return {table: await db.fetchval(f"select count(*) from {table}") for table in numbers}


async def _copy(
    db: "asyncpg.Connection[asyncpg.Record]", table: str, cycle_ids: Sequence[str], number: int
) -> None:
    """So many copies of what the table has of these cycles."""
    names = await _columns(db, table)
    which = OF_ITS_OPERATIONS if table == "journal" else OF_CYCLE
    copied = [COPIES[table].get(name, "{column}").format(column=name) for name in names]
    for first in range(1, number + 1, BATCH):
        await db.execute(
            COPY.format(
                table=table,
                columns=", ".join(f'"{name}"' for name in names),
                values=", ".join(copied),
                first=first,
                last=min(first + BATCH - 1, number),
                which=which.format("', '".join(cycle_ids)),
            ),
            timeout=600,
        )


async def _plans(shown: Shown) -> tuple[int, Sequence[Reading]]:
    async with shown.desk.postgres() as db:
        return await whole_readings(db)


def paths(shown: Shown) -> Mapping[str, str]:
    """Every page of the console, and its lists with what narrows them: by name, the path."""
    filtered = (*FILTERED, f"/decisions?account={shown.account}")
    return {name: path_of(name, shown) for name in PAGES} | {path: path for path in filtered}


def _measured(shown: Shown) -> Iterator[tuple[str, float]]:
    headers = {"Accept": "text/html"}
    with httpx2.Client(base_url=shown.url, headers=headers, timeout=30) as http:
        for name, path in paths(shown).items():
            took = []
            for _ in range(TIMES):
                began = time.perf_counter()
                answer = http.get(path)
                took.append(time.perf_counter() - began)
            assert answer.status_code == STATUSES.get(name, 200), answer.text
            yield name, statistics.median(took)


def _say(what: object) -> None:
    sys.stdout.write(f"{what}\n")
    sys.stdout.flush()


def main() -> int:
    """Print a line a page; 1 where one takes too long, or a statement reads a large table whole."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--operations", type=int, default=OPERATIONS)
    asked.add_argument("--events", type=int, default=EVENTS)
    given = asked.parse_args()
    with shown_desk() as shown:
        _say(asyncio.run(grow(shown, given.operations, given.events)))
        slow = 0
        for name, median_s in _measured(shown):
            slow += median_s > LIMIT_S
            _say(f"{name:32} {median_s * 1000:7.1f} ms{'  TOO SLOW' * (median_s > LIMIT_S)}")
        planned, whole = asyncio.run(_plans(shown))
        _say(f"{planned} statements planned, {len(whole)} read a large table whole")
        for reading in whole:
            _say(f"  {reading}")
    return 1 if slow or whole else 0


if __name__ == "__main__":
    sys.exit(main())
