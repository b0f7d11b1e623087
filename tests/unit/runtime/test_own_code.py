"""Modules of the user's: found in the working directory, and after everything else."""

import hashlib
import random
import sys
from pathlib import Path

import pytest

from libs.runtime import own_code
from libs.runtime.own_code import own_module, source_sha256


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    return tmp_path


def test_a_module_beside_the_settings_is_found(folder: Path) -> None:
    (folder / "my_own_desk.py").write_text("ANSWER = 42\n")
    assert own_module("my_own_desk").ANSWER == 42


def test_a_file_never_stands_in_for_a_module_of_pythons(folder: Path) -> None:
    (folder / "random.py").write_text("raise SystemExit\n")
    (folder / "colorsys.py").write_text("raise SystemExit\n")  # that nobody has imported yet
    sys.modules.pop("colorsys", None)
    assert own_module("random") is random
    assert own_module("colorsys").rgb_to_hls


def test_none_of_the_name_is_said(folder: Path) -> None:
    with pytest.raises(ModuleNotFoundError, match="no_such_desk"):
        own_module("no_such_desk")


def test_a_module_alone_has_the_hash_of_its_file(folder: Path) -> None:
    (folder / "my_rules.py").write_text("import json, no_such_module\n")
    (folder / "test_my_rules.py").write_text("import my_rules\n")
    whole = (folder / "my_rules.py").read_bytes()
    assert source_sha256("my_rules") == hashlib.sha256(whole).hexdigest()


@pytest.mark.parametrize(
    "changed", ["my_rules.py", "near.py", "deep/__init__.py", "deep/more/inner.py"]
)
def test_the_hash_covers_what_is_imported_from_the_folder(folder: Path, changed: str) -> None:
    (folder / "deep" / "more").mkdir(parents=True)
    (folder / "my_rules.py").write_text("def rule(buy):\n    import near\n")
    (folder / "near.py").write_text("from deep.more import inner\n")
    (folder / "deep" / "__init__.py").write_text("import my_rules\n")
    (folder / "deep" / "more" / "inner.py").write_text("x = 1\n")
    (folder / "apart.py").write_text("x = 1\n")
    before = source_sha256("my_rules")
    (folder / "apart.py").write_text("x = 2\n")
    assert source_sha256("my_rules") == before
    file = folder / changed
    file.write_text(f"{file.read_text()}y = 2\n")
    assert source_sha256("my_rules") not in {before, ""}


def test_a_package_is_covered_whole_wherever_it_lies(folder: Path) -> None:
    hashes = []
    for place in ("here", "there"):
        package = folder / place / "my_desk"
        package.mkdir(parents=True)
        for name in ("__init__", "rules", "loaded_by_a_computed_name"):
            (package / f"{name}.py").write_text("x = 1\n")
        sys.path.insert(0, str(package.parent))
        hashes.append(source_sha256("my_desk.rules"))
    assert hashes[0] == hashes[1] != ""
    (folder / "there" / "my_desk" / "loaded_by_a_computed_name.py").write_text("x = 2\n")
    assert source_sha256("my_desk.rules") not in {hashes[0], ""}


def test_too_much_code_has_no_hash(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_code, "FILES_MAX", 2)
    for name, source in (("a1", "import a2"), ("a2", "import a3"), ("a3", "")):
        (folder / f"{name}.py").write_text(source)
    assert source_sha256("a2")
    assert source_sha256("a1") == ""
