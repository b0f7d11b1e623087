"""The tables as Parquet files, one a table, with a manifest; from one snapshot, in bounded memory.

Rows are read through a cursor in small groups, written in parts of PART_BYTES_MAX, and the parts
are then streamed into one file. What is in memory does not grow with the tables.
"""

import asyncio
import hashlib
import re
import shutil
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import polars as pl
from pydantic import BaseModel, ConfigDict

from contracts.cycle import BOOKKEEPING
from libs.postgres.pool import Pool, PoolConnection
from libs.runtime import ids
from libs.runtime.errors import DeskError

MANIFEST = "manifest.json"
"""Written last: a folder without it is an export that did not end."""
FORMAT_VERSION = 1
ROWS_WIDE = 64
"""Rows read at once of tables whose rows may have a megabyte."""
ROWS_NARROW = 2_000
PART_BYTES_MAX = 16_000_000
"""Estimated bytes of rows that are gathered before they are written."""
FETCH_TIMEOUT_S = 600.0
"""A first fetch may have to sort a large table."""
IDLE_S_MAX = 120
HASH_BLOCK_BYTES = 1 << 20

_NUMERIC = re.compile(r"numeric\((\d+),(\d+)\)")
_TYPES: dict[str, pl.DataType] = {
    "boolean": pl.Boolean(),
    "smallint": pl.Int16(),
    "integer": pl.Int32(),
    "bigint": pl.Int64(),
    "double precision": pl.Float64(),
    "date": pl.Date(),
    "timestamp with time zone": pl.Datetime("us", "UTC"),
    "xid8": pl.UInt64(),
    "bytea": pl.Binary(),
}


class ExportRefused(DeskError):
    """The export cannot be written to this place."""

    code = "export_refused"


class ExportedTable(BaseModel):
    """One written file."""

    model_config = ConfigDict(frozen=True)

    name: str
    file: str
    rows: int
    size_bytes: int
    sha256: str


class ExportManifest(BaseModel):
    """The contents of an export. `schema_version` is the newest migration that has run."""

    model_config = ConfigDict(frozen=True)

    format_version: int = FORMAT_VERSION
    schema_version: int
    made_at: datetime
    since: date | None = None
    until: date | None = None
    cycle_id: UUID | None = None
    tables: tuple[ExportedTable, ...]


@dataclass(frozen=True)
class ExportRange:
    """The cycles to export: by UTC days of acceptance, both ends included, or one by its id."""

    since: date | None = None
    until: date | None = None
    cycle_id: UUID | None = None


@dataclass(frozen=True)
class _Source:
    """One table: where its rows belong to a cycle, their order, and which bytea columns are JSON.

    `belongs` takes the place of the conditions on cycle_id and started_on where the table has no
    such columns; `t` is the table.
    """

    name: str
    order: str
    belongs: str = "true"
    json: tuple[str, ...] = ()
    wide: bool = False


