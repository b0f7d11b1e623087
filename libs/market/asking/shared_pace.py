"""A pace that all processes of one data directory keep together: a file says when the next may go.

For a source that counts the requests of a machine, not of a process. The lock is held only while
the file is read and written, never while anybody waits or asks.
"""

import fcntl
import math
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from libs.market.errors import RateLimited, SourceUnavailable
from libs.runtime.own_folder import make_folder

WAIT_S_MAX = 60.0
"""A place further away is refused: whoever asked has given up by then."""
HOLD_S_MAX = 3_600.0
"""A file that says more than this is not believed: somebody turned the clock."""


class SharedPace:
    """Requests one after the other, 1 / `per_s` seconds apart, of all processes that share `path`.

    No burst after a rest. `clock` is the same for all processes: the wall clock.
    """

    def __init__(
        self, path: Path, per_s: float, source: str, clock: Callable[[], float] = time.time
    ) -> None:
        self._path = path
        self._step_s = 1.0 / per_s
        self._source = source
        self._clock = clock

    def take(self, requests: int) -> float:
        """See Paced.take. Raises RateLimited where the next place is further than WAIT_S_MAX away,
        and SourceUnavailable where the file cannot be written."""
        with self._locked() as file:
            now = self._clock()
            free = max(now, _free(file, now))
            if free - now > WAIT_S_MAX:
                raise RateLimited(self._source, free - now)
            _write(file, free + requests * self._step_s)
        return free - now

    def hold(self, wait_s: float) -> None:
        """See Paced.hold: nobody of any process goes for `wait_s`."""
        with self._locked() as file:
            now = self._clock()
            _write(file, max(_free(file, now), now + wait_s))

    @contextmanager
    def _locked(self) -> Iterator[int]:
        try:
            make_folder(self._path.parent)
            file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise SourceUnavailable(
                self._source,
                f"{self._path.parent} cannot be written ({error.strerror}), and the pace of all "
                f"processes is kept there; set DESKBUS_DATA_DIR",
            ) from error
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield file
        finally:
            os.close(file)


def _free(file: int, now: float) -> float:
    """When the next place is free, as the file says; now where what it says cannot be."""
    try:
        free = float(os.pread(file, 64, 0))
    except ValueError:  # new, or somebody else's
        return now
    return free if math.isfinite(free) and free <= now + HOLD_S_MAX else now


def _write(file: int, free: float) -> None:
    os.ftruncate(file, 0)
    os.pwrite(file, repr(free).encode(), 0)
