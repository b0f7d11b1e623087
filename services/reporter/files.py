"""Reports as files: `reports/<account>-<session>.md` of the data directory."""

from datetime import date
from pathlib import Path

from libs.runtime.own_folder import make_folder
from libs.runtime.whole_file import write_whole


class ReportFiles:
    """Writes reports, each whole or not at all; a session's later report takes its place."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory.absolute()

    def save(self, account: str, session: date, text: str) -> Path:
        """The file's absolute path. Raises OSError. The account is a `Name`: it leads nowhere."""
        make_folder(self.directory)
        path = self.directory / f"{account}-{session.isoformat()}.md"
        write_whole(path, text.encode())
        return path
