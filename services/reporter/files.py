"""Reports as files: `reports/<account>-<session>.md` of the data directory."""

import contextlib
import os
import tempfile
from datetime import date
from pathlib import Path


class ReportFiles:
    """Writes reports, each whole or not at all; a session's later report takes its place."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory.absolute()

    def save(self, account: str, session: date, text: str) -> Path:
        """The file's absolute path. Raises OSError. The account is a `Name`: it leads nowhere."""
        self.directory.mkdir(parents=True, exist_ok=True)
        path = self.directory / f"{account}-{session.isoformat()}.md"
        handle, name = tempfile.mkstemp(dir=self.directory, suffix=".partial")
        written = Path(name)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            written.chmod(0o644)
            written.replace(path)
        finally:
            with contextlib.suppress(FileNotFoundError):
                written.unlink()
        return path
