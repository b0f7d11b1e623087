"""The tree grows only on purpose: SIZE.toml holds how large it may be."""

import sys
import tomllib
from pathlib import Path

import pytest

from deploy.reference.size import grown, sizes

COUNTED_BY = (3, 11)
"""The Python that SIZE.toml is made with."""
PARSERS_DIFFER = 0.001
"""By so much more nodes, at most, does another Python's parser see, as in f-strings of 3.12."""


@pytest.mark.slow
def test_nothing_is_larger_than_size_toml_says(root: Path) -> None:
    ceilings = tomllib.loads((root / "SIZE.toml").read_text())
    if sys.version_info[:2] != COUNTED_BY:
        counted = ceilings["python_nodes"]
        ceilings["python_nodes"] = {
            part: nodes * (1 + PARSERS_DIFFER) for part, nodes in counted.items()
        }
    assert grown(sizes(), ceilings) == [], "`make size` raises it; say why in the commit"


def test_more_of_something_known_and_anything_new_is_seen() -> None:
    before = {"counts": {"settings": 90, "tables": 30}}
    now = {"counts": {"settings": 91, "tables": 29, "commands": 1}}
    assert grown(now, before) == ["counts.settings: 90 -> 91", "counts.commands: 0 -> 1"]
