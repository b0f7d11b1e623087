"""The embedded Postgres: its cluster, how it is run, when it is ready."""

import asyncio
import os
import shutil
import signal
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path

import structlog

from libs.runtime.errors import StartError
from libs.runtime.guarded import Identity, guarded_argv
from libs.runtime.ports import LOOPBACK
from libs.runtime.whole_file import OWN, write_whole
from libs.servers.binaries import PostgresPrograms
from libs.servers.child_log import log_tail, opened_log
from libs.servers.leftovers import birth_of
from libs.servers.placement import hand_over
from libs.servers.supervisor import Child

log = structlog.get_logger()

SUPERUSER = "postgres"
STOP_SIGNAL = signal.SIGINT  # "fast": ends sessions, writes a checkpoint.
READY_POLL_S = 0.01
INITDB_TIMEOUT_S = 120.0
READY_TIMEOUT_S = 120.0  # After a crash the log is replayed first.
STOP_TIMEOUT_S = 20.0

SETTINGS: Mapping[str, str] = {
    # For a laptop: some ten clients, a small working set. fsync and synchronous_commit stay on.
    "shared_buffers": "128MB",
    "max_connections": "100",
    "max_wal_size": "512MB",
    "jit": "off",
    "listen_addresses": LOOPBACK,
    "unix_socket_directories": "",
    "password_encryption": "scram-sha-256",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "logging_collector": "off",
    "log_destination": "stderr",
    "max_logical_replication_workers": "0",
    "cluster_name": "deskbus",
}

ENVIRONMENT = {"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"}
_PID_FILE_PID, _PID_FILE_STATUS = 0, 7


LAST_BACKUP = "last_backup"
"""The file in the data directory that names the newest dump."""
NO_ROOM = "No space left"
DAMAGED = (
    "PANIC",
    "checkpoint record",
    "corrupt",
    "invalid magic",
    "incorrect",
    "is not a valid",
    "could not open file",
    "could not open directory",
    "could not read file",
    "bogus data",
)
"""Words in the log of a server that cannot start with the files that it has."""


class PostgresError(StartError):
    """The embedded Postgres can't be set up or refused what was asked."""


async def prepare_postgres(
    programs: PostgresPrograms,
    server_dir: Path,
    superuser_password: str,
    log_path: Path,
    run_as: Identity | None,
) -> Path:
    """Make the cluster where there is none, check the one that is there; return its folder.

    A cluster appears whole or not at all: initdb works in a folder beside it, renamed at the end.
    Raises PostgresError on another major version, a failing initdb, or a foreign running server.
    """
    home = hand_over(server_dir / "postgres", run_as)
    cluster = home / "cluster"
    if cluster.exists():
        _check_version(cluster, programs)
        _clear_stale_pid_file(cluster)
        return cluster
    partial = home / "cluster.partial"
    shutil.rmtree(partial, ignore_errors=True)
    password_file = server_dir / "superuser.partial"
    try:
        _write_private(password_file, superuser_password, run_as)
        await _initdb(programs, partial, password_file, log_path, run_as)
    finally:
        password_file.unlink(missing_ok=True)
    partial.rename(cluster)
    log.info("postgres.cluster_created", path=str(cluster), major=programs.major)
    return cluster


def _write_private(path: Path, text: str, owner: Identity | None) -> None:
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        if owner is not None:
            os.fchown(file.fileno(), owner.uid, owner.gid)
        file.write(text + "\n")


async def _initdb(
    programs: PostgresPrograms,
    cluster: Path,
    password_file: Path,
    log_path: Path,
    run_as: Identity | None,
) -> None:
    argv = [str(programs.server_bindir / "initdb"), "-D", str(cluster), "--encoding=UTF8"]
    # The C locale exists on every system and sorts the same on all of them.
    argv += ["--locale=C", "--auth=scram-sha-256", f"--username={SUPERUSER}"]
    argv += [f"--pwfile={password_file}", "--no-instructions"]
    with opened_log(log_path) as output:
        process = await asyncio.create_subprocess_exec(
            *guarded_argv(argv, signal.SIGKILL, run_as),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=ENVIRONMENT,
            cwd=cluster.parent,
            start_new_session=True,
        )
        exit_code = await _exit_code(process, INITDB_TIMEOUT_S)
    if exit_code != 0:
        owner = os.geteuid() if run_as is None else run_as.uid
        raise PostgresError(
            f"initdb could not make a Postgres cluster in {cluster} (exit code {exit_code}). A "
            f"full disk and a folder that uid {owner} can't write are the usual reasons. The end "
            f"of {log_path}:\n{log_tail(log_path)}"
        )


