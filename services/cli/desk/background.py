"""A desk in the background: a process of its own, started, found again, and stopped."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from pydantic import ValidationError

from libs.runtime.settings import Settings
from libs.servers.child_log import log_tail, make_logs_dir
from libs.servers.leftovers import runs
from libs.servers.server_record import private
from services.cli.shell.problem import CliProblem, ExitCode
from services.cli.shell.running import RUNTIME_FILE, RunningDesk, process_of

START_S_MAX = 180.0
"""A first start makes the database; a slow disk, and an old database that is brought up to date,
take their time."""
STOP_S_MAX = 60.0
LOOK_EVERY_S = 0.1
LOG_NAME = "deskbus.log"
WORDS_NAME = "deskbus.out"
"""The last words of a desk in the background: why it did not start, or how it ended."""
IN_BACKGROUND_VARIABLE = "DESKBUS_IN_BACKGROUND"
"""Set for a desk whose terminal is somebody else's: its log is a file."""


def log_path(settings: Settings) -> Path:
    """The log of a desk that does not log to a terminal or a pipe."""
    return settings.data_dir / "logs" / LOG_NAME


def recorded(settings: Settings) -> RunningDesk | None:
    """The desk that runtime.json names while its process runs; None where none does."""
    try:
        body = (settings.data_dir / RUNTIME_FILE).read_bytes()
        desk = RunningDesk.model_validate_json(body)
    except (OSError, ValidationError):
        return None
    return desk if process_of(desk) is not None else None


def start(arguments: Sequence[str], settings: Settings) -> RunningDesk:
    """Run `deskbus ARGUMENTS`, which keeps a desk running, in the background; give the desk once it
    takes requests.

    It has no terminal, and goes on when this program and its terminal end. Raises `CliProblem` with
    its last words where it ends before it is ready, or is not in `START_S_MAX`.
    """
    words = make_logs_dir(log_path(settings).parent) / WORDS_NAME
    with open(words, "wb", opener=private) as output:
        child = subprocess.Popen(  # noqa: S603 - this very program
            [sys.executable, "-m", "services.cli", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            env={**os.environ, IN_BACKGROUND_VARIABLE: "1"},
        )
    try:
        return _ready(child, settings, words)
    except BaseException:
        # Also on Ctrl-C: nobody would know of a desk that was begun and never announced.
        child.terminate()
        raise


def _ready(child: "subprocess.Popen[bytes]", settings: Settings, words: Path) -> RunningDesk:
    until = time.monotonic() + START_S_MAX
    while time.monotonic() < until:
        if child.poll() is not None:
            raise _not_started(child.returncode, words)
        desk = recorded(settings)
        if desk is not None and desk.pid == child.pid:
            return desk
        time.sleep(LOOK_EVERY_S)
    raise CliProblem(
        f"the desk is not ready after {START_S_MAX:g} s, and was stopped",
        f"the reason may be in its log: {log_path(settings)}",
        ExitCode.TIMED_OUT,
    )


def _not_started(code: int, words: Path) -> CliProblem:
    problem = CliProblem.in_words(log_tail(words))
    if problem is not None:
        return CliProblem(f"the desk did not start: {problem.message}", problem.hint)
    how = f"signal {-code} ended it" if code < 0 else f"it exited with code {code}"
    return CliProblem(f"the desk did not start: {how}", f"its last lines are in {words}")


def stop(desk: RunningDesk) -> None:
    """End a desk as Ctrl-C would, and wait until it is gone. Raises `CliProblem` where it is not
    ours to end, or stays."""
    mark = process_of(desk)
    if mark is None:
        return
    try:
        # Of all commands that keep a desk running: SIGTERM would end some of them at once.
        os.kill(mark.pid, signal.SIGINT)
    except ProcessLookupError:
        return
    except PermissionError:
        raise CliProblem(
            f"the desk (process {mark.pid}) is another user's", "stop it as the user who started it"
        ) from None
    until = time.monotonic() + STOP_S_MAX
    while runs(mark):
        if time.monotonic() > until:
            raise CliProblem(
                f"the desk (process {mark.pid}) is still running after {STOP_S_MAX:g} s",
                f"`deskbus logs` may show why; `kill -9 {mark.pid}` ends it at once. Nothing is "
                "lost: the next start cleans up",
                ExitCode.TIMED_OUT,
            )
        time.sleep(LOOK_EVERY_S)
