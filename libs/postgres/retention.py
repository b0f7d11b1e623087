"""Retention: drop journal, prompts and events of whole months, once all their cycles have ended.

These tables hold nearly all bytes and are partitioned by the month in which a cycle began. The
ledger is never touched. Cycles and operations stay too: they carry the contracts that were made,
the memories that later cycles read, and the keys that keep a repeated request from running twice.

Trained models go too, once nobody can want them: kept before the first month that stays, of no
cycle of such a month, and of no strategy that came through both gates.
"""

from collections.abc import Sequence
from datetime import date
from enum import StrEnum
from typing import Literal

import asyncpg
import structlog
from pydantic import BaseModel, ConfigDict

from libs.postgres.pool import connected
from libs.runtime.errors import DeskError

PARENTS = ("journal", "state_events", "prompt_texts")
"""In the order in which the orchestrator writes them, so that the locks come in one order too."""
LOCK_TIMEOUT_S = 3
"""How long a drop waits for the tables. While it waits everybody else waits behind it."""

_MONTHS = (
    "select distinct to_date(right(c.relname, 7), 'YYYY_MM') as month"
    " from pg_inherits i join pg_class c on c.oid = i.inhrelid"
    " where i.inhparent = any($1::text[]::regclass[]) and c.relname ~ '_[0-9]{4}_[0-9]{2}$'"
    " union select date_trunc('month', started_on)::date from journal_rest"
    " union select date_trunc('month', started_on)::date from state_events_rest"
    " union select started_on from prompt_texts_rest"
    " order by month"
)
_STATE = """
select (select count(*) from cycles where started_on >= $1 and started_on < $2) as cycles,
       (select count(*) from cycles
        where started_on >= $1 and started_on < $2 and (status = 'running' or ended_at is null))
           as running,
       (select count(*) from operations
        where started_on >= $1 and started_on < $2 and status in ('pending', 'running')) as open,
       (select count(*) from state_events e, relay_cursor c
        where e.started_on >= $1 and e.started_on < $2 and (e.xid, e.id) > (c.xid, c.id))
           as unpublished,
       (select coalesce(sum(pg_total_relation_size(to_regclass(name))), 0)::bigint
        from unnest($3::text[]) name) as size_bytes
"""

_LAST = (
    "select xid, id from state_events where started_on >= $1 and started_on < $2"
    " order by xid desc, id desc limit 1"
)
_MOVE_HORIZON = (
    "update relay_cursor set dropped_xid = $1, dropped_id = $2"
    " where (dropped_xid, dropped_id) < ($1, $2)"
)

_MODELS = """
with wanted as materialized (
    select decode(convert_from(o.result, 'UTF8')::json ->> 'model_sha256', 'hex') as sha256
    from strategies s
    join cycles c using (cycle_id)
    join operations o on o.op_id = s.train_op_id
    where s.assess_op_id is not null or c.started_on >= $1 or c.status = 'running'
),
unwanted as materialized (
    select sha256, part, octet_length(bytes) as size_bytes from bodies b
    where kept_at < $1 and not exists (select from wanted w where w.sha256 = b.sha256)
)
"""
_COUNT = "select count(distinct sha256), coalesce(sum(size_bytes), 0)::bigint from unwanted"
_DELETE = """,
gone as (
    delete from bodies b using unwanted u where b.sha256 = u.sha256 and b.part = u.part
)
"""

# A look stays where it is the newest of its account or of its answers, a person made it, or what it
# found is not what the answer before it found: what differed, since when, and until when.
_LOOKS = """
with answered as (
    select *, lag((verdict, differences)) over (partition by account order by number)
              is distinct from (verdict, differences) as is_new
    from looks where verdict <> 'unknown'
),
kept as (
    select number from answered where is_new or by_whom <> 'execution'
    union all select max(number) from looks group by account
    union all select max(number) from answered group by account
)
delete from looks where kept_at < $1 and number not in (select number from kept)
"""

log = structlog.get_logger()


class Busy(DeskError):
    """The tables were in use for too long, so nothing was dropped."""

    code = "busy"


class RetentionVerdict(StrEnum):
    """The outcome of a month, or `due`: what a run without --dry-run would do."""

    DROPPED = "dropped"
    DUE = "due"
    KEPT = "kept"


class Month(BaseModel):
    """One month by its first day; `size_bytes` is what its journal and events take on disk."""

    model_config = ConfigDict(frozen=True)

    month: date
    verdict: RetentionVerdict
    reason: str
    cycles: int
    size_bytes: int


class UnusedModels(BaseModel):
    """Trained models that nobody can want any more, and their bytes."""

    model_config = ConfigDict(frozen=True)

    what: Literal["models"] = "models"
    verdict: RetentionVerdict
    models: int
    size_bytes: int


