"""Logs of child processes: where they lie, who may read them, how they end."""

import errno
import os
from pathlib import Path
from typing import IO

from libs.runtime.own_folder import OWN_FOLDER, make_folder

LOG_BYTES_MAX = 10 * 1024 * 1024
LOG_TAIL_BYTES = 1500
LOG_MODE = 0o600


def log_tail(path: Path) -> str:
    """The last LOG_TAIL_BYTES of a log, or a word about why there is nothing to show."""
    try:
        return path.read_bytes()[-LOG_TAIL_BYTES:].decode(errors="replace").strip() or "(empty)"
    except OSError as error:
        return f"(unreadable: {error})"


def make_logs_dir(path: Path) -> Path:
    """A folder for logs, which tell what the desk decides: its owner's alone."""
    make_folder(path)
    path.chmod(OWN_FOLDER)
    return path


def opened_log(path: Path) -> IO[bytes]:
    """A log to append to, its owner's alone. Whoever it is handed to writes by the descriptor."""

    def opener(name: str, flags: int) -> int:
        return os.open(name, flags, LOG_MODE)

    return open(path, "ab", buffering=0, opener=opener)


def last_line(path: Path) -> str:
    """The last line of a log, or a word about why there is none."""
    return log_tail(path).splitlines()[-1]


def set_aside_when_large(path: Path) -> None:
    """Begin a new log where this one has grown over LOG_BYTES_MAX; the old one is kept once."""
    if path.exists() and path.stat().st_size > LOG_BYTES_MAX:
        path.replace(path.with_name(path.name + ".1"))


class LogFile:
    """A log as a text file: a new one is begun once it has grown over LOG_BYTES_MAX, and the one
    before is kept once. Each line is written at once, whole."""

    def __init__(self, path: Path) -> None:
        self._path = path
        make_logs_dir(path.parent)
        self._file = opened_log(path)

    def write(self, text: str) -> int:
        """Append a text, whole or not at all. Raises OSError where there is no room for it."""
        if self._file.seek(0, os.SEEK_END) > LOG_BYTES_MAX:
            self._file.close()
            set_aside_when_large(self._path)
            self._file = opened_log(self._path)
        line, before = text.encode(errors="replace"), self._file.seek(0, os.SEEK_END)
        if self._file.write(line) < len(line):
            self._file.truncate(before)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self._path))
        return len(text)

    def flush(self) -> None:
        """Nothing waits: `write` hands each text to the system."""
