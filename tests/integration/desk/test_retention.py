"""Months of journal and events, dropped when their cycles have ended; on a real Postgres."""

import asyncio
import hashlib
from collections.abc import AsyncIterator
from datetime import UTC, date, datetime, time
from pathlib import Path
from uuid import UUID, uuid4

import asyncpg
import pytest

from libs.bus.bodies import open_bodies
from libs.postgres import retention
from libs.postgres.pool import CONSOLE_ROLE, OWNER_ROLE, dsn_for
from libs.postgres.retention import Busy, RetentionVerdict, month_before, retain, retain_models
from tests.integration.desk.caller import Caller, wish
from tests.integration.desk.command_line import CommandLine
from tests.integration.desk.conftest import Desk

WAIT_S = 20.0
OLD, OLDER = date(2020, 1, 10), date(2020, 2, 10)
Db = asyncpg.Connection  # type: ignore[type-arg]


@pytest.fixture
async def db(desk: Desk, user: Caller) -> AsyncIterator[Db]:
    """The superuser's connection; what was made for a test is gone after it."""
    async with desk.postgres() as held:
        if await held.fetchval("select xid = '0' from relay_cursor"):
            await user.run(wish())
        async with asyncio.timeout(WAIT_S):
            # The cursor moves a moment after the events were heard.
            while await held.fetchval("select xid = '0' from relay_cursor"):  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        yield held
        await held.execute("delete from strategies where name = 'kept'")
        await held.execute("delete from bodies where kept_at < '2021-01-01'")
        for table in ("journal", "state_events", "prompt_texts", "operations", "cycles"):
            await held.execute(f"delete from {table} where started_on < '2021-01-01'")


@pytest.fixture
def dsn(desk: Desk) -> str:
    return dsn_for(desk.settings.postgres_address, OWNER_ROLE, desk.secrets_dir)


async def cycle(db: Db, day: date, *, status: str = "completed", partition: bool = True) -> UUID:
    """A cycle of that day with one operation, one journal entry and one published event."""
    cycle_id = uuid4()
    if partition:
        await db.execute("select ensure_partitions($1)", day)
    await db.execute(
        "insert into cycles (cycle_id, kind, workflow_version, requester, idempotency_key,"
        " body_sha256, request, as_of, started_on, status, state, accepted_at, deadline_at,"
        " ended_at, tokens_max, cost_usd_max)"
        " values ($1, 'decision', 1, 'cli', $2, '', '{}', $3::date, $3::date, $4, '{}', $3::date,"
        " now() + interval '1 hour', case when $4 <> 'running' then now() end, 1, 1)",
        cycle_id,
        str(cycle_id),
        day,
        status,
    )
    await db.execute(
        "insert into operations (op_id, cycle_id, started_on, pipeline, account, state, step,"
        " service, attempt, as_of, status, claimed, must_answer, command, due_at, created_at)"
        " values ($1, $1, $2, 'rules', 'main', 'planning', 'plan', 'research', 1, $2, 'completed',"
        " true, false, '{}', now(), now())",
        cycle_id,
        day,
    )
    await db.execute(
        "insert into journal (started_on, op_id, index, epoch, entry) values ($1, $2, 0, 1, '{}')",
        day,
        cycle_id,
    )
    await db.execute(
        "insert into prompt_texts (started_on, sha256, text)"
        " values (date_trunc('month', $1::date), sha256($2::text::bytea), $2::text)",
        day,
        str(cycle_id),
    )
    # Behind the relay's cursor, so that the running desk publishes nothing of it.
    await db.execute(
        "insert into state_events (started_on, op_id, seq, cycle_id, type, owner, xid)"
        " values ($1, $2, 0, $2, 'cycle_ended', 'orchestrator', '1')",
        day,
        cycle_id,
    )
    return cycle_id


async def held(db: Db, cycle_id: UUID) -> tuple[int, int, int, int]:
    """How many rows of the cycle there are: in cycles, journal, state_events, prompt_texts."""
    row = await db.fetchrow(
        "select (select count(*) from cycles where cycle_id = $1),"
        " (select count(*) from journal where op_id = $1),"
        " (select count(*) from state_events where cycle_id = $1),"
        " (select count(*) from prompt_texts where text = $1::text)",
        cycle_id,
    )
    assert row is not None
    return tuple(row)


async def tables(db: Db) -> set[str]:
    rows = await db.fetch("select relname from pg_class where relname ~ '_2020_[0-9]{2}$'")
    return {row["relname"] for row in rows}


async def verdicts(dsn: str, months: int, *, dry_run: bool = False) -> dict[str, RetentionVerdict]:
    told = await retain(dsn, months, dry_run=dry_run, today=date(2020, 4, 30))
    return {f"{each.month:%Y-%m}": each.verdict for each in told}


