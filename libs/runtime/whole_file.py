"""Files that are there whole or not at all."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

READABLE = 0o644
OWN = 0o600


@contextmanager
def beside(path: Path, body: bytes, mode: int = READABLE) -> Iterator[Path]:
    """A file with these bytes, on disk, in the directory of `path`, for the block to move or link
    into its place; gone after the block unless it was moved. Raises OSError.
    """
    number, name = tempfile.mkstemp(prefix=f".{path.stem}-", dir=path.parent)
    partial = Path(name)
    try:
        with os.fdopen(number, "wb") as file:
            file.write(body)
            file.flush()
            os.fsync(file.fileno())
        partial.chmod(mode)
        yield partial
    finally:
        partial.unlink(missing_ok=True)


def write_whole(path: Path, body: bytes, mode: int = READABLE) -> None:
    """Put a file with these bytes at `path`, in place of one that is there. Raises OSError."""
    with beside(path, body, mode) as whole:
        whole.replace(path)
