"""The tree grows only on purpose: SIZE.toml holds how large it may be."""

import tomllib
from pathlib import Path

from deploy.reference.size import grown, sizes


def test_nothing_is_larger_than_size_toml_says(root: Path) -> None:
    ceilings = tomllib.loads((root / "SIZE.toml").read_text())
    assert grown(sizes(), ceilings) == [], "`make size` raises it; say why in the commit"


def test_more_of_something_known_and_anything_new_is_seen() -> None:
    before = {"counts": {"settings": 90, "tables": 30}}
    now = {"counts": {"settings": 91, "tables": 29, "commands": 1}}
    assert grown(now, before) == ["counts.settings: 90 -> 91", "counts.commands: 0 -> 1"]
