"""Run one program and leave nothing of it behind. Run by path, never imported; Python alone.

    python -I -S contained_child.py PARENT_PID UID:GID|- PROGRAM [ARGUMENT ...]

The program is started through `exec_child.py` with no right to gain rights (no_new_privs). What it
starts and leaves is handed to this process (a subreaper), which ends all of it when the program
ends, when it is told to end, and when its parent dies. The exit code is the program's; 128 and the
number of the signal where one ended it.

Linux alone keeps these promises; elsewhere the program's process group is ended and no more.
"""

import contextlib
import ctypes
import os
import resource
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38
END_S_MAX = 4.0
"""To end what the program has left. Its parent waits a little longer."""
PAUSE_S = 0.005
PROCESSES_MAX = 1_024
"""Of the program's own user, where it has one."""
FILE_BYTES_MAX = 268_435_456
"""Of one file that the program writes."""
_EXEC_CHILD = Path(__file__).with_name("exec_child.py")


class _Told(Exception):
    """Somebody wants the program to end."""


def main() -> NoReturn:
    """Start the program, wait for its end, end what it left."""
    parent_pid, identity, *argv = sys.argv[1:]
    signal.signal(signal.SIGTERM, _told)
    code = 128 + signal.SIGTERM
    with contextlib.suppress(_Told):
        os.closerange(3, os.sysconf("SC_OPEN_MAX"))  # uvloop passes on what may be inherited
        os.setpgid(0, 0)
        _prctl(PR_SET_CHILD_SUBREAPER, 1)
        _prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != int(parent_pid):
            sys.exit("contained_child: the parent ended before the program could start")
        own_pid = os.getpid()
        program = os.fork()
        if not program:
            _become(identity, argv, own_pid)
        # The pipes are the program's alone: they end with it.
        nowhere = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(nowhere, descriptor)
        code = _ended(program)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    _end_all()
    sys.exit(code)


def _told(*_: object) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # once is enough
    raise _Told


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def _become(identity: str, argv: list[str], parent_pid: int) -> NoReturn:
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.umask(0o077)
        _limit(resource.RLIMIT_CORE, 0)
        _limit(resource.RLIMIT_FSIZE, FILE_BYTES_MAX)
        if identity != "-":
            _limit(resource.RLIMIT_NPROC, PROCESSES_MAX)
        _prctl(PR_SET_NO_NEW_PRIVS, 1)
        child = [sys.executable, "-I", "-S", str(_EXEC_CHILD)]
        kill = str(signal.SIGKILL.value)
        os.execv(sys.executable, [*child, str(parent_pid), kill, identity, *argv])  # noqa: S606
    except (OSError, ValueError) as error:
        sys.exit(f"contained_child: {argv[0]} cannot be started: {error}")


def _limit(what: int, most: int) -> None:
    _, hard = resource.getrlimit(what)
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(what, (most, most))


def _ended(program: int) -> int:
    """The program's exit code. What it left and has ended already is buried on the way."""
    while True:
        pid, status = os.waitpid(-1, 0)
        if pid == program:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


def _end_all() -> None:
    until = time.monotonic() + END_S_MAX
    while time.monotonic() < until:
        for pid in _descendants(os.getpid()):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(PAUSE_S)


def _descendants(root: int) -> list[int]:
    """All processes below this one, as far as /proc tells."""
    parents = dict(_parents())
    found, last = set[int](), {root}
    while last:
        last = {pid for pid, parent in parents.items() if parent in last} - found
        found |= last
    return sorted(found)


def _parents() -> Iterator[tuple[int, int]]:
    proc = Path("/proc")
    for place in proc.iterdir() if proc.is_dir() else ():
        if place.name.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError):
                after = (place / "stat").read_text(errors="replace").rpartition(")")[2]
                yield int(place.name), int(after.split()[1])


if __name__ == "__main__":
    main()
