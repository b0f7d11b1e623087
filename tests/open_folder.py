"""Folders for real servers: as root these run as another user, who must be able to come in, and
pytest's own tmp_path lies below a private one."""

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def open_folder(prefix: str = "deskbus-test-", *, keep: bool = False) -> Iterator[Path]:
    """A folder that every user may enter, gone with the block unless it is to be kept."""
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        if keep:
            sys.stderr.write(f"kept: {folder}\n")
        else:
            shutil.rmtree(folder)