async def test_whole_old_months_lose_journal_and_events_and_keep_their_cycles(
    db: Db, dsn: str
) -> None:
    old, newer = await cycle(db, OLD), await cycle(db, OLDER)

    told = await verdicts(dsn, 2)

    assert (told["2020-01"], told["2020-02"]) == (RetentionVerdict.DROPPED, RetentionVerdict.KEPT)
    assert await held(db, old) == (1, 0, 0, 0)
    assert await held(db, newer) == (1, 1, 1, 1)
    assert "journal_2020_01" not in await tables(db)
    assert {"journal_2020_02", "state_events_2020_02"} <= await tables(db)


async def test_the_views_for_sql_answer_of_a_dropped_month_too(db: Db, dsn: str) -> None:
    old, newer = await cycle(db, OLD), await cycle(db, OLDER)

    await verdicts(dsn, 2)

    counts = {
        view: await db.fetchval(
            f"select count(*) from desk.{view} where cycle_id = any($1)",
            [old, newer],
        )
        for view in ("cycles", "operations", "calls", "events")
    }
    assert counts == {"cycles": 2, "operations": 4, "calls": 1, "events": 1}


async def test_a_month_with_a_running_cycle_stays_whole(db: Db, dsn: str) -> None:
    ended, running = await cycle(db, OLD), await cycle(db, OLD, status="running")
    other = await cycle(db, OLDER)

    told = await verdicts(dsn, 1)

    assert (told["2020-01"], told["2020-02"]) == (RetentionVerdict.KEPT, RetentionVerdict.DROPPED)
    assert await held(db, ended) == await held(db, running) == (1, 1, 1, 1)
    assert await held(db, other) == (1, 0, 0, 0)
    await db.execute(
        "update cycles set status = 'failed', ended_at = now() where cycle_id = $1", running
    )
    assert (await verdicts(dsn, 1))["2020-01"] == RetentionVerdict.DROPPED


async def test_an_open_operation_of_an_ended_cycle_keeps_its_month(db: Db, dsn: str) -> None:
    cycle_id = await cycle(db, OLD)
    await db.execute(
        "update operations set status = 'pending', due_at = now() + interval '1 hour'"
        " where cycle_id = $1",
        cycle_id,
    )

    assert (await verdicts(dsn, 1))["2020-01"] == RetentionVerdict.KEPT
    assert await held(db, cycle_id) == (1, 1, 1, 1)


async def test_events_that_are_not_published_keep_their_month(db: Db, dsn: str) -> None:
    cycle_id = await cycle(db, OLD)
    # Ahead of the cursor and above the relay's horizon: the desk cannot publish it meanwhile.
    await db.execute("update state_events set xid = '9000000000' where cycle_id = $1", cycle_id)

    assert (await verdicts(dsn, 1))["2020-01"] == RetentionVerdict.KEPT
    assert await held(db, cycle_id) == (1, 1, 1, 1)


async def test_a_dry_run_tells_the_same_and_drops_nothing(db: Db, dsn: str) -> None:
    cycle_id = await cycle(db, OLD)

    told = await verdicts(dsn, 2, dry_run=True)

    assert told["2020-01"] == RetentionVerdict.DUE
    assert await held(db, cycle_id) == (1, 1, 1, 1)
    assert (await verdicts(dsn, 2))["2020-01"] == RetentionVerdict.DROPPED


async def test_rows_of_a_month_without_partitions_go_too(db: Db, dsn: str) -> None:
    cycle_id = await cycle(db, date(2020, 3, 1), partition=False)

    assert (await verdicts(dsn, 1))["2020-03"] == RetentionVerdict.KEPT
    await retain(dsn, 1, today=date(2020, 5, 1))

    assert await held(db, cycle_id) == (1, 0, 0, 0)


async def test_the_desks_present_month_stays_and_the_desk_goes_on(
    user: Caller, db: Db, dsn: str
) -> None:
    before = await user.run(wish())

    await retain(dsn, 1)

    assert (await held(db, UUID(before["cycle_id"])))[0] == 1
    events = (await user.query("events", cycle_id=before["cycle_id"]))["events"]
    assert events[-1]["type"] == "cycle_ended"
    assert (await user.run(wish()))["status"] == "completed"


