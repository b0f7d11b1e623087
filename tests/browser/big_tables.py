"""How long pages take over big tables: `python -m tests.browser.big_tables`; `make soak` runs it.

A cycle of the rules is copied many times, with other ids and earlier times, with its events and its
journal. Each page is asked for several times, by itself; the median must be under the limit. Then
Postgres says how it would answer each statement of each service: none may read a large table whole.
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
    *(
        "/cycles?status=failed",
        "/cycles?status=expired",
        "/cycles?kind=exit",
        "/cycles?kind=report",
    ),
    *("/cycles?text=nowhere", "/cycles?text=AAPL", "/cycles?account=main", "/cycles?sort=took"),
    *("/cycles?since=2000-01-01", "/cycles?provider=rules&kind=exit", "/operations?text=nowhere"),
    *("/operations?account=main", "/api/v1/search?q=aapl", "/api/v1/search?q=abcd"),
    *("/operations?status=failed", "/operations?status=running", "/operations?status=completed"),
    *("/operations?step=train", "/operations?step=validate"),
    *("/api/v1/operations?status=failed", "/api/v1/operations?type=train", "/api/v1/leaderboard"),
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
OF_CYCLE = "cycle_id = '{}'"
OF_ITS_OPERATIONS = "op_id in (select op_id from operations where cycle_id = '{}')"
BATCH = 2_000


async def _columns(db: "asyncpg.Connection[asyncpg.Record]", table: str) -> list[str]:
    rows = await db.fetch(
        "select column_name from information_schema.columns where table_name = $1 "
        "and is_identity = 'NO'",
        table,
    )
    return [row["column_name"] for row in rows]


async def _grow(shown: Shown, operations: int, events: int) -> dict[str, int]:
    """Copy the decided cycle until the tables have so many rows; how many they have."""
    cycle_id = shown.decided["cycle_id"]
    wanted = {"operations": operations, "state_events": events}
    async with shown.desk.postgres() as db:
        per_cycle = {
            table: await db.fetchval(f"select count(*) from {table} where cycle_id = $1", cycle_id)
            for table in wanted
        }
        cycles = wanted["operations"] // per_cycle["operations"]
        numbers = {
            "cycles": cycles,
            "journal": cycles,
            "operations": cycles,
            "state_events": wanted["state_events"] // per_cycle["state_events"],
        }
        for table, number in numbers.items():
            names = await _columns(db, table)
            which = OF_ITS_OPERATIONS if table == "journal" else OF_CYCLE
            made = [COPIES[table].get(name, "{column}").format(column=name) for name in names]
            for first in range(1, number + 1, BATCH):
                await db.execute(
                    COPY.format(
                        table=table,
                        columns=", ".join(f'"{name}"' for name in names),
                        values=", ".join(made),
                        first=first,
                        last=min(first + BATCH - 1, number),
                        which=which.format(cycle_id),
                    ),
                    timeout=600,
                )
        await db.execute("vacuum analyze", timeout=1_200)
        return {table: await db.fetchval(f"select count(*) from {table}") for table in numbers}


async def _plans(shown: Shown) -> tuple[int, Sequence[Reading]]:
    async with shown.desk.postgres() as db:
        return await whole_readings(db)


def _measured(shown: Shown) -> Iterator[tuple[str, float]]:
    filtered = (*FILTERED, f"/decisions?account={shown.account}")
    paths = {name: path_of(name, shown) for name in PAGES} | {path: path for path in filtered}
    headers = {"Accept": "text/html"}
    with httpx2.Client(base_url=shown.url, headers=headers, timeout=30) as http:
        for name, path in paths.items():
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
        _say(asyncio.run(_grow(shown, given.operations, given.events)))
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