async def retain_models(
    dsn: str, months: int, *, dry_run: bool = False, today: date | None = None
) -> UnusedModels:
    """Delete them; `dsn` and `months` as for `retain`. Raises as `connected`."""
    async with connected(dsn) as db:
        oldest = month_before(today or await _today(db), _at_least_one(months))
        count, size = await db.fetchrow(_MODELS + ("" if dry_run else _DELETE) + _COUNT, oldest)
    if not dry_run:
        log.info("postgres.models_dropped", models=count, bytes=size)
    verdict = RetentionVerdict.DUE if dry_run else RetentionVerdict.DROPPED
    return UnusedModels(verdict=verdict, models=count, size_bytes=size)


async def retain_looks(dsn: str, months: int, *, today: date | None = None) -> None:
    """Delete looks at a broker's books that found what the one before them found; `dsn` and
    `months` as for `retain`. Raises as `connected`."""
    async with connected(dsn) as db:
        oldest = month_before(today or await _today(db), _at_least_one(months))
        log.info("postgres.looks_dropped", looks=await db.execute(_LOOKS, oldest))


async def retain(
    dsn: str, months: int, *, dry_run: bool = False, today: date | None = None
) -> Sequence[Month]:
    """Keep this month and `months` whole ones before it; tells of every month there is.

    An older month is dropped in a transaction of its own, unless one of its cycles runs or an event
    of it is not published yet: then it stays whole. `dsn` is the owner's. Raises `Busy` where the
    tables are in use (months dropped before that stay dropped), and as `connected`.
    """
    async with connected(dsn) as db:
        oldest = month_before(today or await _today(db), _at_least_one(months))
        present = [row["month"] for row in await db.fetch(_MONTHS, list(PARENTS))]
        return [await _one(db, month, oldest, dry_run=dry_run) for month in present]


async def _today(db: "asyncpg.Connection[asyncpg.Record]") -> date:
    now: date = await db.fetchval("select (now() at time zone 'utc')::date")
    return now


def _at_least_one(months: int) -> int:
    if months < 1:
        raise ValueError(f"at least one full month is kept, not {months}")
    return months


def month_before(day: date, months: int) -> date:
    """The first day of the month that many months before the day's own."""
    count = day.year * 12 + day.month - 1 - months
    return date(count // 12, count % 12 + 1, 1)


async def _one(
    db: "asyncpg.Connection[asyncpg.Record]", month: date, oldest: date, *, dry_run: bool
) -> Month:
    after = month_before(month, -1)
    partitions = [f"{parent}_{month:%Y_%m}" for parent in PARENTS]
    row = await db.fetchrow(_STATE, month, after, partitions)
    if row is None:
        raise RuntimeError("a select without a from gives one row")
    reason = _why_kept(row, month, oldest)
    verdict = RetentionVerdict.KEPT if reason else RetentionVerdict.DUE
    if verdict is RetentionVerdict.DUE and not dry_run:
        await _drop(db, month, after, partitions)
        verdict = RetentionVerdict.DROPPED
        log.info("postgres.month_dropped", month=f"{month:%Y-%m}", bytes=row["size_bytes"])
    return Month(
        month=month,
        verdict=verdict,
        reason=reason,
        cycles=row["cycles"],
        size_bytes=row["size_bytes"],
    )


def _why_kept(row: "asyncpg.Record", month: date, oldest: date) -> str:
    if month >= oldest:
        return f"from {oldest:%Y-%m} on all is kept"
    if row["running"] or row["open"]:
        return f"{row['running']} of its cycles have not ended ({row['open']} open operations)"
    if row["unpublished"]:
        return f"{row['unpublished']} of its events are not published yet"
    return ""


async def _drop(
    db: "asyncpg.Connection[asyncpg.Record]", month: date, after: date, partitions: Sequence[str]
) -> None:
    # What was looked at cannot change meanwhile: no cycle begins in a past month or runs again.
    try:
        async with db.transaction():
            await db.execute(f"set local lock_timeout = '{LOCK_TIMEOUT_S}s'")
            await db.execute("select pg_advisory_xact_lock(hashtext('deskbus.partitions'))")
            last = await db.fetchrow(_LAST, month, after)
            for parent, partition in zip(PARENTS, partitions, strict=True):
                await db.execute(f'drop table if exists "{partition}"')
                # Rows that came while the month had no partition.
                await db.execute(
                    f"delete from {parent}_rest where started_on >= $1 and started_on < $2",  # noqa: S608
                    month,
                    after,
                )
            if last is not None:
                await db.execute(_MOVE_HORIZON, *last)
    except (asyncpg.LockNotAvailableError, asyncpg.DeadlockDetectedError) as error:
        raise Busy(
            f"{month:%Y-%m} was not dropped: the tables were in use for {LOCK_TIMEOUT_S} s (an "
            "export, a backup?); try again later, months before it are done"
        ) from error
