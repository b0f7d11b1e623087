"""`deskbus` as a person runs it: a process with arguments, an environment and an exit code."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PATIENCE_S = 90
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

    @property
    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if "DESKBUS" not in name}
        return {**kept, "DESKBUS_DATA_DIR": str(self.data_dir), **dict(self.settings)}

    def __call__(self, *arguments: str, **settings: str) -> Said:
        """Run one command to its end."""
        done = subprocess.run(
            [*DESKBUS, *arguments],
            cwd=self.cwd,
            env={**self.environment, **settings},
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        return Said(done.returncode, done.stdout, done.stderr)
