"""`deskbus` as a person runs it: a process with arguments, an environment and an exit code."""

import fcntl
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.fakes import warm_command

PATIENCE_S = 90
LOG_BYTES_MAX = 1_000_000
"""What a desk may log before its end, when somebody reads it; a full pipe would stop it."""
DESKBUS = (sys.executable, "-m", "services.cli")


@dataclass(frozen=True)
class Said:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def rows(self) -> list[Any]:
        """Standard output as one JSON object a line; nothing else may stand there."""
        return [json.loads(line) for line in self.out.splitlines()]


@dataclass(frozen=True)
class CommandLine:
    """Runs `deskbus` for one data directory, in a folder without settings."""

    data_dir: Path
    cwd: Path
    settings: tuple[tuple[str, str], ...] = ()
    is_cold: bool = False
    """Whether `__call__` starts an interpreter, as a person does: for tests of how a command starts
    and of the process that it is. Else it forks one that has loaded the commands
    (tests.fakes.warm_command), which saves half a second of CPU a command."""

    @property
    def environment(self) -> dict[str, str]:
        # COLUMNS too: a runner of tests sets it, and output into a pipe has its own width.
        kept = {
            name: value
            for name, value in os.environ.items()
            if "DESKBUS" not in name and name != "COLUMNS"
        }
        # Any free port: several desks may run on one machine.
        own = {"DESKBUS_DATA_DIR": str(self.data_dir), "DESKBUS_HTTP_PORT": "0"}
        return {**kept, **own, **dict(self.settings)}

    @contextmanager
    def started(self, typed: str) -> Iterator["subprocess.Popen[str]"]:
        """A command that goes on while the block runs; killed at its end if it is still there."""
        with subprocess.Popen(
            [*DESKBUS, *typed.split()],
            cwd=self.cwd,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stderr is not None
            fcntl.fcntl(process.stderr, fcntl.F_SETPIPE_SZ, LOG_BYTES_MAX)
            try:
                yield process
            finally:
                process.kill()

    def __call__(self, typed: str, **settings: str) -> Said:
        """Run one command to its end; blanks part its arguments."""
        environment = {**self.environment, **settings}
        if not self.is_cold:
            done = warm_command.run(typed.split(), self.cwd, environment, PATIENCE_S)
            return Said(done.returncode, done.stdout, done.stderr)
        done = subprocess.run(
            [*DESKBUS, *typed.split()],
            cwd=self.cwd,
            env=environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        return Said(done.returncode, done.stdout, done.stderr)


def ended(process: "subprocess.Popen[str]", number: int) -> Said:
    """What a started command says and how it ends once it gets the signal."""
    process.send_signal(number)
    out, err = process.communicate(timeout=PATIENCE_S)
    return Said(process.returncode, out, err)


@contextmanager
def up(deskbus: CommandLine, options: str = "") -> Iterator[tuple["subprocess.Popen[str]", Any]]:
    """The desk as its own process, ready when the block is entered."""
    with deskbus.started(f"up --json {options}") as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            raise AssertionError(process.communicate()[1])
        yield process, json.loads(line)
