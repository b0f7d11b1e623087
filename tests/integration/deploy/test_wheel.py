"""The built wheel alone, as `pip install deskbus` gives it: no clone, no extra, an empty folder."""

import os
import re
import shutil
import subprocess
import sys
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.environment import fill
from libs.runtime.extras import EXTRAS

ROOT = Path(__file__).parents[3]
WEIGHT_MB_MAX = 560
"""Of the core with all its packages; measured 530 in November 2026, of which polars is 180."""
PACKAGES_MAX = 66
HERE = f"{sys.version_info.major}.{sys.version_info.minor}"


def _runs(version: str) -> bool:
    """Whether this Python is here. A version manager leaves names of some that are not."""
    found = shutil.which(f"python{version}")
    if found is None:
        return False
    return subprocess.run([found, "-c", ""], capture_output=True, check=False).returncode == 0


PYTHONS = [
    pytest.param(version, marks=[] if version == HERE else pytest.mark.soak)
    for version in ("3.11", "3.12", "3.13", "3.14")
    if version == HERE or _runs(version)
]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module", params=PYTHONS)
def installed(
    wheel: Path, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Path:
    """An environment with the wheel, its dependencies as the lock has them, and nothing else."""
    folder = tmp_path_factory.mktemp("alone")
    made = folder / "env"
    if request.param == HERE:
        venv.create(made, with_pip=True, symlinks=True)
    else:
        subprocess.run([f"python{request.param}", "-m", "venv", str(made)], check=True)
    pins = re.findall(r"^(\w.+==.+?) \\$", (ROOT / "requirements.lock").read_text(), re.MULTILINE)
    constraints = folder / "constraints.txt"
    constraints.write_text("\n".join(pins))
    assert fill(made, ["--constraint", str(constraints), str(wheel)], 0) == 0
    return made


@pytest.fixture
def trader(installed: Path, tmp_path: Path) -> Iterator["Trader"]:
    """Somebody in a folder with files whose names are those of our modules and of Python's."""
    folder = tmp_path / "own"
    for name in ("services", "libs", "contracts"):
        (folder / name).mkdir(parents=True)
        (folder / name / "__init__.py").write_text("raise SystemExit('not ours')\n")
    (folder / "random.py").write_text("raise SystemExit('not Python\\'s')\n")
    someone = Trader(installed, folder, tmp_path / "data")
    yield someone
    someone.calls("down")


class Trader:
    """Calls the installed command in a folder."""

    def __init__(self, environment: Path, folder: Path, data: Path) -> None:
        self._command = environment / "bin" / "deskbus"
        self._folder = folder
        self._environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("DESKBUS", "PYTHON", "VIRTUAL_ENV"))
        } | {"DESKBUS_DATA_DIR": str(data)}

    def calls(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self._command, *words],
            check=False,
            cwd=self._folder,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=180,
        )


def test_the_wheel_adds_one_name_to_an_environment(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {name.split("/")[0] for name in archive.namelist()}
    assert {name for name in names if not name.endswith(".dist-info")} == {"deskbus"}


def test_the_core_stays_below_its_ceiling(installed: Path) -> None:
    (packages,) = installed.glob("lib/python3*/site-packages")
    ours = [path for path in packages.iterdir() if path.name.split("-")[0] != "pip"]
    size = sum(
        path.lstat().st_size
        for folder in ours
        for path in ([folder] if folder.is_file() else folder.rglob("*"))
        if path.suffix != ".pyc"
    )
    assert size / 1e6 <= WEIGHT_MB_MAX
    assert sum(1 for path in ours if path.suffix == ".dist-info") <= PACKAGES_MAX


def test_run_decides_in_a_folder_of_strangers_files(trader: Trader) -> None:
    ran = trader.calls("run")
    assert ran.returncode == 0, ran.stderr
    assert "bought" in ran.stdout


def test_a_desk_of_processes_decides(trader: Trader) -> None:
    up = trader.calls("up", "--detach")
    assert up.returncode == 0, up.stderr
    asked = trader.calls("cycle", "request", "--as-of", "2010-05-06", "--wait")
    assert asked.returncode == 0, asked.stdout + asked.stderr
    assert trader.calls("down").returncode == 0


def test_a_missing_extra_is_one_sentence_with_the_command(trader: Trader) -> None:
    serving = trader.calls("mcp")
    assert serving.returncode == 1
    assert serving.stderr.strip().endswith("pip install 'deskbus[mcp]'")
    models = trader.calls("doctor").stdout
    assert "deskbus[claude]" in models
    assert "deskbus[openai]" in models


def test_the_extras_are_those_that_a_sentence_names() -> None:
    text = (ROOT / "pyproject.toml").read_text()
    (extras,) = re.findall(r"^all = \[\"deskbus\[(.*)\]\"\]", text, re.MULTILINE)
    assert set(extras.split(",")) == {*EXTRAS, "traces"}
