"""Embedded servers that cannot do their work for a while: seen at once, and over by itself."""

import asyncio
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

import httpx2
import nats.errors
import psutil
import pytest

from libs.runtime.ports import choose_port
from libs.runtime.settings import Settings
from libs.servers import supervisor
from libs.servers.server_record import ServerRecord
from services.cli.operating.checks import Verdict
from services.cli.operating.doctor import running
from tests.integration.desk.caller import wish
from tests.integration.desk.conftest import Desk, desk_in
from tests.small_disk import Disk, NoSmallDisk, small_disk

PATIENCE_S = 60.0


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
    url = f"http://127.0.0.1:{desk.settings.metrics_port}/readyz"
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
    return {each.name for each in found if each.verdict is Verdict.PROBLEM}


async def test_a_full_disk_of_nats_is_seen_and_the_desk_goes_on_once_there_is_room(
    desk: Desk, disk: Disk
) -> None:
    async with desk.calling("user") as user:
        await user.run(wish())
    disk.fill()
    said = await until_ready(desk, lambda text: "storing: NATS does not store" in text)
    assert "is its disk full?" in said
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
