"""The tree explains the system: same files, same names, small files, small functions."""

import importlib
import tomllib
from pathlib import Path

import pytest

from contracts.subjects.subject import BACKBONE, SERVICES
from tests.architecture.sources import read, source

FILE_LINES_MAX = {"contracts": 400, "libs": 400, "services": 400, "tests": 650, "benchmarks": 400}
FUNCTION_LINES_MAX = {
    "contracts": 60,
    "libs": 60,
    "services": 60,
    "tests": 100,  # a fixture may hold a page of data
    "benchmarks": 60,
}
FILES_MAX = 20
"""Of a folder: beyond it a reader looks for a file by searching, and the folder wants rooms."""
TEMPLATE_COLUMNS_MAX = 160
DRAWERS = {"contracts": 44}  # a file an owner, in alphabetical order; they do not form groups
EDGES = {"cli", "mcp_server"}
"""Edges are shaped by their users, not by messages."""

# Files that are longer than the rest, each with its ceiling and its reason.
LONG_FILES = {
    # the shapes of the HTTP API, each a few lines
    "contracts/http.py": 420,
    # one table
    "libs/runtime/settings.py": 420,
    # the state machine: one class, read in one sitting
    "services/orchestrator/machine/logic.py": 505,
}
LONG_FUNCTIONS: dict[str, int] = {}
FORBIDDEN_NAMES = {"utils", "helpers", "manager", "base", "common", "misc"}


def _python(root: Path) -> list[Path]:
    return [path for package in FILE_LINES_MAX for path in sorted((root / package).rglob("*.py"))]


def _folders(root: Path) -> list[Path]:
    return [p for p in sorted((root / "services").iterdir()) if (p / "__init__.py").is_file()]


def test_every_service_can_be_started_by_its_name(root: Path) -> None:
    for folder in _folders(root):
        if folder.name not in EDGES:
            assert (folder / "__main__.py").is_file(), folder.name


def test_no_folder_is_a_drawer(root: Path) -> None:
    full = {}
    for package in ("contracts", "libs", "services"):
        folders = {path.parent for path in (root / package).rglob("*.py")}
        for folder in folders:
            name = folder.relative_to(root).as_posix()
            files = [path for path in folder.glob("*.py") if path.name != "__init__.py"]
            if len(files) > DRAWERS.get(name, FILES_MAX):
                full[name] = len(files)
    assert full == {}


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


def test_no_file_is_longer_than_can_be_read_in_one_sitting(root: Path) -> None:
    long = {}
    for path in _python(root):
        lines = len(path.read_text().splitlines())
        name = path.relative_to(root).as_posix()
        if lines > LONG_FILES.get(name, FILE_LINES_MAX[name.partition("/")[0]]):
            long[name] = lines
    assert long == {}


def test_no_line_of_a_template_is_wider_than_a_screen(root: Path) -> None:
    wide = [
        f"{path.relative_to(root)}:{number}"
        for package in ("libs", "services")
        for path in sorted((root / package).rglob("*.html"))
        for number, line in enumerate(path.read_text().splitlines(), start=1)
        if len(line) > TEMPLATE_COLUMNS_MAX
    ]
    assert wide == []


def test_no_function_is_longer_than_a_screen(root: Path) -> None:
    long = {}
    for path in _python(root):
        for function, lines in source(path).functions.items():
            name = f"{path.relative_to(root).as_posix()}:{function}"
            if lines > LONG_FUNCTIONS.get(name, FUNCTION_LINES_MAX[name.partition("/")[0]]):
                long[name] = lines
    assert long == {}


def test_what_is_private_to_a_module_is_used_in_it(root: Path) -> None:
    needless = []
    for path in _python(root):
        own = {name for name in source(path).own if name.startswith("_") and name[:2] != "__"}
        unused = sorted(own - source(path).used)
        needless += [f"{path.relative_to(root)}: {name}" for name in unused]
    assert needless == []


def test_of_a_file_its_lengths_and_what_nobody_uses_are_seen() -> None:
    code = read("_kept = 1\n_left = _kept\ndef f():\n    return 1\n@route\ndef _r(): ...\n")
    assert code.functions == {"f": 2, "_r": 1}
    assert code.own - code.used == {"_left", "f"}


def test_the_exceptions_are_still_needed(root: Path) -> None:
    for name in LONG_FILES:
        usual = FILE_LINES_MAX[name.partition("/")[0]]
        assert len((root / name).read_text().splitlines()) > usual, name


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
