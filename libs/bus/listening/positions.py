"""Where a program goes on after a restart: one small file a handler."""

import time
from pathlib import Path

import structlog

from contracts.position import Position, position_of
from libs.runtime.whole_file import OWN, write_whole

SAVE_EVERY_S = 1.0
"""What a crash repeats at most."""

log = structlog.get_logger()


class SavedPosition:
    """The position of one handler in a file; without a file it is only remembered."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._saved = self.now = self._read()
        self._save_at = 0.0

    def _read(self) -> Position | None:
        if self._path is None or not self._path.exists():
            return None
        position = position_of(self._path.read_text().strip())
        if position is None:
            log.warning("listening.position_unreadable", path=str(self._path))
        return position

    def move(self, position: Position | None) -> None:
        """All up to here has been dealt with."""
        if position is not None:
            self.now = position

    def save(self, *, at_once: bool = False) -> None:
        """Write it down where it has moved, at most every SAVE_EVERY_S or `at_once`."""
        if self._path is None or self.now is None or self.now == self._saved:
            return
        if not at_once and time.monotonic() < self._save_at:
            return
        self._save_at = time.monotonic() + SAVE_EVERY_S
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(self._path, f"{self.now}\n".encode(), OWN)
        except OSError as error:
            # Nothing is lost by it: some events come again after a restart.
            log.warning("listening.position_unsaved", path=str(self._path), error=str(error))
        else:
            self._saved = self.now
