"""Find and end servers that a killed supervisor left behind, and nothing else.

A pid alone proves nothing: it may have been given to another process since. A process is ours when
the pid *and* its birth are what the data directory's record says.
"""

import asyncio
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import structlog

from libs.runtime.errors import StartError
from libs.servers.server_record import ProcessMark

log = structlog.get_logger()

END_TIMEOUT_S = 15.0
POLL_S = 0.02
_STAT_FIELD_STATE = 0
_STAT_FIELD_START = 19


class LeftoverError(StartError):
    """An earlier server still runs and can't be ended from here."""


def birth_of(pid: int) -> str | None:
    """When a running process was born, as an opaque text; None when there is no such process.

    Linux: the boot's id and the start in clock ticks since boot (proc(5), field 22). Elsewhere:
    the start as `ps` prints it, to the second. A zombie counts as gone.
    """
    if sys.platform != "linux":
        return _birth_by_ps(pid)
    try:
        # The second field is the name in parentheses and may hold spaces and parentheses itself.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    if fields[_STAT_FIELD_STATE] in "ZX":
        return None
    boot_id = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return f"{boot_id}:{fields[_STAT_FIELD_START]}"


def _birth_by_ps(pid: int) -> str | None:
    answer = subprocess.run(  # noqa: S603
        ["/bin/ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    return answer.stdout.strip() or None


def mark_of(pid: int) -> ProcessMark:
    """The mark of a process that we just started."""
    return ProcessMark(pid, birth_of(pid) or "ended")


def runs(mark: ProcessMark) -> bool:
    """True where the marked process, and not a later one with its pid, is running."""
    return birth_of(mark.pid) == mark.birth


async def end_leftover(name: str, mark: ProcessMark, stop_signal: signal.Signals) -> None:
    """End the marked process if it still runs (stop signal, then SIGKILL); return when it is gone.

    Raises LeftoverError when it is not ours to end or does not go.
    """
    if not runs(mark):
        return
    log.warning("server.leftover_found", server=name, pid=mark.pid)
    for number in (stop_signal, signal.SIGKILL):
        try:
            with suppress(ProcessLookupError):
                os.kill(mark.pid, number)
                os.kill(mark.pid, signal.SIGCONT)
        except PermissionError as error:
            raise LeftoverError(
                f"The {name} of an earlier start still runs (pid {mark.pid}) as another user. "
                f"Start Deskbus as the user who started it, or end it with `kill {mark.pid}`."
            ) from error
        if await _gone(mark):
            log.info("server.leftover_ended", server=name, pid=mark.pid, signal=number.name)
            return
    raise LeftoverError(f"The earlier {name} (pid {mark.pid}) does not end, even by SIGKILL.")


async def _gone(mark: ProcessMark) -> bool:
    # It is not our child, so there is no event to wait for on every platform.
    with suppress(TimeoutError):
        async with asyncio.timeout(END_TIMEOUT_S):
            while runs(mark):  # noqa: ASYNC110
                await asyncio.sleep(POLL_S)
            return True
    return False
