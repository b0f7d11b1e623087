"""One wording of an event: what displays say of its data is in libs/report/events.py."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PLACES = ("services/cli", "libs/report")
HOME = "libs/report/events.py"
READERS = {
    "services/cli/shell/request.py": "waits longer while a person is asked: a number, no text",
    "services/cli/desk/narrator.py": "how a cycle ended, for its mark",
}
"""Modules that read an event's data for something else, and what for."""


def reads(tree: ast.AST) -> Iterator[int]:
    """The lines that read the data of something named as an event."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr == "data":
            owner = node.value
            name = owner.attr if isinstance(owner, ast.Attribute) else getattr(owner, "id", "")
            if "event" in name:
                yield node.lineno


def readers() -> dict[str, list[int]]:
    places = (path for place in PLACES for path in sorted((ROOT / place).rglob("*.py")))
    lines = {
        str(path.relative_to(ROOT)): list(reads(ast.parse(path.read_text()))) for path in places
    }
    return {name: listed for name, listed in lines.items() if listed and name != HOME}


def test_no_display_makes_words_of_an_events_data_itself() -> None:
    assert set(readers()) == set(READERS), "use libs.report.events.described"


def test_a_module_that_did_would_be_found() -> None:
    assert list(reads(ast.parse("line = f'{event.data[\"step\"]} failed'"))) == [1]
    assert list(reads(ast.parse("why = self.event.data.get('reason')"))) == [1]
