"""The demo's own directory: made once, opened again, made anew, and nothing else touched."""

import shutil
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ValidationError

from libs.runtime.whole_file import write_whole
from libs.servers.server_record import LOCK_NAME, RECORD_NAME, ServerRecord
from services.cli.shell.problem import WrongUsage

MARK = "demo.json"
"""The file that says a directory is a demo's."""
OWN = (
    "market",
    "servers",
    "secrets",
    "strategies",
    "logs",
    "reports",
    "exit_signals",
    "cache",
    "exit_signals.toml",
    "runtime.json",
    RECORD_NAME,
    LOCK_NAME,
)
"""What a demo makes in its directory beside its mark: all that `--fresh` deletes."""


class DemoMark(BaseModel):
    """The mark: of how many sessions, and whether it is filled."""

    made_by: str = "deskbus demo"
    sessions: int | None = None
    filled: bool = False


@dataclass(frozen=True)
class DemoFolder:
    """A directory for one demo."""

    folder: Path

    @property
    def mark(self) -> DemoMark | None:
        """The mark of the demo that is here; None in an empty or absent directory.

        Raises `CliProblem` where the directory is somebody else's.
        """
        path = self.folder / MARK
        try:
            return DemoMark.model_validate_json(path.read_bytes())
        except FileNotFoundError:
            pass
        except (OSError, ValidationError) as error:
            raise WrongUsage(
                f"{path} cannot be read, so {self.folder} does not count as a demo's directory",
                "name another directory: deskbus demo --dir DIR",
            ) from error
        if self.folder.is_dir() and any(self.folder.iterdir()):
            raise WrongUsage(
                f"{self.folder} is not empty and is not a demo's directory; nothing was changed",
                "name another directory: deskbus demo --dir DIR",
            )
        return None

    def write(self, mark: DemoMark) -> None:
        """Mark the directory as a demo's."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / MARK
        write_whole(path, mark.model_dump_json().encode())

    def clear(self) -> None:
        """Delete what a demo made here. Raises `CliProblem` where no demo did."""
        if self.mark is None:
            return
        outside = ServerRecord.load(self.folder).outside_dir
        if outside is not None:  # where the servers' own user could not reach this folder
            shutil.rmtree(outside, ignore_errors=True)
        # It stays a demo's, also where something of others lies in it or this is cut off.
        self.write(DemoMark())
        for name in OWN:
            path = self.folder / name
            if path.is_symlink() or path.is_file():
                path.unlink()
            elif path.is_dir():
                shutil.rmtree(path)
