"""The tree explains the system: same files, same names in every service."""

import importlib
import tomllib
from pathlib import Path

import pytest

from contracts.subjects.subject import BACKBONE, SERVICES
from tests.architecture.sources import read, source

PACKAGES = ("contracts", "libs", "services", "tests", "benchmarks")
EDGES = {"cli", "mcp_server"}
"""Edges are shaped by their users, not by messages."""

FORBIDDEN_NAMES = {"utils", "helpers", "manager", "base", "common", "misc"}


def _python(root: Path) -> list[Path]:
    return [path for package in PACKAGES for path in sorted((root / package).rglob("*.py"))]


def _folders(root: Path) -> list[Path]:
    return [p for p in sorted((root / "services").iterdir()) if (p / "__init__.py").is_file()]


def test_every_service_can_be_started_by_its_name(root: Path) -> None:
    for folder in _folders(root):
        if folder.name not in EDGES:
            assert (folder / "__main__.py").is_file(), folder.name


@pytest.mark.parametrize("package", ["contracts", "libs", "services"])
def test_the_first_line_of_a_module_says_what_it_is_for(root: Path, package: str) -> None:
    silent = [
        path.relative_to(root).as_posix()
        for path in sorted((root / package).rglob("*.py"))
        if len(source(path).docstrings[0].split()) < 3
    ]
    assert silent == []


def test_every_service_is_started_by_the_launcher(root: Path) -> None:
    folders = {folder.name for folder in _folders(root)} - EDGES
    assert folders == {*BACKBONE, *SERVICES}


def test_every_prompt_stands_beside_the_service_that_uses_it(root: Path) -> None:
    prompts = list((root / "services").rglob("*.md"))
    assert prompts
    assert {path.parent.name for path in prompts} == {"prompts"}


@pytest.mark.parametrize("package", ["contracts", "libs", "services"])
def test_no_module_is_named_after_nothing(root: Path, package: str) -> None:
    names = {path.stem for path in (root / package).rglob("*.py")}
    names |= {path.name for path in (root / package).rglob("*") if path.is_dir()}
    assert names & FORBIDDEN_NAMES == set()


def test_what_is_private_to_a_module_is_used_in_it(root: Path) -> None:
    needless = []
    for path in _python(root):
        own = {name for name in source(path).own if name.startswith("_") and name[:2] != "__"}
        unused = sorted(own - source(path).used)
        needless += [f"{path.relative_to(root)}: {name}" for name in unused]
    assert needless == []


def test_of_a_file_what_nobody_uses_is_seen() -> None:
    code = read("_kept = 1\n_left = _kept\ndef f():\n    return 1\n@route\ndef _r(): ...\n")
    assert code.own - code.used == {"_left", "f"}


def test_every_first_party_package_is_in_the_wheel(root: Path) -> None:
    project = tomllib.loads((root / "pyproject.toml").read_text())
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    assert wheel == ["contracts", "libs", "services"]


@pytest.mark.parametrize("name", [*BACKBONE, *SERVICES])
def test_a_services_first_words_say_what_it_decides(name: str) -> None:
    words = importlib.import_module(f"services.{name}").__doc__ or ""
    assert len(words.strip().splitlines()) <= 4
    assert len(words.split()) >= 6


def test_every_migration_has_a_number_of_its_own(root: Path) -> None:
    names = sorted(p.name for p in (root / "libs/postgres/migrations").glob("*.sql"))
    numbers = [name[:4] for name in names]
    assert numbers == sorted({*numbers})
    assert all(number.isdigit() for number in numbers)


PRIVATE_ENGLISH = {"told", "said", "made", "found", "given", "each"}
"""As names they say what happened to a value, not what it is: a bar, a row, an answer, a reason."""
DESK = {"Desk", "_Desk"}
"""The desk is all services together (docs/glossary.md): one part of it has a name of its own."""
NAMES_ALLOWED: dict[str, set[str]] = {
    "contracts": {
        # fields, as they are on the wire
        "contracts/body.py: found",
        "contracts/cycle.py: given",
        "contracts/http.py: found",
        "contracts/performance.py: found",
        "contracts/memory.py: told",
        "contracts/account_query.py: found",
        "contracts/cycle_query.py: found",
        "contracts/operation.py: found",
        "contracts/report.py: found",
        "contracts/study.py: found",
        "contracts/study_score.py: found",
    },
    "libs": set(),
    "services": {
        # fields, as they are answered and recorded
        "services/cli/operating/checks.py: said",
        "services/cli/operating/market_sources.py: said",
        "services/cli/operating/secrets.py: made",
        "services/mcp_server/shapes.py: made",
        "services/provisioner/secrets.py: made",
        "services/sentiment/reads.py: found",
        # the desk itself: what the launcher starts
        "services/launcher.py: Desk",
    },
}


def _in_private_english(name: str) -> bool:
    return name in DESK or name.strip("_").lower() in PRIVATE_ENGLISH


@pytest.mark.parametrize("package", NAMES_ALLOWED)
def test_a_name_says_what_a_value_is(root: Path, package: str) -> None:
    used = set()
    for path in sorted((root / package).rglob("*.py")):
        place = path.relative_to(root).as_posix()
        names = filter(_in_private_english, source(path).given)
        used |= {f"{place}: {name}" for name in names}
    assert used == NAMES_ALLOWED[package]


@pytest.mark.parametrize(
    "code",
    [
        "found = 1",
        "def told(): ...",
        "def f(given): ...",
        "class Said: ...",
        "class Desk: ...",
        "[each for each in ()]",
        "with f() as _made: ...",
        "lambda told: 1",
    ],
)
def test_a_name_that_says_only_what_happened_to_a_value_is_seen(code: str) -> None:
    assert [*filter(_in_private_english, read(code).given)]


@pytest.mark.parametrize("package", ["contracts", "libs", "services"])
def test_a_docstring_has_a_subject(root: Path, package: str) -> None:
    """`The outcome of a pick`, `Answer a request`: a clause that begins with `What` has none."""
    without = [
        f"{path.relative_to(root).as_posix()}: {text.splitlines()[0]}"
        for path in sorted((root / package).rglob("*.py"))
        for text in source(path).docstrings
        if text.startswith("What ")
    ]
    assert without == []
