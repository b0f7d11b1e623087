"""A data directory's record of its embedded servers, and the lock that guards it."""

import fcntl
import json
import os
import secrets
import unicodedata
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from io import FileIO
from pathlib import Path
from typing import Self

from libs.runtime.errors import StartError
from libs.runtime.own_folder import make_data_dir
from libs.runtime.whole_file import OWN, write_whole

RECORD_NAME = "embedded.json"
LOCK_NAME = "lock"
ID_BYTES = 8
PID_DIGITS_MAX = 20


class DataDirError(StartError):
    """The data directory can't be used: in use, not writable, or its record is spoiled."""


@dataclass(frozen=True)
class ProcessMark:
    """A process that can be told from a later one with the same pid: the pid and its birth."""

    pid: int
    birth: str


@dataclass(frozen=True)
class ServerRecord:
    """The record of one data directory, kept as `embedded.json`.

    `desk_id` names the desk's folder where the servers' data can't lie in the data directory;
    `outside_dir` is that folder once it is used; `ports` and `processes` are by server name.
    """

    desk_id: str = field(default_factory=lambda: secrets.token_hex(ID_BYTES))
    outside_dir: str | None = None
    ports: Mapping[str, int] = field(default_factory=dict)
    processes: Mapping[str, ProcessMark] = field(default_factory=dict)

    @classmethod
    def load(cls, data_dir: Path) -> Self:
        """Read the record; a new one when there is none. Raises DataDirError."""
        path = data_dir / RECORD_NAME
        try:
            fields = json.loads(path.read_text())
            marks = {name: ProcessMark(**mark) for name, mark in fields.pop("processes").items()}
            return cls(**fields, processes=marks)
        except FileNotFoundError:
            return cls()
        except (ValueError, TypeError, KeyError, AttributeError, OSError) as error:
            raise DataDirError(
                f"Can't read {path} ({error}). It says where the servers' data lies: restore it; "
                f"or, to start with an empty desk, move {data_dir} away."
            ) from error

    def save(self, data_dir: Path) -> None:
        """Replace the record atomically."""
        text = json.dumps(asdict(self), indent=2)
        write_whole(data_dir / RECORD_NAME, text.encode(), OWN)


def private(path: str, flags: int) -> int:
    """An opener for files that are their owner's alone."""
    return os.open(path, flags, OWN)


@contextmanager
def locked(data_dir: Path) -> Iterator[None]:
    """Make the data directory and hold it; DataDirError when another process holds it, or where its
    path is none that the servers can take.

    The lock ends with the process, however that ends.
    """
    check_path(data_dir)
    with _opened_lock(data_dir) as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.pread(lock.fileno(), PID_DIGITS_MAX, 0).decode().strip() or "unknown"
            raise DataDirError(
                f"Another Deskbus (pid {holder}) runs its servers on {data_dir}. Use that one, "
                f"stop it, or set DESKBUS_DATA_DIR to another folder."
            ) from error
        try:
            lock.truncate(0)
            os.pwrite(lock.fileno(), str(os.getpid()).encode(), 0)
        except OSError as error:
            raise _not_writable(data_dir, error) from error
        yield


def check_path(data_dir: Path) -> None:
    """Raise DataDirError for a path with control characters, which the servers' configuration
    cannot hold, or with bytes that are not UTF-8."""
    path = str(data_dir)
    kinds = {unicodedata.category(character) for character in path}
    if "Cs" in kinds:
        what = "bytes that are not UTF-8"
    elif "Cc" in kinds:
        what = "a line break" if "\n" in path else "a control character"
    else:
        return
    raise DataDirError(
        f"The path of the data directory has {what}: {path!r}. Set DESKBUS_DATA_DIR to a folder "
        "with another name."
    )


def _opened_lock(data_dir: Path) -> FileIO:
    try:
        make_data_dir(data_dir)
        return FileIO(data_dir / LOCK_NAME, "a+", opener=private)
    except OSError as error:
        raise _not_writable(data_dir, error) from error


def _not_writable(data_dir: Path, error: OSError) -> DataDirError:
    return DataDirError(
        f"Can't write to the data directory {data_dir}: {error.strerror}. Make room or make it "
        f"writable for this user, or set DESKBUS_DATA_DIR to another folder."
    )
