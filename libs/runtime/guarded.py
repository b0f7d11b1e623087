"""Programs that do not outlive this process: `exec_child.py` starts them."""

import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_EXEC_CHILD = Path(__file__).with_name("exec_child.py")


@dataclass(frozen=True)
class Identity:
    """The user and group that a child runs as, by number."""

    uid: int
    gid: int


def guarded_argv(
    argv: Sequence[str],
    death_signal: signal.Signals = signal.SIGKILL,
    run_as: Identity | None = None,
) -> list[str]:
    """The argv that runs `argv` as another user (None: ours), in a process group of its own, and
    ends it by the signal when we are killed. Its first word is an absolute path.

    Start it from a thread that lives as long as the child should.
    """
    identity = "-" if run_as is None else f"{run_as.uid}:{run_as.gid}"
    guard = [sys.executable, "-I", "-S", str(_EXEC_CHILD)]
    return [*guard, str(os.getpid()), str(death_signal.value), identity, *argv]