_DIRECT = (
    "($1::date is null or t.started_on >= $1) and ($2::date is null or t.started_on <= $2)"
    " and ($3::uuid is null or t.cycle_id = $3)"
)
_OF_ORDERS = _DIRECT.replace("t.", "o.")
# What no cycle asked for (openings, splits, dividends) goes by the day it was posted.
_ENTRIES = (
    "case when {e}.kind = 'fill' then exists (select from fills f join orders o using (order_id)"
    " where f.entry_id = {e}.entry_id and " + _OF_ORDERS + ")"
    " else $3::uuid is null and ($1::date is null or ({e}.at at time zone 'utc')::date >= $1)"
    " and ($2::date is null or ({e}.at at time zone 'utc')::date <= $2) end"
)
# All three parameters stand in every statement, or Postgres does not know their types.
_ALL = "($1::date, $2::date, $3::uuid) is not distinct from ($1::date, $2::date, $3::uuid)"
SOURCES = (
    _Source("cycles", "cycle_id", _DIRECT, ("request", "state")),
    _Source("operations", "cycle_id, created_at, op_id", _DIRECT, ("command", "result"), wide=True),
    _Source(
        "journal",
        "started_on, op_id, index",
        "($1::date is null or t.started_on >= $1) and ($2::date is null or t.started_on <= $2)"
        " and ($3::uuid is null or t.op_id in"
        " (select op_id from operations where cycle_id = $3))",
        ("entry",),
        wide=True,
    ),
    # Texts are kept by month, under the hashes that the calls of models name.
    _Source(
        "prompt_texts",
        "started_on, sha256",
        "($1::date is null or t.started_on >= date_trunc('month', $1::date))"
        " and ($2::date is null or t.started_on <= $2)"
        " and ($3::uuid is null or (t.started_on, t.sha256) in"
        " (select date_trunc('month', j.started_on)::date, decode(named[1], 'hex')"
        " from operations o join journal j using (started_on, op_id),"
        " regexp_matches(convert_from(j.entry, 'UTF8'), '\"([0-9a-f]{64})\"', 'g') named"
        " where o.cycle_id = $3))",
        wide=True,
    ),
    _Source("state_events", "xid, id", _DIRECT),
    _Source("accounts", "account", _ALL),
    _Source("orders", "order_id", _DIRECT),
    _Source(
        "fills",
        "order_id, number",
        f"exists (select from orders o where o.order_id = t.order_id and {_OF_ORDERS})",
    ),
    _Source("entries", "entry_id", _ENTRIES.format(e="t")),
    _Source(
        "postings",
        "entry_id, line",
        "exists (select from entries e where e.entry_id = t.entry_id and "
        + _ENTRIES.format(e="e")
        + ")",
    ),
    _Source("snapshots", "account, session", _ALL),
)


async def cycle_named(pool: Pool, digits: str) -> UUID:
    """The whole id of the only cycle whose id begins with these digits; of `last` the newest one
    that decides. Raises NotFound."""
    async with pool.acquire() as db:
        if digits.lower() == "last":
            newest: UUID | None = await db.fetchval(
                "select cycle_id from cycles where kind <> all($1) and requester <> 'study' "
                "order by accepted_at desc limit 1",
                [*BOOKKEEPING],
            )
            if newest is None:
                raise ids.NotFound("this desk has no cycles yet")
            return newest
        between = ids.range_of("cycle", digits)
        rows = await db.fetch(
            "select cycle_id from cycles where cycle_id between $1 and $2 limit 2", *between
        )
    cycle_id: UUID = ids.only_one("cycle", digits, rows)["cycle_id"]
    return cycle_id


async def export(pool: Pool, directory: Path, wanted: ExportRange) -> ExportManifest:
    """Write all tables into `directory`, which must be new or empty.

    Raises `ExportRefused`, and what `pool` raises. All files show one moment: they are read in one
    read-only transaction, which has no transaction id and so does not hold the relay back.
    """
    _make_empty(directory)
    async with (
        pool.acquire() as db,
        db.transaction(isolation="repeatable_read", readonly=True),
    ):
        await db.execute(f"set local idle_in_transaction_session_timeout = '{IDLE_S_MAX}s'")
        version = await db.fetchval("select max(version) from schema_migrations")
        tables = [await _table(db, source, directory, wanted) for source in SOURCES]
    manifest = ExportManifest(
        schema_version=version,
        made_at=datetime.now(UTC),
        since=wanted.since,
        until=wanted.until,
        cycle_id=wanted.cycle_id,
        tables=tuple(tables),
    )
    (directory / MANIFEST).write_text(manifest.model_dump_json(indent=2) + "\n")
    return manifest


def _make_empty(directory: Path) -> None:
    try:
        directory.mkdir(parents=True, exist_ok=True)
        full = any(directory.iterdir())
    except OSError as error:
        raise ExportRefused(
            f"{directory} cannot be written: {error.strerror}; name a new folder of yours"
        ) from error
    if full:
        raise ExportRefused(f"{directory} is not empty; name a new folder for the export")


