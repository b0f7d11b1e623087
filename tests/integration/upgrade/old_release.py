"""The versions before and after: one out of this repository's history, one made up; both are run.

At a release, move the pin: `RELEASE` becomes the commit of the release before the one that is made,
and `tests/data/messages` is recorded anew from it (its README says how). Before 0.2.0 there is no
release that others rely on: whoever breaks a contract or a table on purpose moves the pin to the
commit that does.
"""

import io
import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from libs.postgres.migrate import MIGRATIONS, migrations
from services.orchestrator.machine import workflows

ROOT = Path(__file__).parents[3]
RELEASE = "65a7e9dfe8a03b4363e4fe38e0dcd66ed848466d"
"""The commit that counts as the version before: with it blocked books say since when, and models
may call tools of the user's."""

PACKAGES = ("contracts", "libs", "services")
NEXT_MIGRATION = "alter table cycles add column mood text not null default 'calm';"
NEXT_WORKFLOW = """

WORKFLOWS = (*WORKFLOWS, replace(DECISION, version=DECISION.version + 1, closing=None))
"""
"""A decision that ends without a memory of it."""


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


def next_version(folder: Path) -> Path:
    """Today's tree below `folder` as its next version may be: with one more migration, and with
    another version of the workflow, which new cycles follow."""
    for package in PACKAGES:
        unwanted = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / package, folder / package, ignore=unwanted)
    number = migrations()[-1].version + 1
    (folder / MIGRATIONS.relative_to(ROOT) / f"{number:04d}_mood.sql").write_text(NEXT_MIGRATION)
    declared = folder / Path(workflows.__file__).relative_to(ROOT)
    declared.write_text(declared.read_text() + NEXT_WORKFLOW)
    return folder


def is_released(tree: Path) -> bool:
    """Whether a tree is of a release, whose contracts others may rely on."""
    project = tomllib.loads((tree / "pyproject.toml").read_text())["project"]
    return ".dev" not in project["version"]


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
