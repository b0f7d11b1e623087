"""The list of commands (docs/commands.md), and the site's page of each, by typer's own writer."""

import re
from collections.abc import Mapping

import typer
from typer.cli import get_docs_for_click

from services.cli.main import SECTIONS, app

MADE = "<!-- made by `make contracts` from the program -->"

PREFACE = """\
Every command has `--help`, and most have `--json` for programs. Exit codes: 0 ok, 1 failed, 2
usage, 3 not found, 4 rejected or expired, 5 desk not reachable, 124 time-out, 130 interrupted.
Settings are in the environment and `deskbus.toml`: [configuration](configuration.md)."""


def listing() -> str:
    """The page that lists all commands."""
    lines = ["# Commands", "", MADE, "", PREFACE]
    for title, entries in SECTIONS:
        lines += ["", f"## {title}", "", "| command | |", "| --- | --- |"]
        lines += [f"| `deskbus {entry.name}` | {entry.help} |" for entry in entries]
    return "\n".join(lines) + "\n"


def pages() -> Mapping[str, str]:
    """A page of the site for each command, by its name."""
    group = typer.main.get_command(app)
    context = typer.Context(group, info_name="deskbus")
    return {
        entry.name: _page(
            get_docs_for_click(
                obj=group.get_command(context, entry.name),  # type: ignore[attr-defined]
                ctx=context,
                name=entry.name,
                call_prefix="deskbus",
            )
        )
        for _, entries in SECTIONS
        for entry in entries
    }


def _page(text: str) -> str:
    """A page as the house writes them: the mark below its title, no needless blanks or lines."""
    text = re.sub(r"[ \t]+$", "", text, flags=re.MULTILINE)
    # A group's list cuts its sentences; below it each command has them whole.
    text = re.sub(r"^\*\*Commands\*\*:\n.*?(?=^## )", "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"[\b]?\nExamples:\n((?:  deskbus .*\n?)+)", _fenced, text)
    text = re.sub(r"^(#+) `(.+)`$", r"\1 \2", text, flags=re.MULTILINE)
    text = re.sub(r"\n{3,}", "\n\n", text).strip()
    title, _, rest = text.partition("\n")
    return f"{title}\n\n{MADE}\n{rest}\n"


def _fenced(examples: re.Match[str]) -> str:
    lines = (line.strip() for line in examples[1].splitlines())
    return "\n".join(("\n**Examples**:\n", "```console", *lines, "```\n"))
