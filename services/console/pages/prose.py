"""The desk's own Markdown as blocks that a template draws, every text of them escaped. Pure.

It knows what `report_text` writes: headings, paragraphs, lists, tables, `code` and **bold**.
"""

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass

MARKED = re.compile(r"\*\*(?P<strong>.+?)\*\*|`(?P<code>[^`]+)`")


@dataclass(frozen=True)
class Span:
    """A piece of text; `kind` is `text`, `strong` or `code`."""

    kind: str
    text: str


Line = tuple[Span, ...]


@dataclass(frozen=True)
class Block:
    """`kind` is `h1`, `h2`, `p`, `list` (a line an item) or `table` (the first row is its head);
    `right` says which columns hold numbers."""

    kind: str
    rows: tuple[tuple[Line, ...], ...]
    right: tuple[bool, ...] = ()


def blocks(markdown: str) -> Sequence[Block]:
    """The text's blocks in order."""
    return [_block(part) for part in markdown.strip().split("\n\n") if part.strip()]


def _block(text: str) -> Block:
    lines = text.split("\n")
    first = lines[0]
    if first.startswith("#"):
        marks, _, title = first.partition(" ")
        return Block(f"h{len(marks)}", ((spans(title),),))
    if first.startswith("- "):
        return Block("list", tuple((spans(line.removeprefix("- ")),) for line in lines))
    if first.startswith("|") and len(lines) > 1:
        rule = _cells(lines[1])
        rows = (first, *lines[2:])
        return Block(
            "table",
            tuple(tuple(map(spans, _cells(row))) for row in rows),
            tuple(cell.endswith(":") for cell in rule),
        )
    return Block("p", ((spans(" ".join(lines)),),))


def _cells(line: str) -> Sequence[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def spans(text: str) -> Line:
    """The text in pieces, without the marks."""
    parts, place = [], 0
    for match in MARKED.finditer(text):
        parts.append(Span("text", html.unescape(text[place : match.start()])))
        kind = str(match.lastgroup)
        parts.append(Span(kind, html.unescape(match[kind])))
        place = match.end()
    parts.append(Span("text", html.unescape(text[place:])))
    return tuple(part for part in parts if part.text)
