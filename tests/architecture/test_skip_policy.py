"""In CI nothing is skipped in silence: seen with a pytest of its own."""

import os
import re
import subprocess
import sys
from collections.abc import Mapping
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
FILES = {
    "test_tool.py": SKIPS.format(reason="jq is not installed"),
    "test_words.py": SKIPS.format(reason="because of docker: none"),
    "test_docker.py": SKIPS.format(reason="docker: no engine here"),
    "test_live.py": SKIPS.format(reason="live: needs an API key"),
    "test_history.py": SKIPS.format(reason="history: a shallow clone"),
    "test_file.py": WHOLE_FILE.format(reason="no jq"),
    "test_docker_file.py": WHOLE_FILE.format(reason="docker: no engine here"),
    "test_known.py": "import pytest\n@pytest.mark.xfail\ndef test_known(): assert False\n",
}


@pytest.fixture(scope="module")
def folder(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("skips")
    (made / "conftest.py").write_text((root / "tests/conftest.py").read_text())
    for name, text in FILES.items():
        (made / name).write_text(text)
    return made


def said_of(folder: Path, *, ci: bool) -> Mapping[str, set[str]]:
    """What one run of pytest over the folder says of each file, by file."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", "-rA"]
    done = subprocess.run(
        [*command, "--continue-on-collection-errors", str(folder)],
        cwd=folder,
        env={**os.environ, "DESKBUS_CI": "1" if ci else "", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    found: dict[str, set[str]] = {name: set() for name in FILES}
    for word, name in re.findall(r"^(\w+) (?:\[\d+\] )?(test_\w+\.py)", done.stdout, re.MULTILINE):
        found[name].add(word)
    return found


@pytest.fixture(scope="module")
def in_ci(folder: Path) -> Mapping[str, set[str]]:
    return said_of(folder, ci=True)


@pytest.mark.parametrize("name", ["test_tool.py", "test_words.py"])
def test_a_skip_is_a_failure_in_ci(name: str, in_ci: Mapping[str, set[str]]) -> None:
    assert in_ci[name] == {"FAILED", "ERROR"}  # within the test, and at its setup


def test_a_skipped_file_is_a_failure_in_ci(in_ci: Mapping[str, set[str]]) -> None:
    assert in_ci["test_file.py"] == {"ERROR"}


@pytest.mark.parametrize(
    "name", ["test_docker.py", "test_live.py", "test_history.py", "test_docker_file.py"]
)
def test_what_a_machine_cannot_be_given_may_be_missing(
    name: str, in_ci: Mapping[str, set[str]]
) -> None:
    assert in_ci[name] == {"SKIPPED"}


def test_an_expected_failure_is_no_skip(in_ci: Mapping[str, set[str]]) -> None:
    assert in_ci["test_known.py"] == {"XFAIL"}


def test_elsewhere_a_skip_is_a_skip(folder: Path) -> None:
    said = said_of(folder, ci=False)
    assert all(words == {"SKIPPED"} for name, words in said.items() if name != "test_known.py")
