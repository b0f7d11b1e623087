"""In CI nothing is skipped in silence: seen with a pytest of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SKIPS = """
import pytest

@pytest.mark.skip(reason="{reason}")
def test_marked(): ...

def test_decided_within():
    pytest.skip("{reason}")

@pytest.fixture
def tool():
    pytest.skip("{reason}")

def test_by_a_fixture(tool): ...
"""
WHOLE_FILE = 'import pytest\npytest.skip("{reason}", allow_module_level=True)\n'
EXPECTED_TO_FAIL = "import pytest\n@pytest.mark.xfail\ndef test_known(): assert False\n"


def run(root: Path, folder: Path, text: str, *, ci: bool) -> str:
    """What pytest says at the end of a run over one file beside our conftest."""
    (folder / "conftest.py").write_text((root / "tests/conftest.py").read_text())
    (folder / "test_it.py").write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", str(folder)],
        cwd=folder,
        env={**os.environ, "DESKBUS_CI": "1" if ci else ""},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.strip().splitlines()[-1]


@pytest.mark.parametrize("reason", ["jq is not installed", "because of docker: none"])
def test_a_skip_is_a_failure_in_ci(reason: str, root: Path, tmp_path: Path) -> None:
    said = run(root, tmp_path, SKIPS.format(reason=reason), ci=True)
    assert said.startswith("1 failed, 2 errors in"), said  # two of them at setup


@pytest.mark.parametrize("reason", ["docker: no engine here", "live: needs an API key"])
def test_docker_and_live_accounts_may_be_missing(reason: str, root: Path, tmp_path: Path) -> None:
    said = run(root, tmp_path, SKIPS.format(reason=reason), ci=True)
    assert said.startswith("3 skipped in"), said


def test_a_skipped_file_is_a_failure_in_ci(root: Path, tmp_path: Path) -> None:
    said = run(root, tmp_path, WHOLE_FILE.format(reason="no jq"), ci=True)
    assert "1 error" in said, said


def test_elsewhere_a_skip_is_a_skip(root: Path, tmp_path: Path) -> None:
    said = run(root, tmp_path, SKIPS.format(reason="jq is not installed"), ci=False)
    assert said.startswith("3 skipped in"), said


def test_an_expected_failure_is_no_skip(root: Path, tmp_path: Path) -> None:
    assert run(root, tmp_path, EXPECTED_TO_FAIL, ci=True).startswith("1 xfailed in")
