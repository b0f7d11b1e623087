"""Whatever of the desk's makes the data directory first, it is nobody else's to look into."""

import stat
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from libs.keys.credentials import ensure_token
from libs.runtime.own_folder import OWN_FOLDER, data_dir_mode, make_data_dir, make_folder
from libs.servers.child_log import LogFile
from libs.servers.postgres_server import LAST_BACKUP, note_backup
from services.exit_signal.files import ResultFiles
from services.reporter.files import ReportFiles

AT = datetime(2012, 6, 29, tzinfo=UTC)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize(
    "begin",
    [
        lambda data: LogFile(data / "logs" / "desk.log"),
        lambda data: ensure_token(data / "secrets" / "mcp.token"),
        lambda data: ResultFiles(data / "exit_signals", lambda: AT).save({"ticker": "AAPL"}),
        lambda data: ReportFiles(data / "reports").save("main", date(2012, 6, 29), "text"),
    ],
)
def test_whoever_comes_first_makes_it_private(
    tmp_path: Path, begin: Callable[[Path], object]
) -> None:
    data = tmp_path / "new" / "data"
    begin(data)
    assert mode(data) == data_dir_mode()
    (inner,) = data.iterdir()
    assert mode(inner) == OWN_FOLDER


def test_a_folder_that_is_there_is_left_as_it_is(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    make_data_dir(tmp_path)
    make_folder(tmp_path)
    assert mode(tmp_path) == 0o755


def test_where_the_newest_backup_is_others_cannot_read(tmp_path: Path) -> None:
    note_backup(tmp_path, tmp_path / "dump")
    assert mode(tmp_path / LAST_BACKUP) & 0o077 == 0
