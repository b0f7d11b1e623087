"""Embedded servers in a bad house: kills, stale files, closed folders, other users, two at once."""

import asyncio
import json
import os
import select
import shutil
import signal
import stat
import subprocess
import sys
import sysconfig
from pathlib import Path

import psutil
import pytest

from libs.keys.accounts import NatsPermissions
from libs.runtime.errors import StartError
from libs.runtime.guarded import Identity
from libs.servers import binaries
from libs.servers.binaries import BinaryError, find_nats_server, find_postgres_bindir
from libs.servers.embedded import Servers, embedded_servers
from libs.servers.leftovers import mark_of
from libs.servers.placement import can_reach
from libs.servers.postgres_roles import PsqlLogin, run_sql
from libs.servers.postgres_server import PostgresError, note_backup
from libs.servers.server_record import DataDirError, ServerRecord
from libs.servers.supervisor import ChildError

PERMISSIONS = {"orchestrator": NatsPermissions((">",), (">",))}
ROLES = ("orchestrator",)
DEADLINE_S = 30
NOBODY = Identity(uid=65534, gid=65534)
REPOSITORY = Path(__file__).parents[3]

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="root: only root changes users")
needs_linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc or uses prctl")

HOLD = """
import asyncio, json, os, sys
from pathlib import Path
from libs.keys.accounts import NatsPermissions
from libs.servers.embedded import embedded_servers
from libs.servers.postgres_roles import PsqlLogin, run_sql

async def main():
    permissions = {"orchestrator": NatsPermissions((">",), (">",))}
    async with embedded_servers(Path(sys.argv[1]), permissions, ["orchestrator"]) as servers:
        login = PsqlLogin(
            psql=servers.psql, port=servers.postgres_port, user="orchestrator",
            password=servers.postgres_password("orchestrator"), database=servers.database,
        )
        print("STATE " + json.dumps({
            "uid": os.geteuid(), "port": servers.postgres_port,
            "answer": await run_sql(login, "SELECT current_user"),
            "nats": servers.pid("nats"), "postgres": servers.pid("postgres"),
        }), flush=True)
        await asyncio.to_thread(sys.stdin.read)

asyncio.run(main())
"""


def _environment() -> dict[str, str]:
    """What lets another Python of the same version use this environment's packages."""
    return {
        "PATH": f"{sysconfig.get_path('scripts')}{os.pathsep}{os.defpath}",
        "PYTHONPATH": os.pathsep.join([str(REPOSITORY), sysconfig.get_path("platlib")]),
        "PYTHONDONTWRITEBYTECODE": "1",
    }


