"""How Postgres would answer each named statement: which tables it would read from end to end.

As in the desk's own connections a plan is for any parameters, so nothing is executed. A table that
is read whole is a fault once it has many rows: somebody waits, or everybody does. An index that is
walked from its newest end is none, where a limit ends the walk; where all of it goes into a sort, a
sum, a hash or a bitmap, it is the table. Of what an index has a part alone, that part counts.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncpg

from libs.postgres.pool import PLANNING
from libs.postgres.queries import Queries

SERVICES = Path(__file__).parents[2] / "services"
ROWS_MIN = 5_000
"""A table with fewer rows may be read whole."""
BITMAP = "Bitmap Index Scan"
WALKS = frozenset({"Index Scan", "Index Only Scan", BITMAP})
BLOCKING = frozenset({"Sort", "Aggregate", "Hash", "Materialize", "WindowAgg"})
PARTIAL = """
select indexrelid::regclass::text from pg_index join pg_class on pg_class.oid = indexrelid
where indpred is not null and reltuples < $1
"""
"""Indexes of so few rows of a table that all of them may be read."""
_PARAMETER = re.compile(r"\$(\d+)")


@dataclass(frozen=True)
class Reading:
    """A statement that reads a table from end to end."""

    statement: str
    table: str
    rows: int

    def __str__(self) -> str:
        return f"{self.statement} reads all {self.rows:,} rows of {self.table}"


def statements() -> Iterator[tuple[str, str]]:
    """Every named statement of every service, as `service/folder/file:name` and its SQL."""
    for path in sorted(SERVICES.rglob("*.sql")):
        for name, sql in Queries(path):
            yield f"{path.relative_to(SERVICES)}:{name}", sql


async def whole_readings(db: "asyncpg.Connection[asyncpg.Record]") -> tuple[int, Sequence[Reading]]:
    """How many statements were planned, and those that read a large table whole."""
    rows = await _large_tables(db)
    partial = {row[0] for row in await db.fetch(PARTIAL, ROWS_MIN)}
    for name, value in PLANNING.items():
        await db.execute(f"set {name} = {value}")
    found, planned = [], 0
    for name, sql in statements():
        answer = await _plan(db, sql)
        planned += 1
        found += [
            Reading(name, table, rows[table])
            for table in read_whole(answer, partial)
            if table in rows
        ]
    return planned, found


async def _plan(db: "asyncpg.Connection[asyncpg.Record]", sql: str) -> Mapping[str, Any]:
    """The plan for any parameters: one that is made with values knows what these values are."""
    nulls = ", ".join(["null"] * max(map(int, _PARAMETER.findall(sql)), default=0))
    await db.execute(f"prepare planned as {sql}")
    try:
        answer = await db.fetchval(f"explain (format json) execute planned{nulls and f'({nulls})'}")
    finally:
        await db.execute("deallocate planned")
    return dict(json.loads(answer)[0]["Plan"])


async def _large_tables(db: "asyncpg.Connection[asyncpg.Record]") -> Mapping[str, int]:
    """The tables that have many rows, partitions by themselves."""
    found = await db.fetch(
        "select relname, n_live_tup from pg_stat_user_tables where n_live_tup >= $1", ROWS_MIN
    )
    return {row["relname"]: row["n_live_tup"] for row in found}


def read_whole(
    plan: Mapping[str, Any], partial: Set[str], *, all_of_it: bool = False, of: str = ""
) -> Iterator[str]:
    """The tables below a node that are read whole; `all_of_it`: what is above asks for each row,
    `of` its table."""
    kind, table = plan["Node Type"], plan.get("Relation Name", of)
    walked = kind in WALKS and "Index Cond" not in plan and plan["Index Name"] not in partial
    if kind == "Seq Scan" or (walked and (all_of_it or kind == BITMAP)):
        yield table
    below = (all_of_it or kind in BLOCKING) and kind != "Limit"
    for inner in plan.get("Plans", ()):
        yield from read_whole(inner, partial, all_of_it=below, of=table)
