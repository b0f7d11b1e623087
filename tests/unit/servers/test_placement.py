"""Who can reach what, and copies that are made once."""

import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from libs.runtime.guarded import Identity
from libs.servers.placement import PlacementError, can_reach, hand_over, make_root, reachable_copy

STRANGER = Identity(uid=54321, gid=54321)


@pytest.fixture
def open_dir() -> Iterator[Path]:
    """A folder that a stranger may enter (pytest's own tmp_path lies below a private one)."""
    with tempfile.TemporaryDirectory(prefix="deskbus-test-") as folder:
        Path(folder).chmod(0o755)
        if not can_reach(Path(folder), STRANGER):
            pytest.skip("the temp directory of this system is private to its user")
        yield Path(folder)


def test_a_stranger_does_not_reach_what_lies_below_a_private_folder(open_dir: Path) -> None:
    inner = open_dir / "private" / "inner"
    inner.mkdir(parents=True)
    assert can_reach(inner, STRANGER)
    inner.parent.chmod(0o700)
    assert not can_reach(inner, STRANGER)


def test_a_program_that_a_stranger_may_not_run_is_out_of_reach(open_dir: Path) -> None:
    program = open_dir / "program"
    program.write_text("")
    program.chmod(0o700)
    assert not can_reach(program, STRANGER)


def test_without_a_change_of_user_everything_is_within_reach(tmp_path: Path) -> None:
    assert can_reach(tmp_path / "private", None)


def _tree(base: Path) -> Path:
    (base / "install" / "bin").mkdir(parents=True)
    (base / "install" / "bin" / "tool").write_text("#!/bin/sh\n")
    (base / "install" / "bin" / "tool").chmod(0o755)
    (base / "install" / "doc").write_text("words")
    return base


def test_a_copy_keeps_the_shape_and_can_be_read_by_all(tmp_path: Path) -> None:
    copy = reachable_copy(_tree(tmp_path / "a"), [Path("install")], tmp_path / "root")
    assert stat.S_IMODE((copy / "install" / "bin" / "tool").stat().st_mode) == 0o755
    assert stat.S_IMODE((copy / "install").stat().st_mode) == 0o755
    assert (copy / "install" / "doc").read_text() == "words"


def test_the_same_content_is_copied_once_and_other_content_beside_it(tmp_path: Path) -> None:
    tree, root = _tree(tmp_path / "a"), tmp_path / "root"
    first = reachable_copy(tree, [Path("install")], root)
    born = first.stat().st_ino
    again = reachable_copy(tree, [Path("install")], root)
    (tree / "install" / "doc").write_text("other")
    other = reachable_copy(tree, [Path("install")], root)
    assert (again, again.stat().st_ino) == (first, born)
    assert other != first


def test_a_copy_that_lost_a_file_is_made_anew(tmp_path: Path) -> None:
    tree, root = _tree(tmp_path / "a"), tmp_path / "root"
    copy = reachable_copy(tree, [Path("install")], root)
    (copy / "install" / "doc").unlink()
    reachable_copy(tree, [Path("install")], root)
    assert (copy / "install" / "doc").read_text() == "words"


def test_a_root_that_is_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with pytest.raises(PlacementError, match="not a directory of this user"):
        make_root(tmp_path / "link")


def test_a_folder_of_another_user_is_not_taken_over(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("root: only root can make a folder of another user")
    (tmp_path / "postgres").mkdir()
    with pytest.raises(PlacementError, match="belongs to uid 0"):
        hand_over(tmp_path / "postgres", STRANGER)
