"""A folder that every user may enter (pytest's own tmp_path lies below a private one)."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def open_dir() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="deskbus-test-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)