async def model(db: Db, kept: date, cycle_id: UUID | None = None, assessed: bool = False) -> bytes:
    """A trained model in two parts; of a cycle's strategy where one is given."""
    sha256 = uuid4().bytes + uuid4().bytes
    for part in range(2):
        await db.execute(
            "insert into bodies (sha256, part, parts, bytes, kept_at) values ($1, $2, 2, 'ab', $3)",
            sha256,
            part,
            datetime.combine(kept, time(), UTC),
        )
    if cycle_id is not None:
        await db.execute(
            "update operations set result = convert_to($2, 'UTF8') where cycle_id = $1",
            cycle_id,
            f'{{"model_sha256": "{sha256.hex()}"}}',
        )
        await db.execute(
            "insert into strategies (cycle_id, name, spec_sha256, as_of, design_op_id,"
            " train_op_id, assess_op_id) values ($1, 'kept', $2, $3, $1, $1, $4)",
            cycle_id,
            sha256.hex(),
            kept,
            cycle_id if assessed else None,
        )
    return sha256


async def parts(db: Db, *models: bytes) -> list[int]:
    """How many parts of each are there."""
    count = "select count(*) from bodies where sha256 = $1"
    return [await db.fetchval(count, each) for each in models]


async def test_models_that_nobody_can_want_go(db: Db, dsn: str) -> None:
    unknown = await model(db, OLD)
    stopped = await model(db, OLD, await cycle(db, OLD))
    told = await retain_models(dsn, 2, dry_run=True, today=date(2020, 4, 30))
    assert (told.verdict, told.models, told.size_bytes) == (RetentionVerdict.DUE, 2, 8)
    assert await parts(db, unknown, stopped) == [2, 2]

    done = await retain_models(dsn, 2, today=date(2020, 4, 30))

    assert (done.verdict, done.models, done.size_bytes) == (RetentionVerdict.DROPPED, 2, 8)
    assert await parts(db, unknown, stopped) == [0, 0]


async def test_models_that_somebody_may_want_stay(db: Db, dsn: str) -> None:
    stay = [
        await model(db, OLD, await cycle(db, OLD), assessed=True),
        await model(db, OLD, await cycle(db, OLD, status="running")),
        await model(db, OLD, await cycle(db, OLDER)),  # trained again in a month that stays
        await model(db, OLDER),  # just kept, and no result tells of it yet
    ]

    assert (await retain_models(dsn, 2, today=date(2020, 4, 30))).models == 0

    assert await parts(db, *stay) == [2, 2, 2, 2]


async def test_a_model_that_is_kept_again_is_as_new(desk: Desk, db: Db, dsn: str) -> None:
    body = uuid4().bytes
    sha256 = hashlib.sha256(body)
    async with open_bodies(desk.url, desk.secrets_dir, "strategy") as bodies:
        await bodies.keep(sha256.hexdigest(), body)
        made_old = "update bodies set kept_at = '2020-01-10' where sha256 = $1"
        await db.execute(made_old, sha256.digest())
        await bodies.keep(sha256.hexdigest(), body)

    await retain_models(dsn, 2, today=date(2020, 4, 30))

    assert await parts(db, sha256.digest()) == [1]


async def test_tables_in_use_are_not_waited_for(
    db: Db, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cycle_id = await cycle(db, OLD)
    monkeypatch.setattr(retention, "LOCK_TIMEOUT_S", 0.1)
    async with db.transaction():
        await db.fetch("select 1 from journal limit 1")

        with pytest.raises(Busy, match="2020-01 was not dropped"):
            await verdicts(dsn, 2)

    assert await held(db, cycle_id) == (1, 1, 1, 1)


async def test_only_the_owner_may(db: Db, desk: Desk) -> None:
    await cycle(db, OLD)
    console = dsn_for(desk.settings.postgres_address, CONSOLE_ROLE, desk.secrets_dir)

    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await verdicts(console, 2)


async def test_on_the_command_line(db: Db, desk: Desk, tmp_path: Path) -> None:
    deskbus = CommandLine(desk.settings.data_dir, tmp_path)
    await cycle(db, OLD)

    planned = deskbus("db retain --months 12 --dry-run --json")
    done = deskbus("db retain --months 12")
    wrong = deskbus("db retain --months 0")

    *months, models = planned.rows
    due = {row["month"]: row["verdict"] for row in months}
    assert (planned.code, due["2020-01-01"]) == (0, "due")
    assert (done.code, "2020-01" in done.out, "dropped" in done.out) == (0, True, True)
    assert (models["what"], models["verdict"], models["models"]) == ("models", "due", 0)
    assert "dropped: 0 trained models" in done.out
    assert wrong.code == 2
    assert "journal_2020_01" not in await tables(db)


def test_months_are_counted_over_the_years_end() -> None:
    assert month_before(date(2026, 1, 31), 1) == date(2025, 12, 1)
    assert month_before(date(2026, 12, 31), -1) == date(2027, 1, 1)
    assert month_before(date(2026, 3, 1), 15) == date(2024, 12, 1)
