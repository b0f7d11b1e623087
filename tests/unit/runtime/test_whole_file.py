"""Files that are there whole or not at all."""

from pathlib import Path

import pytest

from libs.runtime.whole_file import OWN, READABLE, beside, write_whole


def test_a_file_is_there_once_it_is_moved_into_its_place(tmp_path: Path) -> None:
    path = tmp_path / "report.md"
    with beside(path, b"whole", OWN) as made:
        assert not path.exists()
        assert made.read_bytes() == b"whole"
        made.replace(path)
    assert list(tmp_path.iterdir()) == [path]
    assert path.stat().st_mode & 0o777 == OWN


def test_what_was_never_moved_is_gone_and_the_older_file_stays(tmp_path: Path) -> None:
    path = tmp_path / "report.md"
    path.write_bytes(b"older")
    with pytest.raises(OSError, match="full"), beside(path, b"newer"):
        raise OSError("full")
    assert list(tmp_path.iterdir()) == [path]
    assert path.read_bytes() == b"older"


def test_a_file_takes_the_place_of_the_one_before(tmp_path: Path) -> None:
    path = tmp_path / "report.md"
    write_whole(path, b"older")
    assert path.stat().st_mode & 0o777 == READABLE
    write_whole(path, b"newer", OWN)
    assert path.read_bytes() == b"newer"
    assert path.stat().st_mode & 0o777 == OWN
    assert list(tmp_path.iterdir()) == [path]
