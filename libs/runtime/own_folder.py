"""Folders of the desk: their owner's alone, however they come to be."""

import os
from pathlib import Path

OWN_FOLDER = 0o700
OTHERS_LOOK = 0o066
"""The bits by which others list a folder, or write to it."""


def data_dir_mode() -> int:
    """The mode of a new data directory: its owner's alone. As root the servers run as another user,
    who walks through it to their data: he may pass, and list nothing."""
    return 0o711 if os.geteuid() == 0 else OWN_FOLDER


def make_data_dir(path: Path) -> None:
    """Make the data directory. One that is there is left as it is: it may be a folder for other
    things too."""
    make_folder(path, data_dir_mode())


def make_folder(folder: Path, mode: int = OWN_FOLDER) -> None:
    """Make a folder that is not there; those above it that are missing as a data directory, which
    is often the first of them. Raises OSError."""
    for above in reversed(folder.parents):
        if not above.exists():
            above.mkdir(mode=data_dir_mode(), exist_ok=True)
    folder.mkdir(mode=mode, exist_ok=True)
