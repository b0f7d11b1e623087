"""The version before: taken out of this repository's history into a folder, and run from there.

At a release, move the pin: `RELEASE` becomes the commit of the release before the one that is being
made, and `tests/data/messages` is recorded anew from it (its README says how).
"""

import io
import os
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
RELEASE = "4958a83657ad42392fc04e638b9c2e299f602031"
"""The commit that counts as the version before. Its contracts are those of issue 3's first half."""


def unpacked(folder: Path) -> Path:
    """The old tree below `folder`; skips where the clone does not reach back to it."""
    archive = subprocess.run(
        ["git", "archive", "--format=zip", RELEASE], cwd=ROOT, capture_output=True, check=False
    )
    if archive.returncode != 0:
        pytest.skip(
            f"history: commit {RELEASE[:12]} cannot be read here "
            f"({archive.stderr.decode().strip()}); a full clone has it: git fetch --unshallow"
        )
    with zipfile.ZipFile(io.BytesIO(archive.stdout)) as files:
        files.extractall(folder)
    return folder


def environment_of(tree: Path) -> Mapping[str, str]:
    """The environment in which `python -m` runs this tree's code, whatever is installed."""
    return {**os.environ, "PYTHONPATH": str(tree)}


def run_in(tree: Path, *words: str, **variables: str) -> str:
    """What one Python command of a tree writes; it must end well."""
    done = subprocess.run(
        [sys.executable, *words],
        cwd=tree,
        env={**environment_of(tree), **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
