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
    """A disk in memory at `path`, which is made; it belongs to whom embedded servers run as.

    Raises NoSmallDisk.
    """
    uid, gid = _owner()
    path.mkdir(parents=True)
    _run("mount", "-t", "tmpfs", "-o", f"size={size_bytes},uid={uid},gid={gid}", "tmpfs", str(path))
    path.chmod(0o700)
    try:
        yield Disk(path)
    finally:
        subprocess.run(["umount", "--lazy", str(path)], check=True)


@contextmanager
def small_ext4(path: Path, size_bytes: int) -> Iterator[Disk]:
    """The same as a file system on a loop device, where writes and their errors are a real disk's.

    Its file lies beside `path`. Raises NoSmallDisk.
    """
    uid, gid = _owner()
    path.mkdir(parents=True)
    image = path.with_name(f"{path.name}.ext4")
    with image.open("wb") as file:
        file.truncate(size_bytes)
    # No room is kept for root, and nothing is set up later: a full disk is full.
    lazy = "lazy_itable_init=0,lazy_journal_init=0"
    _run("mkfs.ext4", "-q", "-m", "0", "-E", f"root_owner={uid}:{gid},{lazy}", str(image))
    _run("mount", "-o", "loop", str(image), str(path))
    path.chmod(0o700)
    (path / "lost+found").rmdir()
    try:
        yield Disk(path)
    finally:
        subprocess.run(["umount", "--lazy", str(path)], check=True)


def _owner() -> tuple[int, int]:
    """The user and the group of a disk. Raises NoSmallDisk."""
    identity = server_identity()
    if os.geteuid() != 0 or identity is None:
        raise NoSmallDisk("root: only root mounts a small disk")
    return identity.uid, identity.gid


def _run(*command: str) -> None:
    try:
        subprocess.run(command, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        words = getattr(error, "stderr", "") or error
        raise NoSmallDisk(f"root: no disk can be mounted here ({words})") from error
