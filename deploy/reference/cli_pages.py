"""A page a command in docs/cli, made from the program by typer's own writer of documentation.

`python -m deploy.reference.cli_pages docs/cli` writes them anew, and removes those of no command.
"""

import re
import sys
from collections.abc import Mapping
from pathlib import Path

import typer
from typer.cli import get_docs_for_click

from services.cli.main import SECTIONS, app

INDEX = "README.md"
MADE = "<!-- made by `python -m deploy.reference.cli_pages docs/cli` from the program -->"

PREFACE = """\
Every command has `--help`, and most have `--json` for programs. Exit codes: 0 ok, 1 failed,
2 usage, 3 not found, 4 rejected or expired, 5 desk not reachable, 124 time-out, 130 interrupted.
Settings, such as the data directory, are in the environment and `deskbus.toml`:
[configuration](../configuration.md)."""


def pages() -> Mapping[str, str]:
    """All pages by their file's name, the index among them."""
    group = typer.main.get_command(app)
    context = typer.Context(group, info_name="deskbus")
    lines = ["# Commands", "", MADE, "", PREFACE]
    written: dict[str, str] = {}
    for title, entries in SECTIONS:
        lines += ["", f"## {title}", "", "| command | |", "| --- | --- |"]
        for entry in entries:
            command = group.get_command(context, entry.name)  # type: ignore[attr-defined]
            text = get_docs_for_click(
                obj=command, ctx=context, name=entry.name, call_prefix="deskbus"
            )
            written[f"{entry.name}.md"] = _page(text)
            lines.append(f"| [`deskbus {entry.name}`]({entry.name}.md) | {entry.help} |")
    return {INDEX: "\n".join(lines) + "\n", **written}


def _page(text: str) -> str:
    """A page as the house writes them: the mark below its title, no needless blanks or lines."""
    text = re.sub(r"[ \t]+$", "", text, flags=re.MULTILINE)
    text = re.sub(r"\n{3,}", "\n\n", text).strip()
    text = re.sub(r"(?:^deskbus .*\n?)+", _fenced, text, flags=re.MULTILINE)
    title, _, rest = text.partition("\n")
    return f"{title}\n\n{MADE}\n{rest}\n"


def _fenced(examples: re.Match[str]) -> str:
    return f"**Examples**:\n\n```console\n{examples[0].rstrip()}\n```\n"


def main(folder: Path) -> None:
    """Write the pages."""
    folder.mkdir(exist_ok=True)
    wanted = pages()
    for name, text in wanted.items():
        (folder / name).write_text(text, encoding="utf-8")
    for path in folder.glob("*.md"):
        if path.name not in wanted:
            path.unlink()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
