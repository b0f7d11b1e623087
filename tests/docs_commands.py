"""The commands that pages of docs/ show, read by the parser of `deskbus` itself."""

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from services.cli.main import app

DOCS = Path(__file__).parents[1] / "docs"
PROGRAM: Any = typer.main.get_command(app)
BLOCK = re.compile(r"^( *)```\w*\n(?P<code>.*?)^\1```", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`(deskbus [^`]+)`")
LINE = re.compile(r"(?:\$ )?(?P<variables>(?:[A-Z_]+=\S* )*)(?:\.venv/bin/)?deskbus (?P<rest>.+)")
REMARK = re.compile(r"(?:\s+#|\s{2,}).*")
NEXT = re.compile(r"\s(?:&&|\|\|?|>)\s|;\s")
"""Where another command begins, or a file takes the output."""


@dataclass(frozen=True)
class ShownCommand:
    """One `deskbus` line of a page: the variables before it, and the words behind it."""

    page: str
    line: str
    variables: Sequence[str]
    words: Sequence[str]


def in_blocks(page: Path) -> Iterator[ShownCommand]:
    """The commands of a page's fenced blocks: one a line; a remark begins with # or two blanks.
    Brackets mark what may be left out."""
    for block in BLOCK.finditer(page.read_text(encoding="utf-8")):
        for line in block["code"].replace("\\\n", "").splitlines():
            for part in NEXT.split(REMARK.sub("", line.strip())):
                if found := LINE.fullmatch(part.strip()):
                    words = shlex.split(found["rest"].replace("[", "").replace("]", ""))
                    yield ShownCommand(page.name, part, found["variables"].split(), words)


def in_text(page: Path) -> Iterator[str]:
    """The commands in a page's running text, which may leave out what a command needs."""
    text = BLOCK.sub("", page.read_text(encoding="utf-8"))
    return (found[1].replace("\n", " ") for found in INLINE.finditer(text))


def parse(words: Sequence[str]) -> None:
    """Read a command's words without running it. Raises what the program would end with."""
    context, group = PROGRAM.make_context("deskbus", [*words]), PROGRAM
    while group is PROGRAM or getattr(group, "commands", None) is not None:
        rest = [*context._protected_args, *context.args]
        if not rest:
            return
        name, command, rest = group.resolve_command(context, rest)
        context, group = command.make_context(name, rest, parent=context), command


def unknown(words: Sequence[str]) -> str:
    """The first word that names a command or an option which there is not; "" for none. What is
    in capitals stands for something else."""
    command, rest = _found(words)
    if getattr(command, "list_commands", None) and rest and not rest[0].startswith("-"):
        return "" if rest[0].isupper() else rest[0]
    lost = (word.partition("=")[0] for word in rest if word.startswith("--"))
    return next((name for name in lost if name not in {*_options(command), "--help"}), "")


def options_of(words: Sequence[str]) -> frozenset[str]:
    """The options of the command that words name."""
    return _options(_found(words)[0])


def _found(words: Sequence[str]) -> tuple[Any, Sequence[str]]:
    """The command that words name, and the words behind it."""
    command, context = PROGRAM, typer.Context(PROGRAM, info_name="deskbus")
    for number, word in enumerate(words):
        below = getattr(command, "get_command", lambda *_: None)(context, word)
        if below is None:
            return command, words[number:]
        command = below
    return command, ()


def _options(command: Any) -> frozenset[str]:
    return frozenset(name for param in command.params for name in param.opts)
