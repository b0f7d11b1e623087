"""The drill: run cycles, dump, restore into a new cluster, start the desk on it, and go on."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from libs.postgres.migrate import migrate
from libs.postgres.pool import CONSOLE_ROLE, OWNER_ROLE, dsn_for
from libs.postgres.restored import RESTORED_XID, settle_restored
from libs.runtime.settings import Settings
from libs.servers.binaries import find_postgres_bindir
from libs.servers.embedded_thread import held_in_thread
from libs.servers.postgres_backup import BackupFailed, restore
from libs.servers.postgres_server import SUPERUSER
from services.launcher import servers_of
from tests.integration.desk.caller import Caller, account_of, operation_of, wish
from tests.integration.desk.command_line import CommandLine
from tests.integration.desk.conftest import Desk, watched
from tests.integration.desk.test_sql import CATALOG

Db = asyncpg.Connection  # type: ignore[type-arg]
WAIT_S = 30.0
LEAP = 5_000
"""Transactions that the first cluster is ahead of the second: each of the second's ids was given
by the first one long ago."""

NUMBERED = (
    "select cycle_id, op_id, seq, type, row_number() over (partition by cycle_id order by xid, id)"
    " as sequence from state_events order by cycle_id, sequence"
)
UNPUBLISHED = (
    "select op_id, seq from state_events"
    " where (xid, id) > (select xid, id from relay_cursor) order by op_id, seq"
)


@dataclass
class Restored:
    """A desk in a new data directory with a dump's data in it, not started yet."""

    settings: Settings
    before: Sequence[Mapping[str, Any]]
    ended: str
    waiting: str
    account: str
    ledger: Sequence[Any]


async def rows(db: Db, statement: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in await db.fetch(statement)]


async def until(true: Callable[[], Awaitable[bool]]) -> None:
    """Asked again until it is true; what another process does to its tables has no event here."""
    async with asyncio.timeout(WAIT_S):
        while not await true():  # noqa: ASYNC110
            await asyncio.sleep(0.05)


async def ended(user: Caller, cycle_id: str) -> bool:
    view = await user.query("cycle", cycle_id=cycle_id)
    return bool(view["status"] != "running")


async def published(db: Db) -> bool:
    return not await rows(db, UNPUBLISHED)


@pytest.fixture(scope="module")
def restored(
    desk: Desk, make_open_dir: Callable[[], Path], tmp_path_factory: pytest.TempPathFactory
) -> Restored:
    """One cycle that has ended and one that waits for its trader, dumped and restored."""
    folder = tmp_path_factory.mktemp("backup")

    async def dumped() -> tuple[str, str, str, list[Any], list[Any]]:
        async with desk.calling("user") as user, desk.postgres() as db:
            for _ in range(LEAP):
                await db.execute("select pg_current_xact_id()")
            body = wish()
            ended = (await user.run(body))["cycle_id"]
            async with desk.held_back("trader-picks"):
                waiting = await user.accepted(wish())
                await user.events.first(cycle_id=waiting, type="state_entered", state="deciding")
                done = await asyncio.to_thread(
                    CommandLine(desk.settings.data_dir, folder), "db backup desk.dump --json"
                )
                assert (done.code, done.rows[0]["size_bytes"] > 10_000) == (0, True), done.err
                numbered = await rows(db, NUMBERED)
            ledger = await rows(db, "select * from balances order by account, book, ticker")
            return ended, waiting, account_of(body), numbered, ledger

    ended, waiting, account, numbered, ledger = asyncio.run(dumped())
    data_dir = make_open_dir() / "new"
    deskbus = CommandLine(data_dir, folder)
    done = deskbus("db restore desk.dump --json")
    assert done.code == 0, done.err
    again = deskbus("db restore desk.dump")
    assert (again.code, "already has a desk's tables" in again.err) == (1, True)
    settings = Settings(data_dir=data_dir, orchestrator={"sweep_s": 0.1})
    return Restored(settings, numbered, ended, waiting, account, ledger)


@pytest.fixture(scope="module")
def second(restored: Restored) -> Iterator[Desk]:
    """The desk on the restored data."""

    async def settled() -> None:
        async with servers_of(restored.settings) as placed:
            db = await asyncpg.connect(
                dsn_for(placed.postgres_address, SUPERUSER, placed.secrets_path)
            )
            try:
                assert await rows(db, NUMBERED) == restored.before
                assert await rows(db, "select distinct xid from state_events") == [(RESTORED_XID,)]
                now = await db.fetchval("select pg_snapshot_xmax(pg_current_snapshot())")
                assert now < LEAP, "the new cluster must be behind the old one for this drill"
            finally:
                await db.close()

    asyncio.run(settled())
    with held_in_thread(lambda: watched(restored.settings)) as held:
        yield Desk(held.settings)


async def test_the_cycle_that_ran_when_it_was_dumped_goes_on_and_ends(
    second: Desk, restored: Restored
) -> None:
    async with second.calling("user") as user:
        # Its end may have been told before we listened; then only the tables know.
        await until(lambda: ended(user, restored.waiting))
        view = await user.query("cycle", cycle_id=restored.waiting)
        told = await user.query("events", cycle_id=restored.waiting)

    assert view["status"] == "completed"
    sequences = [event["sequence"] for event in told["events"]]
    assert sequences == list(range(1, len(sequences) + 1))
    before = [row for row in restored.before if str(row[0]) == restored.waiting]
    assert [event["type"] for event in told["events"]][: len(before)] == [r[3] for r in before]
    assert told["events"][-1]["type"] == "cycle_ended"


