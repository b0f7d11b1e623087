"""Filling an environment from a lock: what is shown meanwhile, and by what it is filled."""

import hashlib
import os
import shutil
import stat
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from deploy.environment import Install

SCRIPT = Path(__file__).parents[3] / "deploy" / "environment.py"
PACKAGES = ("first", "second")


def test_the_line_says_what_is_fetched_how_much_of_it_and_how_long_it_takes() -> None:
    state = Install(total=4)
    for line in (
        "Collecting polars==1.35.2 (from -r requirements.lock (line 12))\n",
        "  Downloading polars-1.35.2-cp39-abi3-manylinux.whl (39.4 MB)\n",
        "Collecting numpy==2.3.5 (from -r requirements.lock (line 20))\n",
        "  Using cached numpy-2.3.5-cp311.whl (16.9 MB)\n",
    ):
        state.heard(line)

    assert state.line(30) == (
        "  [######--------------]  30%  fetching numpy, 56 MB  0:30, about 1:10 left"
    )
    state.heard("Installing collected packages: numpy, polars\n")
    state.unpacked = 2
    assert state.line(65) == (
        "  [################----]  80%  unpacking 4 packages, 56 MB  1:05, about 0:16 left"
    )


def _wheel(folder: Path, name: str) -> str:
    """A tiny package; its line in a lock."""
    path = folder / f"{name}-1.0-py3-none-any.whl"
    info = f"{name}-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr(f"{name}.py", "")
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    return f"{name}==1.0 \\\n    --hash=sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}\n"


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with nothing but pip; making one takes seconds."""
    path = tmp_path_factory.mktemp("empty") / "env"
    venv.create(path, with_pip=True)
    return path


@pytest.fixture
def lock(tmp_path: Path, empty: Path) -> Path:
    """A lock of two packages, beside an environment without them."""
    shutil.copytree(empty, tmp_path / "env", symlinks=True)
    path = tmp_path / "requirements.lock"
    path.write_text("".join(_wheel(tmp_path, name) for name in PACKAGES))
    return path


def _fill(lock: Path, path: str) -> "subprocess.CompletedProcess[str]":
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    offline = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(lock.parent), "PATH": path}
    return subprocess.run(
        [sys.executable, str(SCRIPT), str(lock.parent / "env"), str(lock)],
        env={**kept, **offline, "PIP_CONFIG_FILE": os.devnull},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def _installed(lock: Path) -> set[str]:
    return {path.stem for path in (lock.parent / "env").glob("lib/*/site-packages/*.py")}


def test_pip_fills_it_where_there_is_no_uv_in_a_few_lines(lock: Path) -> None:
    done = _fill(lock, "/usr/bin:/bin")

    assert done.returncode == 0, done.stderr
    assert _installed(lock) >= set(PACKAGES)
    lines = done.stdout.splitlines()
    assert (
        lines[0]
        == "deskbus: 2/3 installing 2 packages of requirements.lock, each checked by its hash"
    )
    assert len(lines) <= 5


def test_a_package_whose_hash_is_another_is_refused_and_pips_words_are_shown(lock: Path) -> None:
    lock.write_text(lock.read_text().replace("sha256:", "sha256:0").replace("0", "1", 1))
    done = _fill(lock, "/usr/bin:/bin")

    assert done.returncode != 0
    assert "hash" in done.stderr.lower()
    assert not _installed(lock) & set(PACKAGES)


@pytest.mark.parametrize("code", [0, 2])
def test_uv_is_asked_first_with_the_hashes_and_pip_where_it_cannot(lock: Path, code: int) -> None:
    folder = lock.parent / "bin"
    folder.mkdir()
    uv = folder / "uv"
    uv.write_text(f'#!/bin/sh\necho "$@" > {lock.parent}/asked\nexit {code}\n')
    uv.chmod(uv.stat().st_mode | stat.S_IXUSR)
    done = _fill(lock, f"{folder}:/usr/bin:/bin")

    assert done.returncode == 0, done.stderr
    asked = (lock.parent / "asked").read_text()
    assert f"pip install --python {lock.parent}/env/bin/python" in asked
    assert f"--require-hashes --requirement {lock}" in asked
    assert ("trying pip" in done.stdout) == bool(code)
    assert (_installed(lock) >= set(PACKAGES)) == bool(code)
