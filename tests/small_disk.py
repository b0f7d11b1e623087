"""A disk of a few megabytes that a test can fill: how a server without room is had."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from libs.servers.placement import server_identity

DISK_BYTES = 32 * 1024 * 1024


class NoSmallDisk(Exception):
    """None can be had here, for the reason that is its text."""


class Disk:
    """A small disk that can be filled."""

    def __init__(self, path: Path) -> None:
        self._filling = path / "filling"

    def fill(self) -> None:
        """Take up all the room there is, to the last byte."""
        with self._filling.open("ab", buffering=0) as file:
            for size in (65_536, 1):
                try:
                    while True:
                        file.write(b"0" * size)
                except OSError:
                    continue

    def free(self) -> None:
        """Give it back; where the files were wiped meanwhile there is nothing to give."""
        self._filling.unlink(missing_ok=True)


@contextmanager
def small_disk(path: Path, size_bytes: int = DISK_BYTES) -> Iterator[Disk]:
    """A disk at `path`, which is made; it belongs to whom embedded servers run as.

    Raises NoSmallDisk.
    """
    identity = server_identity()
    if os.geteuid() != 0 or identity is None:
        raise NoSmallDisk("root: only root mounts a small disk")
    path.mkdir(parents=True)
    options = f"size={size_bytes},uid={identity.uid},gid={identity.gid},mode=700"
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(path)],
        check=False,
        capture_output=True,
        text=True,
    )
    if mounted.returncode != 0:
        raise NoSmallDisk(f"root: no disk can be mounted here ({mounted.stderr.strip()})")
    try:
        yield Disk(path)
    finally:
        subprocess.run(["umount", "--lazy", str(path)], check=True)