async def test_no_event_is_lost_and_no_sequence_changes(second: Desk, restored: Restored) -> None:
    async with second.postgres() as db:
        now = {(row[1], row[2]): (row[0], row[4]) for row in await rows(db, NUMBERED)}

    assert {(row[1], row[2]): (row[0], row[4]) for row in restored.before}.items() <= now.items()


async def test_the_relay_publishes_what_is_new_there(second: Desk) -> None:
    async with second.calling("user") as user:
        view = await user.run(wish())
        heard = user.events.of(view["cycle_id"])

    assert view["status"] == "completed"
    assert [event["sequence"] for event in heard] == list(range(1, len(heard) + 1))
    async with second.postgres() as db, asyncio.timeout(WAIT_S):
        # The cursor moves a moment after the events.
        await until(lambda: published(db))


async def test_the_books_are_as_they_were_and_a_repeated_request_is_known(
    second: Desk, restored: Restored
) -> None:
    async with second.postgres() as db:
        owned = await rows(db, "select * from balances order by account, book, ticker")
        clock = await db.fetchval(
            "select count(*) from accounts where account = $1", restored.account
        )
    assert [each for each in owned if each[0] == restored.account] == [
        each for each in restored.ledger if each[0] == restored.account
    ]
    assert clock == 1
    async with second.calling("user") as user:
        assert (await user.query("cycle", cycle_id=restored.ended))["status"] == "completed"


async def test_what_models_were_sent_is_in_the_dump(second: Desk, restored: Restored) -> None:
    async with second.calling("user") as user:
        nodes = (await user.query("operations", cycle_id=restored.ended))["operations"]
        quant = str(operation_of(nodes, "quant"))
        (index,) = [
            entry["index"]
            for entry in (await user.query("operation", op_id=quant))["journal"]
            if entry["kind"] == "model"
        ]
        sent = await user.query("sent", op_id=quant, index=index)
    assert [text["role"] for text in sent["texts"]] == ["system", "schema", "user", "assistant"]
    assert "You are the quant" in sent["texts"][0]["text"]
    assert "</facts>" in sent["texts"][2]["text"]


async def test_the_views_for_sql_are_in_the_dump_with_comments_and_rights(
    desk: Desk, second: Desk, restored: Restored
) -> None:
    async def seen(of: Desk) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
        dsn = dsn_for(of.settings.postgres_address, CONSOLE_ROLE, of.secrets_dir)
        db = await asyncpg.connect(dsn)
        try:
            decided = (
                "select ticker, action, outcome, quantity from desk.proposals"
                f" where cycle_id = '{restored.ended}' order by ticker"
            )
            return await rows(db, CATALOG), await rows(db, decided)
        finally:
            await db.close()

    catalog, decided = await seen(desk)
    assert (len(catalog) > 200, len(decided) > 0) == (True, True)
    assert await seen(second) == (catalog, decided)


async def test_migrating_again_renumbers_nothing(second: Desk) -> None:
    dsn = dsn_for(second.settings.postgres_address, OWNER_ROLE, second.secrets_dir)
    async with second.postgres() as db:
        before = await rows(db, "select op_id, seq, xid, id from state_events order by xid, id")

        await migrate(dsn)

        assert await settle_restored(db) == 0
        after = await rows(db, "select op_id, seq, xid, id from state_events order by xid, id")
    assert after[: len(before)] == before


async def test_events_that_were_not_published_at_the_dump_stay_unpublished(desk: Desk) -> None:
    """A table of its own with ids of the future, two events of which the cursor has passed."""
    async with desk.postgres() as db:
        await db.execute("create schema drill")
        try:
            await db.execute("set search_path = drill")
            await db.execute(
                "create table state_events (started_on date default '2026-11-22', op_id uuid,"
                " seq int, id bigint generated always as identity, xid xid8);"
                " create table relay_cursor"
                " (xid xid8, id bigint, dropped_xid xid8, dropped_id bigint)"
            )
            # Against each other: the first transaction has the later ids.
            future = 10**12
            given = [(1, future + 1, 7), (2, future + 1, 8), (3, future + 2, 5), (4, future + 3, 6)]
            for number, xid, id_ in given:
                await db.execute(
                    "insert into state_events (op_id, seq, id, xid) overriding system value"
                    " values ($1, 0, $2, $3)",
                    UUID(int=number),
                    id_,
                    xid,
                )
            await db.execute("insert into relay_cursor values ($1, 8, $1, 8)", future + 1)

            assert await settle_restored(db) == len(given)

            order = await rows(db, "select op_id from state_events order by xid, id")
            assert [each[0].int for each in order] == [1, 2, 3, 4]
            assert [each[0].int for each in await rows(db, UNPUBLISHED)] == [3, 4]
            assert await rows(db, "select dropped_xid, dropped_id from relay_cursor") == [(0, 0)]
        finally:
            await db.execute("reset search_path; drop schema drill cascade")


async def test_what_is_no_dump_is_refused_and_nothing_is_left(desk: Desk, tmp_path: Path) -> None:
    torn = tmp_path / "torn.dump"
    torn.write_bytes(b"PGDMP and then nothing")
    bindir = find_postgres_bindir(None)
    dsn = dsn_for(desk.settings.postgres_address, OWNER_ROLE, desk.secrets_dir)

    with pytest.raises(BackupFailed, match="pg_restore") as refused:
        await restore(bindir, dsn, torn)
    with pytest.raises(BackupFailed, match="No such file"):
        await restore(bindir, dsn, tmp_path / "none")

    password = (desk.secrets_dir / f"postgres_{OWNER_ROLE}.password").read_text().strip()
    assert password not in str(refused.value)
    said = CommandLine(desk.settings.data_dir, tmp_path)("db backup torn.dump")
    assert (said.code, "exists" in said.err) == (1, True)
    assert torn.read_bytes() == b"PGDMP and then nothing"
