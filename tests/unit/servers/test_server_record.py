"""What a data directory remembers, and that only one desk at a time holds it."""

import os
from pathlib import Path

import pytest

from libs.servers.server_record import DataDirError, ProcessMark, ServerRecord, locked


def test_a_record_comes_back_as_it_was_saved(tmp_path: Path) -> None:
    record = ServerRecord(
        outside_dir="/x", ports={"nats": 20001}, processes={"nats": ProcessMark(7, "boot:9")}
    )
    record.save(tmp_path)
    assert ServerRecord.load(tmp_path) == record


def test_a_data_directory_without_a_record_gets_an_id_of_its_own(tmp_path: Path) -> None:
    assert ServerRecord.load(tmp_path).desk_id != ServerRecord.load(tmp_path).desk_id


@pytest.mark.parametrize("text", ["", "{", "[]", '{"processes": {"nats": {}}}'])
def test_a_spoiled_record_is_an_error_that_says_what_to_do(tmp_path: Path, text: str) -> None:
    (tmp_path / "embedded.json").write_text(text)
    with pytest.raises(DataDirError, match="restore it"):
        ServerRecord.load(tmp_path)


def test_a_held_directory_refuses_a_second_holder_and_names_the_first(tmp_path: Path) -> None:
    with locked(tmp_path / "d"), pytest.raises(DataDirError, match=f"pid {os.getpid()}"):
        locked(tmp_path / "d").__enter__()


def test_a_directory_can_be_held_again_after_it_was_let_go(tmp_path: Path) -> None:
    with locked(tmp_path):
        pass
    with locked(tmp_path):
        assert (tmp_path / "lock").read_text() == str(os.getpid())


def test_a_place_that_is_no_directory_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DataDirError, match="DESKBUS_DATA_DIR"):
        locked(tmp_path / "file" / "desk").__enter__()


@pytest.mark.parametrize("name", ["josé", "数据", "a 'b' \"c\" $HOME `x` {d} #1 [e]*?", "🚀 ~%20"])
def test_a_directory_may_have_any_name(tmp_path: Path, name: str) -> None:
    with locked(tmp_path / name):
        assert (tmp_path / name / "lock").exists()


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("a\nb", "a line break"),
        ("a\tb", "a control character"),
        (os.fsdecode(b"a\xffb"), "bytes that are not UTF-8"),
    ],
)
def test_a_path_that_the_servers_cannot_take_is_refused(
    tmp_path: Path, name: str, what: str
) -> None:
    with pytest.raises(DataDirError, match=f"has {what}: .*DESKBUS_DATA_DIR") as refused:
        locked(tmp_path / name).__enter__()
    assert str(refused.value).isprintable()
    assert list(tmp_path.iterdir()) == []
