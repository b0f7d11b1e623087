"""A log of a program's own: appended to, set aside when it has grown."""

import resource
import stat
from pathlib import Path

import pytest

from libs.servers import child_log
from libs.servers.child_log import LogFile


def test_a_log_is_appended_to_and_is_its_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "logs" / "desk.log"
    for text in ("one\n", "two\n"):
        log = LogFile(path)
        log.write(text)
        log.flush()

    assert path.read_text() == "one\ntwo\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_log_that_has_grown_is_set_aside_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child_log, "LOG_BYTES_MAX", 20)
    log = LogFile(tmp_path / "desk.log")
    for number in range(10):
        log.write(f"line {number}\n")
    log.flush()

    kept = [(tmp_path / name).read_text() for name in ("desk.log.1", "desk.log")]
    assert "".join(kept) == "".join(f"line {number}\n" for number in range(6, 10))
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("room", [7, 10, 13])
def test_a_log_without_room_takes_no_part_of_a_line(tmp_path: Path, room: int) -> None:
    log, limits = LogFile(tmp_path / "desk.log"), resource.getrlimit(resource.RLIMIT_FSIZE)
    log.write("line 0\n")
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, limits[1]))
    try:
        for _ in range(2):
            with pytest.raises(OSError, match=r"No space left|File too large"):
                log.write("line 1\n")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    log.write("line 2\n")

    assert (tmp_path / "desk.log").read_text() == "line 0\nline 2\n"
