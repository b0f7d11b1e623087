"""The live tail over HTTP and real tables: every event once, in order, whatever is restarted."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from datetime import date
from typing import TYPE_CHECKING, Any
from uuid import UUID

import httpx2
import pytest

from libs.postgres.pool import CONSOLE_ROLE, OWNER_ROLE, open_pool
from libs.postgres.retention import RetentionVerdict, retain
from libs.runtime import ids
from libs.runtime.ports import choose_port
from services.console.live.tail import TailPace
from services.console.store import sql
from tests.fakes import event_stream
from tests.fakes.event_stream import Frame
from tests.integration.console.over_http import serving

if TYPE_CHECKING:
    from libs.postgres.pool import PoolConnection
    from libs.runtime.settings import Settings
    from libs.servers.embedded import Servers
    from tests.integration.console.conftest import Made

PATH = "/api/v1/events/stream"
STOP_S_MAX = 1.5
OLD = date(2020, 1, 10)
MANY = 10_000
NEW = (
    "insert into state_events (started_on, op_id, seq, cycle_id, type, owner, data)"
    " select $4, $1, $2 + number, $1, 'state_entered', 'orchestrator', '{\"filling\": \"%s\"}'"
    " from generate_series(0, $3 - 1) number"
)


@asynccontextmanager
async def stream(url: str, **asked: Any) -> AsyncIterator[AsyncIterator[Frame]]:
    """The frames of a stream that was let in; `position` goes into the header."""
    position = asked.pop("position", None)
    headers = {"Last-Event-ID": position} if position else {}
    async with (
        asyncio.timeout(30),
        httpx2.AsyncClient(base_url=url, verify=False, timeout=30) as client,
        client.stream("GET", PATH, params=asked, headers=headers) as answer,
    ):
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        yield event_stream.frames(answer.aiter_bytes())


async def taken(frames: AsyncIterator[Frame], count: int) -> tuple[list[str], str]:
    """The ids of the next events, at least `count`, and the position behind them."""
    found: list[str] = []
    position = ""
    async for frame in frames:
        assert frame.kind == "events", frame
        found += frame.names
        position = frame.id
        if len(found) >= count:
            break
    return found, position


async def write(db: PoolConnection, made: Made, count: int, day: date | None = None) -> None:
    """Events of the cycle in one transaction."""
    first = made.count + 1
    made.count += count
    await db.execute(NEW % ("x" * 400), made.cycle_id, first, count, day or date(2026, 11, 22))


def named(made: Made, *numbers: int) -> list[str]:
    return [str(ids.event_id(made.cycle_id, number)) for number in numbers]


async def test_events_come_as_they_are_committed_with_their_sequence(
    url: str, db: PoolConnection, made: Made
) -> None:
    await write(db, made, 3)
    async with stream(url) as frames:
        assert (await anext(frames)).data == [], "from now on"
        await made.event(1_001, "decision", vetoed_tickers=["X"])
        frame = await anext(frames)
    (event,) = frame.data
    assert (event["sequence"], event["type"]) == (4, "decision")
    assert event["event_id"] == str(ids.event_id(made.cycle_id, 1_001))
    assert event["data"] == {"vetoed_tickers": ["X"]}


async def test_a_transaction_that_commits_late_is_waited_for_and_comes_in_its_place(
    url: str, servers: Servers, db: PoolConnection, made: Made
) -> None:
    async with (
        stream(url) as frames,
        open_pool(servers.postgres_dsn(OWNER_ROLE), size_max=1) as pool,
        pool.acquire() as other,
    ):
        await anext(frames)
        transaction = other.transaction()
        await transaction.start()
        await write(other, made, 1)
        await write(db, made, 1)
        told = asyncio.ensure_future(anext(frames))
        assert not (await asyncio.wait({told}, timeout=0.3))[0], "or the late one would be lost"
        await transaction.commit()
        assert (await told).names == named(made, 1, 2)


async def test_a_cycles_own_stream_begins_with_its_first_event(
    url: str, db: PoolConnection, made: Made
) -> None:
    await write(db, made, 1_500)
    await made.event(5_000, "operation_failed", step="plan", code="c", message="m")
    async with stream(url, cycle_id=str(made.cycle_id), back=10_000) as frames:
        found, position = await taken(frames, 1_501)
    assert found == named(made, *range(1, 1_501), 5_000)
    async with stream(url, cycle_id=str(made.cycle_id), back=3, errors="true") as frames:
        assert (await taken(frames, 1))[0] == named(made, 5_000)
    await made.event(5_001)
    async with stream(url, cycle_id=str(made.cycle_id), position=position) as frames:
        assert (await taken(frames, 1))[0] == named(made, 5_001)


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"after": "7"}, "after"),
        ({"service": "kitchen"}, "service"),
        ({"back": "-1"}, "back"),
        ({"cycle_id": "x"}, "cycle_id"),
        ({"type": "x" * 90}, "type"),
    ],
)
async def test_what_cannot_be_followed_is_refused(
    url: str, asked: dict[str, str], field: str
) -> None:
    async with httpx2.AsyncClient(base_url=url, verify=False) as client:
        answer = await client.get(PATH, params=asked)
    assert answer.status_code == 422
    assert answer.json()["field"].endswith(field)


# --- gaps ---------------------------------------------------------------------------------------


async def test_a_position_of_other_tables_is_told_and_what_there_is_follows(
    url: str, db: PoolConnection, made: Made
) -> None:
    await write(db, made, 2)
    async with stream(url, back=1) as frames:
        (name,), position = await taken(frames, 1)
    xid, row, mark = position.split("-")
    other = "0" * 8 if mark != "0" * 8 else "1" * 8
    for strange in (f"{xid}-{row}-{other}", f"{int(xid) + 10**6}-{row}-{mark}"):
        async with stream(url, position=strange) as frames:
            gap = await anext(frames)
            assert (gap.kind, gap.data["reason"]) == ("gap", "unknown")
            found: list[str] = []
            while name not in found:
                found += (await anext(frames)).names
    async with stream(url, position=position) as frames:
        assert (await anext(frames)).kind == "events", "the real one is known"


async def test_who_was_away_while_retention_dropped_events_is_told(
    url: str, servers: Servers, db: PoolConnection, made: Made
) -> None:
    await db.execute("select ensure_partitions($1)", OLD)
    await write(db, made, 1)
    async with stream(url, back=1) as frames:
        _, before = await taken(frames, 1)
    await write(db, made, 1, OLD)
    await write(db, made, 1)
    async with stream(url, back=1) as frames:
        _, behind = await taken(frames, 1)
    await db.execute("update relay_cursor set xid = $1", 2**62)
    try:
        months = await retain(servers.postgres_dsn(OWNER_ROLE), 1)
    finally:
        await db.execute("update relay_cursor set xid = '0'")
    assert [each.verdict for each in months if each.month == OLD.replace(day=1)] == [
        RetentionVerdict.DROPPED
    ]
    async with stream(url, position=before) as frames:
        gap = await anext(frames)
        assert (gap.kind, gap.data["reason"], gap.id) == ("gap", "retention", before)
        assert (await anext(frames)).names == named(made, 3), "what is left follows"
    async with stream(url, position=behind) as frames:
        assert (await anext(frames)).kind == "events", "behind what was dropped nothing is missing"


# --- bounds -------------------------------------------------------------------------------------


async def test_one_client_too_many_is_told_to_come_again(settings: Settings) -> None:
    async with serving(settings, http_streams_max=1) as url:
        async with (
            stream(url) as frames,
            httpx2.AsyncClient(base_url=url, verify=False) as client,
        ):
            await anext(frames)
            refused = await client.get(PATH)
            assert (refused.status_code, refused.json()["code"]) == (503, "unavailable")
            assert "retry-after" in refused.headers
            assert (await client.get("/api/v1/budget")).status_code == 200
        async with asyncio.timeout(10):
            while True:  # the console notices a moment later that the first one has gone
                try:
                    async with stream(url) as frames:
                        await anext(frames)
                        break
                except AssertionError:
                    await asyncio.sleep(0.05)


async def test_a_client_that_does_not_read_holds_nobody_up_and_loses_nothing(
    url: str, db: PoolConnection, made: Made
) -> None:
    host, port = url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(f"GET {PATH} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    await reader.readuntil(b"\r\n\r\n")
    slow = event_stream.frames(chunks(reader))
    await anext(slow)
    async with stream(url) as quick:
        await anext(quick)
        await write(db, made, MANY)
        await taken(quick, MANY)
        # By now the slow one's sockets are full, and with these its queue is.
        for number in range(1, TailPace.queue_max + 5):
            await write(db, made, 1)
            assert (await taken(quick, 1))[0] == named(made, MANY + number)
    async with asyncio.timeout(30):
        found, _ = await taken(slow, made.count)
    writer.close()
    assert found == named(made, *range(1, made.count + 1))


async def chunks(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """A chunked body."""
    while size := int(await reader.readline(), 16):
        yield await reader.readexactly(size)
        await reader.readline()


# --- restarts -----------------------------------------------------------------------------------


async def test_the_console_stops_at_once_with_streams_open(settings: Settings) -> None:
    async with AsyncExitStack() as console:
        url = await console.enter_async_context(serving(settings))
        async with stream(url) as frames:
            await anext(frames)
            began = time.monotonic()
            await console.aclose()
            assert time.monotonic() - began < STOP_S_MAX
            assert [frame async for frame in frames] == [], "ended, not broken off"


@contextmanager
def process(settings: Settings, port: int) -> Iterator[subprocess.Popen[bytes]]:
    """The console as a process of its own; killed at the end."""
    given = {
        "DATA_DIR": settings.data_dir,
        "NATS_URL": settings.nats_address,
        "POSTGRES_DSN": settings.postgres_address,
        "SECRETS_DIR": settings.secrets_path,
        "HTTP_ENABLED": "true",
        "HTTP_PORT": port,
    }
    child = subprocess.Popen(
        [sys.executable, "-m", "services.console"],
        env=os.environ | {f"DESKBUS_{name}": str(value) for name, value in given.items()},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield child
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()


async def up(url: str) -> None:
    async with asyncio.timeout(60), httpx2.AsyncClient(verify=False) as client:
        while True:
            try:
                await client.get(f"{url}/api/v1/budget")
            except httpx2.TransportError:
                await asyncio.sleep(0.05)
            else:
                return


async def test_a_console_killed_under_a_client_costs_it_no_event_and_repeats_none(
    settings: Settings, db: PoolConnection, made: Made
) -> None:
    port = choose_port(None, set())
    url = f"http://127.0.0.1:{port}"
    found: list[str] = []

    async def writing() -> None:
        for _ in range(100):
            await write(db, made, 5)
            await asyncio.sleep(0.01)

    with process(settings, port) as child:
        await up(url)
        async with stream(url) as frames:
            position = (await anext(frames)).id
            task = asyncio.create_task(writing())
            some, position = await taken(frames, 50)
            found += some
            child.send_signal(signal.SIGKILL)
            with suppress(httpx2.TransportError):
                async for frame in frames:  # what was on its way
                    found += frame.names
                    position = frame.id
    await task
    with process(settings, port):
        await up(url)
        async with stream(url, position=position) as frames:
            some, _ = await taken(frames, 500 - len(found))
            found += some
    assert found == named(made, *range(1, 501))


# --- how it is read -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "given", "index"),
    [
        ("events_since", (1, 1, 2**62, 1, 10), r"\d_xid_id_idx"),
        ("events_of_cycle_since", (1, 1, 2**62, 1, 10, UUID(int=1)), "cycle_id_xid_id_idx"),
        ("event_back", (10,), r"\d_xid_id_idx"),
        ("event_of_cycle_back", (10, UUID(int=1)), "cycle_id_xid_id_idx"),
        ("event_at", (1, 1), r"\d_xid_id_idx"),
    ],
)
async def test_the_tails_reads_go_by_an_index_and_sort_no_table(
    servers: Servers, db: PoolConnection, made: Made, name: str, given: tuple[Any, ...], index: str
) -> None:
    await write(db, made, 100)
    async with open_pool(servers.postgres_dsn(CONSOLE_ROLE), size_max=1) as pool:
        rows = await pool.fetch(f"explain {getattr(sql, name)}", *given)
    plan = "\n".join(row[0] for row in rows)
    assert re.search(index, plan), plan
    assert "Seq Scan" not in plan
    # One cycle's own events are few: to sort them is as good.
    assert "cycle" in name or "Sort  (" not in plan
