"""Embedded servers that cannot do their work for a while: seen at once, and over by itself."""

import asyncio
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

import asyncpg
import httpx2
import nats.errors
import psutil
import pytest

from libs.runtime.ports import choose_port
from libs.runtime.settings import Settings
from libs.servers import supervisor
from libs.servers.postgres_server import SUPERUSER
from libs.servers.server_record import ServerRecord
from services.cli.operating.checks import CheckVerdict
from services.cli.operating.doctor import running
from tests.integration.desk.caller import wish
from tests.integration.desk.conftest import Desk, desk_in
from tests.small_disk import Disk, NoSmallDisk, small_disk, small_ext4

PATIENCE_S = 60.0
POSTGRES_DISK_BYTES = 192 * 1024 * 1024


@pytest.fixture
def disk(open_dir: Path) -> Iterator[Disk]:
    with ExitStack() as stack:
        try:
            made = stack.enter_context(small_disk(open_dir / "data" / "servers" / "nats"))
        except NoSmallDisk as error:
            pytest.skip(str(error))
        yield made


@pytest.fixture
def open_dir(make_open_dir: Callable[[], Path]) -> Path:
    return make_open_dir()


@pytest.fixture
def desk(disk: Disk, open_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    monkeypatch.setattr(supervisor, "UNWELL_S_MAX", 4.0)
    for folder in (open_dir / "data", open_dir / "data" / "servers"):
        folder.chmod(0o711)
    with watched_desk(open_dir) as made:
        yield made


@contextmanager
def watched_desk(folder: Path, **settings: Any) -> Iterator[Desk]:
    """A desk with embedded servers that can be watched."""
    own = {"metrics_port": choose_port(None, set()), **settings}
    with desk_in(folder, lambda _: nullcontext({}), **own) as made:
        yield made


async def until_ready(desk: Desk, wanted: Callable[[str], bool]) -> str:
    """What the desk's readiness says, once that is as it is wanted."""
    url = f"http://127.0.0.1:{desk.settings.metrics.port}/readyz"
    async with asyncio.timeout(PATIENCE_S), httpx2.AsyncClient(timeout=5) as http:
        while True:
            said = (await http.get(url)).text
            if wanted(said):
                return said
            await asyncio.sleep(0.2)  # as a probe does: nothing announces it


async def ended(desk: Desk, cycle: str) -> str:
    """How the cycle ended. Its event may have come while the bus was away."""
    async with asyncio.timeout(PATIENCE_S), desk.calling("user") as user:
        while True:
            status = str((await user.query("cycle", cycle_id=cycle))["status"])
            if status != "running":
                return status
            await asyncio.sleep(0.2)


def tried(said: str) -> int:
    """How often a server was started in vain, as readiness has it."""
    found = re.search(r"\((\d+) tries", said)
    return int(found[1]) if found else 0


async def accepted(desk: Desk) -> str:
    """A cycle, asked for until the desk says yes: NATS may be restarted at any moment."""
    body = wish()
    async with asyncio.timeout(PATIENCE_S):
        while True:
            with suppress(nats.errors.Error, OSError, TimeoutError):
                async with desk.calling("user") as user:
                    return await user.accepted(body)
            await asyncio.sleep(0.2)


async def bad_checks(settings: Settings) -> set[str]:
    found = await running(settings)
    return {each.name for each in found if each.verdict is CheckVerdict.PROBLEM}


@pytest.mark.soak
async def test_a_full_disk_of_nats_is_seen_and_the_desk_goes_on_once_there_is_room(
    desk: Desk, disk: Disk
) -> None:
    async with desk.calling("user") as user:
        await user.run(wish())
    disk.fill()
    # Asked at once: no doctor may say that NATS stores what it is given.
    checks = await running(desk.settings)
    assert "storing" not in {each.name for each in checks if each.verdict is CheckVerdict.OK}
    said = await until_ready(desk, lambda text: "storing: NATS does not store" in text)
    assert "check whether its disk is full" in said
    cycle = await accepted(desk)
    await until_ready(desk, lambda text: "commands: NATS has stored nothing" in text)
    async with asyncio.timeout(PATIENCE_S):
        # While the server is restarted for it, nobody can say whether it stores.
        while "storing" not in await bad_checks(desk.settings):
            pass

    disk.free()
    await until_ready(desk, lambda text: text == "ok\n")
    assert await ended(desk, cycle) == "completed"
    assert not await bad_checks(desk.settings) & {"storing", "server nats", "nats"}


@contextmanager
def frozen(pid: int) -> Iterator[None]:
    """A server whose processes are all stopped while the block runs."""
    server = psutil.Process(pid)
    processes = [server, *server.children(recursive=True)]
    for process in processes:
        process.suspend()
    try:
        yield
    finally:
        for process in processes:
            with suppress(psutil.NoSuchProcess):
                process.resume()


async def test_readiness_answers_while_a_server_is_frozen_or_read_only_and_agrees_with_doctor(
    make_open_dir: Callable[[], Path],
) -> None:
    folder = make_open_dir()
    with watched_desk(folder) as desk:
        await until_ready(desk, lambda text: text == "ok\n")
        marks = ServerRecord.load(folder / "data").processes
        # The client of `until_ready` gives up after five seconds: before, no answer came.
        with frozen(marks["postgres"].pid):
            said = await until_ready(desk, lambda text: "postgres" in text)
            assert "postgres deskbus_orchestrator: no answer within 1.5 s" in said
            assert "postgres deskbus-execution: no answer within 1.5 s" in said
        await until_ready(desk, lambda text: text == "ok\n")
        with frozen(marks["nats"].pid):
            said = await until_ready(desk, lambda text: "nats orchestrator" in text)
            assert "nats execution: NATS does not answer" in said
        await until_ready(desk, lambda text: text == "ok\n")

        await read_only(desk, "on")
        said = await until_ready(desk, lambda text: "postgres deskbus_orchestrator" in text)
        assert "postgres deskbus-execution" in said
        assert "read-only" in said
        assert "database" in await bad_checks(desk.settings)
        await read_only(desk, "off")
        await until_ready(desk, lambda text: text == "ok\n")
        assert "database" not in await bad_checks(desk.settings)


async def read_only(desk: Desk, to: str) -> None:
    """Have Postgres commit nothing, or again."""
    secrets = desk.settings.data_dir / "secrets"
    password = (secrets / "postgres_postgres.password").read_text().strip()
    ports = ServerRecord.load(desk.settings.data_dir).ports
    db = await asyncpg.connect(
        host="127.0.0.1",
        port=ports["postgres"],
        user=SUPERUSER,
        password=password,
        database="deskbus",
        server_settings={"default_transaction_read_only": "off"},
    )
    await db.execute(f"alter system set default_transaction_read_only = {to}")
    await db.execute("select pg_reload_conf()")
    await db.close()


async def test_a_full_disk_of_postgres_is_seen_before_anything_is_refused(
    open_dir: Path,
) -> None:
    with ExitStack() as stack:
        try:
            place = open_dir / "data" / "servers" / "postgres"
            disk = stack.enter_context(small_ext4(place, POSTGRES_DISK_BYTES))
        except NoSmallDisk as error:
            pytest.skip(str(error))
        for folder in (open_dir / "data", open_dir / "data" / "servers"):
            folder.chmod(0o711)
        desk = stack.enter_context(watched_desk(open_dir))
        await until_ready(desk, lambda text: text == "ok\n")
        disk.fill()
        said = await until_ready(desk, lambda text: "postgres deskbus_orchestrator" in text)
        assert "No space left" in said
        assert "database" in await bad_checks(desk.settings)
        async with desk.calling("user") as user:
            # As `deskbus status` asks, and doctor where it does not know the database's address.
            assert "No space left" in (await user.query("storing", server="postgres"))["problem"]
        disk.free()
        await until_ready(desk, lambda text: text == "ok\n")
        async with desk.calling("user") as user:
            assert (await user.run(wish()))["status"] == "completed"


async def test_a_postgres_that_cannot_start_is_tried_again_until_it_can(
    make_open_dir: Callable[[], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "RESTART_DELAY_FIRST_S", 0.01)
    monkeypatch.setattr(supervisor, "UNREADY_DELAY_MAX_S", 0.5)
    folder = make_open_dir()
    with watched_desk(folder) as desk:
        async with desk.calling("user") as user:
            await user.run(wish())
            cluster = folder / "data" / "servers" / "postgres" / "cluster"
            away = cluster.rename(cluster.with_name("away"))
            marks = ServerRecord.load(folder / "data").processes
            psutil.Process(marks["postgres"].pid).kill()
            tries = supervisor.UNREADY_STARTS_MAX + 2
            said = await until_ready(desk, lambda text: tried(text) >= tries)
            assert "server postgres: postgres does not start" in said
            assert "database" in await bad_checks(desk.settings)

            away.rename(cluster)
            await until_ready(desk, lambda text: text == "ok\n")
            assert (await user.run(wish()))["status"] == "completed"