class _Holder:
    """Another process that holds embedded servers until its stdin closes."""

    def __init__(self, data_dir: Path, python: tuple[str, ...] = (sys.executable,)) -> None:
        self.process = subprocess.Popen(
            [*python, "-c", HOLD, str(data_dir)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=REPOSITORY,
            env=_environment(),
            text=True,
        )
        assert self.process.stdout is not None
        lines = []
        for line in iter(self.process.stdout.readline, ""):
            lines.append(line)
            if line.startswith("STATE "):
                self.state = json.loads(line.removeprefix("STATE "))
                return
        self.process.wait()
        raise AssertionError("the holder did not start:\n" + "".join(lines))

    def __enter__(self) -> "_Holder":
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.communicate(timeout=DEADLINE_S)
        else:
            self.process.stdin.close()
            self.process.stdout.close()


async def _answer(servers: Servers, sql: str = "SELECT 1") -> str:
    login = PsqlLogin(
        psql=servers.psql,
        port=servers.postgres_port,
        user="postgres",
        password=servers.postgres_password("postgres"),
        database=servers.database,
    )
    return await run_sql(login, sql)


async def _started_once(data_dir: Path) -> Servers:
    async with embedded_servers(data_dir, PERMISSIONS, ROLES) as servers:
        return servers


async def test_a_second_start_on_the_same_data_is_refused_and_names_the_first(
    open_dir: Path,
) -> None:
    async with embedded_servers(open_dir / "desk", PERMISSIONS, ROLES) as servers:
        with pytest.raises(DataDirError, match=f"pid {os.getpid()}.*DESKBUS_DATA_DIR"):
            await _started_once(open_dir / "desk")
        assert await _answer(servers) == "1"


@needs_linux
async def test_servers_end_with_a_killed_holder_and_the_next_start_works(open_dir: Path) -> None:
    with _Holder(open_dir / "desk") as holder:
        servers = [os.pidfd_open(holder.state[name]) for name in ("nats", "postgres")]
        holder.process.kill()
        for descriptor in servers:
            ended = select.poll()  # unlike select(), for any number of open files
            ended.register(descriptor, select.POLLIN)
            assert ended.poll(DEADLINE_S * 1_000)
            os.close(descriptor)
        holder.process.wait()
    async with embedded_servers(open_dir / "desk", PERMISSIONS, ROLES) as again:
        assert again.postgres_port == holder.state["port"]
        assert await _answer(again) == "1"


async def test_a_start_right_after_the_kill_of_holder_and_servers_works(open_dir: Path) -> None:
    with _Holder(open_dir / "desk") as holder:
        holder.process.kill()
        for name in ("postgres", "nats"):
            os.kill(holder.state[name], signal.SIGKILL)
        holder.process.wait()
        async with embedded_servers(open_dir / "desk", PERMISSIONS, ROLES) as again:
            assert again.postgres_port == holder.state["port"]
            assert await _answer(again) == "1"


async def test_a_server_left_behind_is_ended_by_the_next_start(open_dir: Path) -> None:
    data_dir = open_dir / "desk"
    await _started_once(data_dir)
    left = await asyncio.create_subprocess_exec("sleep", "60")
    record = ServerRecord.load(data_dir)
    ServerRecord(record.desk_id, None, record.ports, {"nats": mark_of(left.pid)}).save(data_dir)
    async with embedded_servers(data_dir, PERMISSIONS, ROLES):
        async with asyncio.timeout(DEADLINE_S):
            assert await left.wait() == -signal.SIGINT


@needs_linux
async def test_a_pid_file_whose_pid_belongs_to_somebody_else_now_is_no_obstacle(
    open_dir: Path,
) -> None:
    servers = await _started_once(open_dir / "desk")
    pid_file = servers.server_dir / "postgres" / "cluster" / "postmaster.pid"
    pid_file.write_text(f"{os.getpid()}\n{pid_file.parent}\n1\n5432\n\n127.0.0.1\n\nready\n")
    async with embedded_servers(open_dir / "desk", PERMISSIONS, ROLES) as again:
        assert await _answer(again) == "1"


async def test_a_pid_file_of_a_gone_process_is_no_obstacle(open_dir: Path) -> None:
    servers = await _started_once(open_dir / "desk")
    gone = await asyncio.create_subprocess_exec("true")
    await gone.wait()
    pid_file = servers.server_dir / "postgres" / "cluster" / "postmaster.pid"
    pid_file.write_text(f"{gone.pid}\n{pid_file.parent}\n1\n5432\n\n127.0.0.1\n\nready\n")
    async with embedded_servers(open_dir / "desk", PERMISSIONS, ROLES) as again:
        assert await _answer(again) == "1"


async def test_a_cluster_that_was_half_made_is_made_anew(open_dir: Path) -> None:
    desk = open_dir / "desk"
    servers = await _started_once(desk)
    cluster = servers.server_dir / "postgres" / "cluster"
    cluster.rename(cluster.with_name("cluster.partial"))
    (cluster.with_name("cluster.partial") / "PG_VERSION").unlink()
    async with embedded_servers(desk, PERMISSIONS, ROLES) as again:
        assert await _answer(again) == "1"


async def test_a_cluster_of_another_major_version_is_refused_with_a_way_out(
    open_dir: Path,
) -> None:
    servers = await _started_once(open_dir / "desk")
    (servers.server_dir / "postgres" / "cluster" / "PG_VERSION").write_text("12\n")
    with pytest.raises(PostgresError, match=r"made by Postgres 12.*DESKBUS_POSTGRES_BINDIR"):
        await _started_once(open_dir / "desk")


@pytest.mark.parametrize("backup", ["", "/backups/of-monday.dump"])
async def test_damaged_files_of_postgres_are_named_with_the_backup_to_restore(
    open_dir: Path, backup: str
) -> None:
    desk = open_dir / "desk"
    servers = await _started_once(desk)
    for segment in (servers.server_dir / "postgres" / "cluster" / "pg_wal").glob("0*"):
        segment.write_bytes(bytes(segment.stat().st_size))
    if backup:
        note_backup(desk, Path(backup))
    with pytest.raises(ChildError, match="deskbus db restore") as refused:
        await _started_once(desk)
    assert (backup or "no backup was made here") in str(refused.value)


async def test_a_spoiled_nats_store_folder_is_an_error_with_the_servers_own_words(
    open_dir: Path,
) -> None:
    servers = await _started_once(open_dir / "desk")
    store = servers.server_dir / "nats" / "jetstream"
    shutil.rmtree(store)
    store.write_text("not a folder")
    with pytest.raises(ChildError, match=r"nats ended.*nats\.log(.|\n)*storage directory"):
        await _started_once(open_dir / "desk")


async def test_a_data_directory_that_can_not_be_made_is_named(open_dir: Path) -> None:
    (open_dir / "file").write_text("")
    with pytest.raises(DataDirError, match=r"file/desk.*DESKBUS_DATA_DIR"):
        await _started_once(open_dir / "file" / "desk")


async def test_a_bindir_without_postgres_is_refused_with_a_way_out(open_dir: Path) -> None:
    with pytest.raises(BinaryError, match="DESKBUS_POSTGRES_BINDIR"):
        async with embedded_servers(open_dir / "desk", PERMISSIONS, ROLES, pg_bindir=open_dir):
            pass


def test_nats_server_comes_from_this_environment_and_not_from_path(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "nats-server").write_text("#!/bin/sh\n")
    (tmp_path / "nats-server").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_nats_server().parent == Path(sys.executable).parent


@needs_root
async def test_root_serves_from_below_a_private_folder_through_a_place_outside(
    open_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    private = open_dir / "private"
    private.mkdir(mode=0o700)
    bindir = _private_postgres(private)
    shutil.copy2(find_nats_server(), private / "nats-server")
    monkeypatch.setattr(binaries, "find_nats_server", lambda: private / "nats-server")

    def start() -> object:
        return embedded_servers(
            private / ".deskbus",
            PERMISSIONS,
            ROLES,
            pg_bindir=bindir,
            outside_root=open_dir / "outside",
        )

    async with start() as servers:
        assert servers.server_dir.is_relative_to(open_dir / "outside" / "desks")
        assert servers.secrets_dir == private / ".deskbus" / "secrets"
        for name in ("nats", "postgres"):
            program = psutil.Process(servers.pid(name)).exe()
            assert program.startswith(str(open_dir / "outside" / "bin"))
        await _answer(servers, "CREATE TABLE kept (n int)")
    copies = {path.name for path in (open_dir / "outside" / "bin").iterdir()}
    async with start() as again:
        assert await _answer(again, "SELECT count(*) FROM kept") == "0"
    assert {path.name for path in (open_dir / "outside" / "bin").iterdir()} == copies


def _private_postgres(folder: Path) -> Path:
    """A copy of the packaged Postgres with the neighbours that its programs look for."""
    install = find_postgres_bindir(None).parent
    package = install.parent
    copy = folder / package.name / install.name
    shutil.copytree(install, copy)
    libraries = package.with_name(f"{package.name}.libs")
    shutil.copytree(libraries, folder / libraries.name)
    return copy / "bin"


@needs_root
async def test_data_that_can_no_longer_be_reached_is_an_error_and_not_an_empty_desk(
    open_dir: Path,
) -> None:
    await _started_once(open_dir / "house" / "desk")
    (open_dir / "house").chmod(0o700)
    with pytest.raises(DataDirError, match=r"chmod o\+x"):
        await _started_once(open_dir / "house" / "desk")
    (open_dir / "house").chmod(0o755)
    await _started_once(open_dir / "house" / "desk")


@needs_root
def test_an_ordinary_user_runs_both_servers_as_itself(open_dir: Path) -> None:
    python = _python_of_nobody(open_dir)
    with _Holder(open_dir / "desk", python) as holder:
        assert holder.state["uid"] == NOBODY.uid
        assert holder.state["answer"] == "orchestrator"
        for name in ("nats", "postgres"):
            assert psutil.Process(holder.state[name]).uids().real == NOBODY.uid
    servers = open_dir / "desk" / "servers"
    assert stat.S_IMODE(servers.stat().st_mode) == 0o700
    assert servers.stat().st_uid == NOBODY.uid


def _python_of_nobody(folder: Path) -> tuple[str, ...]:
    """Give the folder to `nobody` and return the start of an argv that runs Python as that user."""
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        pytest.skip("setpriv is not installed")
    for needed in (REPOSITORY, Path(sysconfig.get_path("platlib")), find_nats_server()):
        if not can_reach(needed, NOBODY):
            pytest.skip(f"an ordinary user can't reach {needed}")
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    pythons = [Path(sys.executable), Path("/usr/bin") / version, Path("/usr/local/bin") / version]
    for python in pythons:
        if python.exists() and can_reach(python, NOBODY):
            os.chown(folder, NOBODY.uid, NOBODY.gid)
            drop = (f"--reuid={NOBODY.uid}", f"--regid={NOBODY.gid}", "--clear-groups")
            return (setpriv, *drop, str(python))
    pytest.skip(f"an ordinary user can run none of {[str(python) for python in pythons]}")


@needs_root
def test_a_folder_that_an_ordinary_user_can_not_write_is_named(open_dir: Path) -> None:
    python = _python_of_nobody(open_dir)
    os.chown(open_dir, 0, 0)
    with pytest.raises(AssertionError, match="Can't write to the data directory"):
        _Holder(open_dir / "desk", python)


@pytest.fixture
def system_bindir() -> Path:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
    if not found:
        pytest.skip("no Postgres of the distribution is installed")
    return found[-1].parent


async def test_a_system_postgres_can_be_used_instead(open_dir: Path, system_bindir: Path) -> None:
    async with embedded_servers(
        open_dir / "desk", PERMISSIONS, ROLES, pg_bindir=system_bindir
    ) as servers:
        version = await _answer(servers, "SHOW server_version")
    assert version.partition(".")[0] == system_bindir.parent.name


def test_every_start_error_is_one_kind() -> None:
    assert all(issubclass(kind, StartError) for kind in (BinaryError, ChildError, DataDirError))
