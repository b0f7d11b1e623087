"""Where a dump cannot be written, before Postgres is asked for it."""

from pathlib import Path

import pytest

from libs.servers.postgres_backup import BackupFailed, dump


@pytest.mark.parametrize(
    ("file", "says"),
    [
        ("nowhere/x", "cannot be written: No such file or directory; name a file in a folder"),
        ("full", "exists already; name a new file"),
        (".", "exists already; name a new file"),
    ],
)
async def test_a_file_that_cannot_be_made_is_told_with_what_can_be_done(
    file: str, says: str, tmp_path: Path
) -> None:
    (tmp_path / "full").touch()

    with pytest.raises(BackupFailed, match=says):
        await dump(tmp_path, "postgresql://nobody@127.0.0.1:1/none", tmp_path / file)