async def _table(
    db: PoolConnection, source: _Source, directory: Path, wanted: ExportRange
) -> ExportedTable:
    parts = directory / f".{source.name}.parts"
    parts.mkdir()
    rows = tallest = 0
    schema, statement = await _statement(db, source)
    async for frame in _frames(db, source, schema, statement, wanted):
        # The thread leaves the loop free to answer the server.
        await asyncio.to_thread(frame.write_parquet, parts / f"{rows:012}.parquet")
        rows += frame.height
        tallest = max(tallest, frame.height)
    path = directory / f"{source.name}.parquet"
    await asyncio.to_thread(_join, parts, path, pl.DataFrame(schema=schema), tallest)
    shutil.rmtree(parts)
    return ExportedTable(
        name=source.name,
        file=path.name,
        rows=rows,
        size_bytes=path.stat().st_size,
        sha256=await asyncio.to_thread(sha256_of, path),
    )


def _join(parts: Path, path: Path, empty: pl.DataFrame, group_rows: int) -> None:
    """One file of the parts. A row group is what polars gathers in memory: as tall as a part."""
    files = sorted(parts.iterdir())
    if not files:
        empty.write_parquet(path)
    elif len(files) == 1:
        files[0].replace(path)
    else:
        pl.scan_parquet(files, glob=False).sink_parquet(path, row_group_size=group_rows)


async def _statement(db: PoolConnection, source: _Source) -> tuple[dict[str, pl.DataType], str]:
    """The columns as the table has them today, and the select that gives them."""
    columns = await db.fetch(
        "select attname as name, format_type(atttypid, atttypmod) as type from pg_attribute"
        " where attrelid = $1::text::regclass and attnum > 0 and not attisdropped order by attnum",
        source.name,
    )
    schema: dict[str, pl.DataType] = {}
    selected = []
    for column in columns:
        name = column["name"]
        kind = None if name in source.json else _polars_type(column["type"])
        quoted = f't."{name}"'
        if name in source.json:
            quoted = f"convert_from({quoted}, 'UTF8')"
        elif kind is None:
            quoted = f"{quoted}::text"
        schema[name] = kind or pl.String()
        selected.append(f'{quoted} as "{name}"')
    # Names of tables and columns are the schema's own; values travel as parameters.
    statement = (
        f"select {', '.join(selected)} from {source.name} t"  # noqa: S608
        f" where {source.belongs} order by {source.order}"
    )
    return schema, statement


def _polars_type(postgres: str) -> pl.DataType | None:
    """The column's type in the file; None is text."""
    numeric = _NUMERIC.fullmatch(postgres)
    if numeric is not None:
        return pl.Decimal(int(numeric[1]), int(numeric[2]))
    return _TYPES.get(postgres)


async def _frames(
    db: PoolConnection,
    source: _Source,
    schema: dict[str, pl.DataType],
    statement: str,
    wanted: ExportRange,
) -> AsyncIterator[pl.DataFrame]:
    cursor = await db.cursor(
        statement, wanted.since, wanted.until, wanted.cycle_id, timeout=FETCH_TIMEOUT_S
    )
    count = ROWS_WIDE if source.wide else ROWS_NARROW
    gathered: list[pl.DataFrame] = []
    size = 0
    while rows := await cursor.fetch(count, timeout=FETCH_TIMEOUT_S):
        frame = _frame(rows, schema)
        gathered.append(frame)
        size += int(frame.estimated_size())
        if size >= PART_BYTES_MAX:
            yield pl.concat(gathered)
            gathered, size = [], 0
    if gathered:
        yield pl.concat(gathered)


def _frame(rows: Sequence[Any], schema: dict[str, pl.DataType]) -> pl.DataFrame:
    return pl.DataFrame([tuple(row) for row in rows], schema=schema, orient="row")


def sha256_of(path: Path) -> str:
    """The file's hash as 64 hex digits, read in blocks."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(HASH_BLOCK_BYTES):
            digest.update(block)
    return digest.hexdigest()
