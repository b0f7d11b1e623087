"""Where the embedded servers' files lie, and as which user the servers run.

Postgres refuses to run as root, so as root both servers run as `postgres` or `nobody`. That user
must be able to walk to the binaries and the data. Where it can't (a clone, an environment or a data
directory below a 0700 folder such as /root) they are placed below a *reachable root* instead:
`/var/lib/deskbus`, or for throw-away data (below the system's temp directory) a folder there.
The binaries' copy is named by its content and shared by all desks of the machine; the data has a
folder of its own, named by an id that is kept in the data directory. Once placed, data stays
there: a desk whose data can no longer be reached gets an error, not an empty database.

As an ordinary user everything stays in the data directory and the environment.
"""

import hashlib
import os
import pwd
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from libs.runtime.errors import StartError
from libs.runtime.guarded import Identity

UNPRIVILEGED_USERS = ("postgres", "nobody")
PERSISTENT_ROOT = Path("/var/lib/deskbus")
TEMPORARY_ROOT_NAME = "deskbus-root"
DIGEST_CHARACTERS = 16
_READ_CHUNK_BYTES = 1024 * 1024


class PlacementError(StartError):
    """Files can't be placed where the servers' user reaches them."""


def server_identity() -> Identity | None:
    """The user that the servers drop to when we are root; None when we are an ordinary user."""
    if os.geteuid() != 0:
        return None
    for name in UNPRIVILEGED_USERS:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return Identity(uid=entry.pw_uid, gid=entry.pw_gid)
    raise PlacementError(
        f"Postgres does not run as root, and none of the users {', '.join(UNPRIVILEGED_USERS)} "
        f"exists here to run it. Start Deskbus as an ordinary user, or set DESKBUS_POSTGRES_DSN "
        f"and DESKBUS_NATS_URL to servers of your own."
    )


def can_reach(path: Path, identity: Identity | None) -> bool:
    """Whether the identity may enter a directory (or run a file) and enter all folders above.

    Judged by owner, group and mode bits, which is what a fresh uid without extra groups gets.
    None (the servers run as ourselves) reaches everything that we do.
    """
    if identity is None:
        return True
    start = path.resolve()
    return all(_may_enter(step.stat(), identity) for step in (start, *start.parents))


def _may_enter(status: os.stat_result, identity: Identity) -> bool:
    if status.st_uid == identity.uid:
        return bool(status.st_mode & stat.S_IXUSR)
    if status.st_gid == identity.gid:
        return bool(status.st_mode & stat.S_IXGRP)
    return bool(status.st_mode & stat.S_IXOTH)


def reachable_root(data_dir: Path, identity: Identity) -> Path:
    """The first folder that we own and the identity can enter, for what lies out of its reach.

    Data below the system's temp directory stays below it, so that throw-away stays throw-away.
    """
    temporary = Path(tempfile.gettempdir()).resolve()
    candidates = [temporary / TEMPORARY_ROOT_NAME]
    if not data_dir.resolve().is_relative_to(temporary):
        candidates = [PERSISTENT_ROOT]
    problems = []
    for candidate in candidates:
        try:
            make_root(candidate)
        except OSError as error:
            problems.append(f"{candidate}: {error.strerror}")
            continue
        if can_reach(candidate, identity):
            return candidate
        problems.append(f"{candidate}: uid {identity.uid} can't enter it")
    raise PlacementError(
        f"The servers run as uid {identity.uid}, which can't reach {data_dir}, and there is no "
        f"place beside it ({'; '.join(problems)}). Set DESKBUS_DATA_DIR to a folder that every "
        f"user may enter, for example /srv/deskbus."
    )


def make_root(root: Path) -> None:
    """Make a root that others may enter and only we may write; PlacementError if it is not ours."""
    root.mkdir(mode=0o755, parents=True, exist_ok=True)
    status = root.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
        raise PlacementError(
            f"{root} exists and is not a directory of this user. Somebody else made it: look at "
            f"it, and remove it if it should not be there."
        )
    root.chmod(0o755)


def hand_over(path: Path, identity: Identity | None) -> Path:
    """Make a private directory (0700) that belongs to the servers' user; return it.

    PlacementError when it exists and belongs to somebody else.
    """
    owner = os.geteuid() if identity is None else identity.uid
    if not path.exists():
        path.mkdir(mode=0o700)
        if identity is not None:
            os.chown(path, identity.uid, identity.gid)
    uid = path.stat().st_uid
    if uid != owner:
        raise PlacementError(
            f"{path} belongs to uid {uid}, and the servers would run as uid {owner}. Start "
            f"Deskbus as the user who made it, or set DESKBUS_DATA_DIR to another folder."
        )
    path.chmod(0o700)
    return path


def reachable_copy(base: Path, parts: Sequence[Path], root: Path) -> Path:
    """Copy files and folders below `base` to `root/bin/<content hash>/`, once; return that folder.

    `parts` are relative to `base` and keep their place. An existing copy is used again when each
    of its files still has its size (cleaners of temp directories remove single files).
    """
    files = sorted(_files(base, parts))
    target = root / "bin" / _digest(base, files)
    if _same_sizes(base, target, files):
        return target
    make_root(target.parent)
    partial = target.parent / f".partial-{secrets.token_hex(8)}"
    try:
        for file in files:
            copy = partial / file
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(base / file, copy)
            copy.chmod(0o755 if os.access(base / file, os.X_OK) else 0o644)
        _open_to_all(partial)
        if target.exists():
            shutil.rmtree(target)
        partial.rename(target)
    except OSError as error:
        raise PlacementError(
            f"Can't copy the servers' programs from {base} to {target}: {error}. Free some space "
            f"there, or install Deskbus in a folder that every user may enter."
        ) from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return target


def _files(base: Path, parts: Sequence[Path]) -> Iterator[Path]:
    for part in parts:
        whole = base / part
        if whole.is_file():
            yield part
        for path in whole.rglob("*"):
            if path.is_file():
                yield path.relative_to(base)


def _digest(base: Path, files: Sequence[Path]) -> str:
    digest = hashlib.sha256()
    for file in files:
        digest.update(f"{file}\0{(base / file).stat().st_size}\0".encode())
        with (base / file).open("rb") as content:
            while chunk := content.read(_READ_CHUNK_BYTES):
                digest.update(chunk)
    return digest.hexdigest()[:DIGEST_CHARACTERS]


def _same_sizes(base: Path, target: Path, files: Sequence[Path]) -> bool:
    try:
        return all((target / f).stat().st_size == (base / f).stat().st_size for f in files)
    except FileNotFoundError:
        return False


def _open_to_all(folder: Path) -> None:
    # The process's umask may have closed the folders that mkdir made.
    for path in (folder, *folder.rglob("*")):
        if path.is_dir():
            path.chmod(0o755)
