"""How execution's connections go back to their pool."""

import asyncio
import re
import secrets
import socket
import threading
from decimal import Decimal
from urllib.parse import urlsplit
from uuid import uuid4

import asyncpg
import pytest

from libs.postgres import pool as pools
from libs.postgres.pool import (
    EXECUTION_ROLE,
    SILENT_S_MAX,
    DatabaseUnavailable,
    connected,
    notice_silence,
    open_pool,
)
from libs.runtime.ports import LOOPBACK
from libs.servers.embedded import Servers

FREED_S_MAX = 20.0
LONG = "select repeat('x', 1000000) from generate_series(1, 50)"
"""A result that no socket's buffer holds."""
LAST = "select query from pg_stat_activity where pid = $1"


@pytest.mark.parametrize(("transactions_only", "says"), [(True, "select 7"), (False, "RESET ALL")])
async def test_the_last_word_of_a_connection_that_goes_back_is_its_users(
    servers: Servers, transactions_only: bool, says: str
) -> None:
    dsn = servers.postgres_dsn(EXECUTION_ROLE)
    async with open_pool(dsn, size_max=1, transactions_only=transactions_only) as pool:
        pid = await pool.fetchval("select pg_backend_pid()")
        assert await pool.fetchval("select 7") == 7
        # As its own role, which sees what its own sessions say.
        watcher = await asyncpg.connect(dsn)
        try:
            assert says in str(await watcher.fetchval(LAST, pid))
        finally:
            await watcher.close()


async def test_what_was_left_open_in_a_connection_is_undone_before_the_next_one_has_it(
    servers: Servers,
) -> None:
    dsn, account = servers.postgres_dsn(EXECUTION_ROLE), f"left-{uuid4().hex[:8]}"
    insert = (
        "insert into accounts (account, currency, clock, opened_on, starting_cash, limits)"
        " values ($1, 'USD', '2012-06-29', '2012-06-29', $2, '{}')"
    )
    async with open_pool(dsn, size_max=1, transactions_only=True) as pool:
        async with pool.acquire() as db:
            await db.execute("begin")
            await db.execute(insert, account, Decimal(1))
        found = await pool.fetchval("select count(*) from accounts where account = $1", account)
    assert found == 0


async def test_a_server_that_says_nothing_does_not_hide_the_next_one_of_the_address(
    servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pools, "CONNECT_TIMEOUT_S", 3.0)
    with socket.create_server((LOOPBACK, 0)) as silent:
        place = f"{LOOPBACK}:{silent.getsockname()[1]}"
        dsn = servers.postgres_dsn(EXECUTION_ROLE).replace("@", f"@{place},")
        async with open_pool(dsn) as pool:
            assert await pool.fetchval("select 7") == 7


async def test_every_connection_breaks_when_its_server_falls_silent(
    servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[socket.socket] = []

    def set_and_kept(sock: socket.socket) -> None:
        notice_silence(sock)
        seen.append(sock)

    monkeypatch.setattr(pools, "notice_silence", set_and_kept)
    dsn = servers.postgres_dsn(EXECUTION_ROLE)
    async with open_pool(dsn) as pool, pool.acquire(), connected(dsn):
        assert len(seen) >= 2
        for sock in seen:
            timeout_ms = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)
            assert timeout_ms == SILENT_S_MAX * 1000
            assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)


async def test_a_server_that_does_not_answer_is_asked_last_the_next_time(
    servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pools, "CONNECT_TIMEOUT_S", 2.0)
    asked = []
    connect = asyncpg.connect

    async def noted(dsn: str, **options: object) -> object:
        asked.append(urlsplit(dsn).port)
        return await connect(dsn, **options)

    monkeypatch.setattr(pools.asyncpg, "connect", noted)
    with (
        socket.create_server((LOOPBACK, 0)) as silent,
        socket.create_server((LOOPBACK, 0)) as refuses,
    ):
        ports = [silent.getsockname()[1], refuses.getsockname()[1]]
        refuses.close()
        places = ",".join(f"{LOOPBACK}:{port}" for port in ports)
        dsn = re.sub("@.*/", f"@{places}/", servers.postgres_dsn(EXECUTION_ROLE))
        server_list = pools._Servers(dsn)
        for _ in range(2):
            with pytest.raises((OSError, TimeoutError)):
                await server_list.connect()
    assert asked == [*ports, *reversed(ports)]


async def test_a_process_that_is_frozen_while_a_result_comes_loses_its_locks(
    servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    soon = {**pools.SILENCE_OF_CLIENTS, "tcp_user_timeout": "1000"}
    monkeypatch.setattr(pools, "SILENCE_OF_CLIENTS", soon)
    dsn, lock = servers.postgres_dsn(EXECUTION_ROLE), secrets.randbelow(2**31)
    freed: list[bool] = []

    async def takes_it() -> None:
        async with connected(dsn) as db:
            await db.execute("select pg_advisory_lock($1)", lock, timeout=FREED_S_MAX)
            freed.append(True)

    async def reads(pool: pools.Pool) -> None:
        async with pool.acquire() as db, db.transaction():
            await db.execute("select pg_advisory_xact_lock($1)", lock)
            long = await db.prepare(LONG)
            reading = asyncio.ensure_future(long.fetch())
            await asyncio.sleep(0)
            # The question is sent; nothing of its answer is read while this loop stands still.
            other = threading.Thread(target=asyncio.run, args=(takes_it(),))
            other.start()
            other.join()
            await reading

    async with open_pool(dsn, size_max=1) as pool:
        with pytest.raises(DatabaseUnavailable):
            await reads(pool)
    assert freed == [True]
