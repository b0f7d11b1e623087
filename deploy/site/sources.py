"""What Sphinx builds the site from: the pages of docs/, in the parts of docs/README.md.

docs/README.md is the site's first page and its navigation: each heading of the second level is a
part, each of the third a group in it, and each row of their tables names a page. What is made from
code is made anew. Of what the pages link to outside of docs/*.md, files that a reader takes home
are copied, and others are named: the site knows no address of the repository.
"""

import os
import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from deploy.reference import cli_pages, messages_page
from deploy.reference.pages import DOCS, MADE, rewritten

INDEX = "README.md"
PART, GROUP = "## ", "### "
MESSAGES = "contracts/schemas/asyncapi.json"
"""Links to it lead to the page of the messages, which has it too."""
TAKEN_HOME = ("docs/examples", "examples", "contracts/schemas")
HERE = ("http://", "https://", "mailto:", "#", "/")
ROW = re.compile(r"^\| .*\| \[(?P<title>[^\]]+)\]\((?P<page>[^)#]+)\) \|$", re.MULTILINE)
CODE = r"^(?P<indent> *)(?P<fence>```+|~~~+).*?^(?P=indent)(?P=fence)|`[^`\n]*`"
LINK = r"(?<!!)\[(?P<text>[^\]]*)\]\((?P<link>[^()\s]+)\)"
NAMED = r"\bdocs/(?P<named>[a-z-]+\.md)\b"
TEXT = re.compile(f"(?P<code>{CODE})|{LINK}|{NAMED}", re.MULTILINE | re.DOTALL)
"""Code, which stays as it is; links; pages that are named in running text."""

LISTED = re.compile(r"^\| `deskbus ([\w-]+)` \|", re.MULTILINE)
"""A command in the list of all."""

Entry = tuple[str, str]
"""A page in the navigation: its title there and its name."""


@dataclass(frozen=True)
class PageGroup:
    """Pages that stand together in the navigation."""

    title: str
    entries: Sequence[Entry]


@dataclass(frozen=True)
class SitePart:
    """One of the four parts, with what docs/README.md has below its heading."""

    title: str
    text: str
    groups: Sequence[PageGroup]

    @property
    def name(self) -> str:
        """The name of its page."""
        return self.title.lower()


def parts() -> Sequence[SitePart]:
    """The parts of docs/README.md, in order."""
    return [_part(title, text) for title, text in _sections(_read(INDEX), PART)]


def write(folder: Path) -> None:
    """Write the sources of the site into a folder, which is made."""
    shutil.copytree(DOCS / "images", folder / "images")
    for name in TAKEN_HOME:
        shutil.copytree(DOCS.parent / name, folder / "files" / name)
    commands = cli_pages.pages()
    below = {"commands": [(f"deskbus {it}", f"commands/{it}") for it in commands]}
    below["index"] = [(part.title, part.name) for part in parts()]
    for path in DOCS.glob("*.md"):
        name, text = _page(path.name), _read(path.name)
        made = rewritten(path.name, text) if path.name in MADE else text
        made = LISTED.sub(r"| [`deskbus \1`](/commands/\1.md) |", made) if name in below else made
        _put(folder, name, made, [PageGroup("", below.get(name, ()))])
    for part in parts():
        _put(folder, part.name, f"# {part.title}\n{part.text.replace(GROUP, '## ')}", part.groups)
    for name, text in commands.items():
        _put(folder, f"commands/{name}", text)
    _put(folder, "messages", messages_page.page())


def on_site(text: str) -> str:
    """The text of a page of docs/ with its links as they lead on the site."""
    return TEXT.sub(_on_site, text)


def _part(title: str, text: str) -> SitePart:
    sections = [("", text.partition(GROUP)[0]), *_sections(text, GROUP)]
    groups = [PageGroup(group, [*_entries(rows)]) for group, rows in sections]
    return SitePart(title, text, [group for group in groups if group.entries])


def _sections(text: str, marks: str) -> Iterator[tuple[str, str]]:
    """Each heading of a level, and the text below it."""
    for section in re.split(f"^{marks}", text, flags=re.MULTILINE)[1:]:
        title, _, below = section.partition("\n")
        yield title, below


def _entries(rows: str) -> Iterator[Entry]:
    for row in ROW.finditer(rows):
        yield row["title"], _page(_in_repository(row["page"]).removeprefix("docs/"))


def _put(folder: Path, name: str, text: str, groups: Iterable[PageGroup] = ()) -> None:
    """Write a page, with the pages below it in the navigation."""
    trees = [_tree(group) for group in groups if group.entries]
    path = folder / f"{name}.md"
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n\n".join([on_site(text), *trees]) + "\n", encoding="utf-8")


def _tree(group: PageGroup) -> str:
    entries = (f"{title} </{name}>" for title, name in group.entries)
    caption = [f":caption: {group.title}"] if group.title else []
    return "\n".join(["```{toctree}", ":hidden:", *caption, "", *entries, "```"])


def _on_site(found: re.Match[str]) -> str:
    if found["code"]:
        return found[0]
    text = found["text"] or found[0]
    link, mark, anchor = (found["link"] or found["named"]).partition("#")
    if link.startswith(HERE) or not link:
        return found[0]
    place = _in_repository(link)
    if place == MESSAGES or (place.startswith("docs/") and place.count("/") == 1):
        return f"[{text}](/{_page(place.removeprefix('docs/'))}.md{mark}{anchor})"
    if place.startswith(TAKEN_HOME) and (DOCS.parent / place).is_file():
        return f"[{text}](/files/{place})"
    return f'<abbr title="in the repository: {place}">{text}</abbr>'


def _page(file: str) -> str:
    """The name on the site of a page of docs/, or of the messages."""
    return {INDEX: "index", MESSAGES: "messages"}.get(file, file.removesuffix(".md"))


def _in_repository(link: str) -> str:
    """Where a link of a page of docs/ leads, from the top of the repository."""
    return os.path.normpath(f"docs/{link}")


def _read(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")
