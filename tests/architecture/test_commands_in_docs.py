"""Each `deskbus` command on a page of the docs is one that there is, with options that it has."""

import shlex
from pathlib import Path

import pytest

from tests.docs_commands import DOCS, ShownCommand, in_blocks, in_text, parse, unknown

PAGES = [DOCS.parent / "README.md", *sorted(DOCS.glob("*.md"))]


SHOWN = [shown for page in PAGES for shown in in_blocks(page)]


@pytest.mark.parametrize("shown", SHOWN, ids=lambda shown: f"{shown.page}: {shown.line}")
def test_a_command_of_a_page_can_be_read(shown: ShownCommand) -> None:
    parse(shown.words)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_in_the_text_of_a_page_and_their_options_are_there(page: Path) -> None:
    lost = {}
    for line in in_text(page):
        words = shlex.split(line.replace("[", "").replace("]", ""))[1:]
        if word := unknown(words):
            lost[line] = word
    assert lost == {}


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("cycle shwo", "shwo"),
        ("cycle request --kidn exit", "--kidn"),
        ("cycle request --kind", ""),
        ("halt --status", ""),
    ],
)
def test_what_there_is_not_is_seen(line: str, word: str) -> None:
    assert unknown(line.split()) == word
