"""Dump a database into one file and restore it elsewhere, by Postgres' own pg_dump and pg_restore.

Both run as the role of the address that they are given, which must own the tables. The password
travels in the environment: not in a list of processes, not in an error's text.
"""

import asyncio
import os
from pathlib import Path
from urllib.parse import unquote, urlsplit

from libs.runtime.dsn import dsn_of
from libs.runtime.errors import DeskError
from libs.servers.postgres_server import ENVIRONMENT

FILE_MODE = 0o600
DUMP_MAGIC = b"PGDMP"
"""The first bytes of every file that pg_dump writes in its custom format."""
DUMPED = ("--format=custom", "--no-owner", "--exclude-schema=pg_catalog")
"""Nothing of Postgres' own: what roles may call of it is set by whoever makes them."""


class BackupFailed(DeskError):
    """pg_dump or pg_restore failed; the text has its message."""

    code = "backup_failed"


async def dump(bindir: Path, dsn: str, file: Path) -> None:
    """Write the whole database into `file`, which must not exist: one moment, while work goes on.

    The file appears whole or not at all, readable by its owner alone. Raises `BackupFailed`.
    """
    try:
        # Reserved now: nobody else's file of that name is ever written over.
        _make(file)
    except FileExistsError as error:
        raise BackupFailed(f"{file} exists already; name a new file") from error
    except OSError as error:
        raise BackupFailed(
            f"{file} cannot be written: {error.strerror}; name a file in a folder that is there "
            "and yours"
        ) from error
    partial = file.with_name(f"{file.name}.partial")
    try:
        _make(partial)
        await _run(bindir / "pg_dump", dsn, *DUMPED, f"--file={partial}")
        partial.replace(file)
    except BaseException:
        _remove(file)
        raise
    finally:
        _remove(partial)


def _remove(path: Path) -> None:
    path.unlink(missing_ok=True)


def _make(path: Path) -> None:
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE))


async def restore(bindir: Path, dsn: str, file: Path) -> None:
    """Put a dump's tables into the database, which must have none: all of them, or nothing.

    Raises `BackupFailed`, also where `file` is none of `dump`'s.
    """
    await _run(
        bindir / "pg_restore",
        dsn,
        "--exit-on-error",
        "--single-transaction",
        "--no-owner",
        str(file),
    )


async def _run(program: Path, dsn: str, *options: str) -> None:
    address, password = without_password(dsn)
    try:
        process = await asyncio.create_subprocess_exec(
            program,
            f"--dbname={address}",
            "--no-password",
            *options,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            env={**ENVIRONMENT, "PGPASSWORD": password},
        )
    except OSError as error:
        raise BackupFailed(
            f"{program} does not run ({error.strerror}); DESKBUS_POSTGRES_BINDIR names a "
            "folder with it"
        ) from error
    try:
        _, words = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode != 0:
        why = words.decode(errors="replace").strip()[:2_000]
        raise BackupFailed(why or f"{program.name} ended with exit code {process.returncode}")


def without_password(dsn: str) -> tuple[str, str]:
    """The address without its password, and the password."""
    parts = urlsplit(dsn)
    login, at, place = parts.netloc.rpartition("@")
    user, _, password = login.partition(":")
    return dsn_of(parts._replace(netloc=f"{user}{at}{place}")), unquote(password)