async def _exit_code(process: asyncio.subprocess.Process, timeout_s: float) -> int:
    try:
        return await asyncio.wait_for(process.wait(), timeout_s)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def _check_version(cluster: Path, programs: PostgresPrograms) -> None:
    major = (cluster / "PG_VERSION").read_text().strip()
    if major != str(programs.major):
        raise PostgresError(
            f"The database in {cluster} was made by Postgres {major}, and this is Postgres "
            f"{programs.major} ({programs.bindir}). Point DESKBUS_POSTGRES_BINDIR at the programs "
            f"of Postgres {major}, or move {cluster} away to start with an empty desk."
        )


def _clear_stale_pid_file(cluster: Path) -> None:
    """Remove a postmaster.pid whose pid now belongs to a process that is no Postgres.

    Postgres itself replaces one whose process is gone, but gives up when the pid is in use again.
    """
    path = cluster / "postmaster.pid"
    pid = _pid_file_line(path, _PID_FILE_PID)
    if pid is None or not pid.isdigit() or birth_of(int(pid)) is None:
        return
    if _runs_on(int(pid), cluster):
        raise PostgresError(
            f"A Postgres that this desk did not start (pid {pid}) runs on {cluster}. Stop it with "
            f"`kill -INT {pid}` and try again."
        )
    log.warning("postgres.stale_pid_file_removed", path=str(path), pid=int(pid))
    path.unlink()


def _runs_on(pid: int, cluster: Path) -> bool:
    """True where the process may be a Postgres on this cluster, by its name and working folder."""
    process = Path("/proc") / str(pid)
    if not Path("/proc/self").exists():
        return True  # macOS: it can't be told from here, so leave it to Postgres and the user.
    try:
        if (process / "comm").read_text().strip() != "postgres":
            return False
        return (process / "cwd").readlink() == cluster.resolve()
    except (FileNotFoundError, ProcessLookupError):
        return False
    except PermissionError:
        return True


def postgres_child(
    programs: PostgresPrograms,
    cluster: Path,
    port: int,
    log_path: Path,
    run_as: Identity | None,
    data_dir: Path,
) -> Child:
    """The supervised Postgres of a desk's data directory."""
    argv = [str(programs.server_bindir / "postgres"), "-D", str(cluster), "-p", str(port)]
    for name, value in SETTINGS.items():
        argv += ["-c", f"{name}={value}"]

    async def ready(pid: int) -> None:
        # Its own word, and about this very process: a port that answers may be somebody else's.
        pid_file = cluster / "postmaster.pid"
        while (  # noqa: ASYNC110
            _pid_file_line(pid_file, _PID_FILE_PID) != str(pid)
            or _pid_file_line(pid_file, _PID_FILE_STATUS) != "ready"
        ):
            await asyncio.sleep(READY_POLL_S)

    return Child(
        name="postgres",
        argv=argv,
        env=ENVIRONMENT,
        cwd=cluster.parent,
        log_path=log_path,
        ready=ready,
        todo=partial(_todo, log_path, data_dir),
        run_as=run_as,
        ports=[port],
        stop_signal=STOP_SIGNAL,
        stop_timeout_s=STOP_TIMEOUT_S,
        ready_timeout_s=READY_TIMEOUT_S,
        parent_death_signal=STOP_SIGNAL,
    )


def note_backup(data_dir: Path, file: Path) -> None:
    """Remember where the newest dump of the database is, for whoever must restore it."""
    with suppress(OSError):  # the dump is there all the same
        write_whole(data_dir / LAST_BACKUP, f"{file.absolute()}\n".encode(), OWN)


def _todo(log_path: Path, data_dir: Path) -> str:
    """The advice where the server does not start because its files are damaged."""
    words = log_tail(log_path)
    if NO_ROOM in words or not any(mark in words for mark in DAMAGED):
        return ""
    note = data_dir / LAST_BACKUP
    backup = note.read_text(encoding="utf-8").strip() if note.exists() else ""
    known = f"the newest backup made here is {backup}" if backup else "no backup was made here"
    return (
        "Its files are damaged: keep a copy of the data directory, then restore a backup into a "
        f"new one: `DESKBUS_DATA_DIR=NEW deskbus db restore {backup or 'FILE'}` ({known})"
    )


def _pid_file_line(path: Path, number: int) -> str | None:
    try:
        return path.read_text().splitlines()[number].strip()
    except (FileNotFoundError, IndexError):
        return None
