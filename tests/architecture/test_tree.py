"""The tree explains the system: same files, same names in every service."""

import importlib
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pytest

from contracts.subjects.subject import BACKBONE, SERVICES
from tests.architecture.sources import read, source

PACKAGES = ("contracts", "libs", "services", "tests", "benchmarks")
PRODUCT = ("contracts", "libs", "services", "deploy")
EDGES = {"cli", "mcp_server"}
"""Edges are shaped by their users, not by messages."""


def _python(root: Path) -> list[Path]:
    return [path for package in PACKAGES for path in sorted((root / package).rglob("*.py"))]


def _folders(root: Path) -> list[Path]:
    return [p for p in sorted((root / "services").iterdir()) if (p / "__init__.py").is_file()]


def test_every_service_can_be_started_by_its_name(root: Path) -> None:
    for folder in _folders(root):
        if folder.name not in EDGES:
            assert (folder / "__main__.py").is_file(), folder.name


@pytest.mark.slow
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


@pytest.mark.slow
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


def _shared(classes: Iterable[tuple[str, Sequence[str]]]) -> Mapping[str, Sequence[str]]:
    """Public names of classes that there are more than once, with the modules; `contracts` alone
    may have one for two messages."""
    places = defaultdict(list)
    for module, names in classes:
        for name in names:
            if not name.startswith("_"):
                places[name].append(module)
    return {
        name: modules
        for name, modules in places.items()
        if len(modules) > 1 and not all(it.startswith("contracts/") for it in modules)
    }


@pytest.mark.slow
def test_a_public_class_has_a_name_of_its_own(root: Path) -> None:
    paths = [path for folder in PRODUCT for path in sorted((root / folder).rglob("*.py"))]
    assert len(paths) > 500
    classes = [(it.relative_to(root).as_posix(), source(it).classes) for it in paths]
    assert _shared(classes) == {}


def test_of_classes_a_second_one_of_a_name_is_seen() -> None:
    code = read("class Entry: ...\nclass _Own: ...\ndef f():\n    class Inner: ...\n").classes
    seen = _shared([("libs/a.py", code), ("contracts/b.py", ("Entry",)), ("libs/c.py", code)])
    assert seen == {
        "Entry": ["libs/a.py", "contracts/b.py", "libs/c.py"],
        "Inner": ["libs/a.py", "libs/c.py"],
    }
    assert _shared([("contracts/a.py", ["Part"]), ("contracts/b.py", ["Part"])]) == {}


def test_every_first_party_package_is_in_the_wheel(root: Path) -> None:
    project = tomllib.loads((root / "pyproject.toml").read_text())
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel["sources"] == {
        "contracts": "deskbus/contracts",
        "libs": "deskbus/libs",
        "services": "deskbus/services",
        "deploy/wheel/deskbus": "deskbus",
    }
    assert wheel["only-include"] == [*wheel["sources"]]


@pytest.mark.parametrize("name", [*BACKBONE, *SERVICES])
def test_a_services_first_words_say_what_it_decides(name: str) -> None:
    words = importlib.import_module(f"services.{name}").__doc__ or ""
    assert len(words.split()) >= 6


def test_every_migration_has_a_number_of_its_own(root: Path) -> None:
    names = sorted(p.name for p in (root / "libs/postgres/migrations").glob("*.sql"))
    numbers = [name[:4] for name in names]
    assert numbers == sorted({*numbers})
    assert all(number.isdigit() for number in numbers)
