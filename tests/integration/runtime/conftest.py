"""Data directories that the servers' own user can reach."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def open_dir() -> Iterator[Path]:
    """A folder that every user may enter (pytest's own tmp_path lies below a private one)."""
    folder = Path(tempfile.mkdtemp(prefix="deskbus-test-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def session_dir() -> Iterator[Path]:
    """Like `open_dir`, for the pair of servers that a session shares."""
    folder = Path(tempfile.mkdtemp(prefix="deskbus-test-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)
