"""Which programs the embedded servers run."""

from pathlib import Path

import pytest

from libs.servers.binaries import BinaryError, postgres_programs


def _no_root() -> Path:
    raise AssertionError("our own user reaches everything")


def _postgres_in(bindir: Path) -> Path:
    bindir.mkdir(parents=True)
    for name in ("initdb", "postgres", "psql"):
        (bindir / name).write_text("#!/bin/sh\necho 'postgres (PostgreSQL) 18.1'\n")
        (bindir / name).chmod(0o755)
    return bindir


@pytest.mark.parametrize("name", ["josé", "数据", "a 'b' {c} #1 [d]*?;&|~ 🚀"])
def test_programs_may_lie_in_a_folder_with_nearly_any_name(tmp_path: Path, name: str) -> None:
    bindir = _postgres_in(tmp_path / name / "bin")
    assert postgres_programs(bindir, None, _no_root).server_bindir == bindir


@pytest.mark.parametrize("name", ["a$HOME", "a`id`", 'a"b', "a\\b"])
def test_a_folder_whose_name_initdb_would_hand_to_a_shell_is_refused(
    tmp_path: Path, name: str
) -> None:
    bindir = _postgres_in(tmp_path / name / "bin")
    with pytest.raises(
        BinaryError, match=r"through a shell.* has [\$`\"\\]\. .*DESKBUS_POSTGRES_BINDIR"
    ):
        postgres_programs(bindir, None, _no_root)
