"""Become a child that does not outlive its parent, then exec it. Run by path, never imported.

    python -I -S exec_child.py PARENT_PID DEATH_SIGNAL UID:GID|- PROGRAM [ARGUMENT ...]

Order matters: a change of uid clears the parent-death signal, so the uid is dropped first; the
parent may be gone before the signal is set, so it is looked at again after. The signal belongs to
the parent's *thread*: the thread that spawned the child has to live as long as the child should.
Where there is no prctl (macOS) the child outlives a killed parent; the next start ends it.

It is a process group of its own, so that Ctrl-C at the terminal is for the parent alone. It is no
session of its own: Linux shares the CPU between sessions first, and niceness counts within one.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def _drop_to(identity: str) -> None:
    if identity == "-":
        return
    uid, gid = (int(part) for part in identity.split(":"))
    os.setgroups([])
    os.setgid(gid)
    os.setuid(uid)


def _die_with_parent(parent_pid: int, death_signal: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, death_signal, 0, 0, 0)
    if os.getppid() != parent_pid:
        sys.exit("exec_child: the parent ended before the child could start")


def _exec() -> None:
    parent_pid, death_signal, identity, *argv = sys.argv[1:]
    try:
        if os.getpgrp() != os.getpid():  # who was started in a session of its own leads a group
            os.setpgid(0, 0)
        _drop_to(identity)
        _die_with_parent(int(parent_pid), int(death_signal))
        # Python ignores these two; an ignored signal would stay ignored across exec.
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        os.execv(argv[0], argv)  # noqa: S606
    except OSError as error:
        sys.exit(f"exec_child: can't run {argv[0]} as {identity}: {error}")


if __name__ == "__main__":
    _exec()
