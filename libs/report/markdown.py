"""Descriptions (libs/report/view.py) as Markdown that reads well as it is. Pure."""

from collections.abc import Sequence

from libs.report.view import Cell, Facts, Part, Table, Text

CELL_CHARS_MAX = 120
"""Of a cell whose column does not wrap."""
HARMLESS = {"|": "/", "`": "'", "<": "&lt;", "](": "] ("}
"""Signs that could end a cell or begin a link, a tag or code, and what stands for them."""


def text_of(part: Part) -> str:
    """One part with its notes; a table without rows is the words in its place."""
    match part:
        case Text():
            return plain(part.text)
        case Facts():
            return _with_notes(
                "\n".join(f"- {label}: {_cell(it, part.currency)}" for label, it in part.rows), part
            )
        case Table():
            return _with_notes(_table(part.in_use) if part.rows else plain(part.empty.text), part)


def plain(text: str, chars_max: int | None = None) -> str:
    """Text on one line that ends no cell and begins no markup."""
    known = "".join(c if c.isprintable() else " " for c in text)
    line = " ".join(known.split())
    for sign, harmless in HARMLESS.items():
        line = line.replace(sign, harmless)
    if chars_max is not None and len(line) > chars_max:
        return line[: chars_max - 1] + "…"
    return line


def _with_notes(text: str, part: Table | Facts) -> str:
    return "\n\n".join((text, *(plain(note.text) for note in part.notes)))


def _cell(of: Cell, currency: str, chars_max: int | None = None) -> str:
    text = plain(of.shown(currency), chars_max)
    return f"**{text}**" if of.is_strong else text


def _table(of: Table) -> str:
    """With its columns in line."""
    limits = [None if column.wraps else CELL_CHARS_MAX for column in of.columns]
    cells = [
        [_cell(it, of.currency, most) for it, most in zip(row.cells, limits, strict=True)]
        for row in of.rows
    ]
    heads, sides = [it.title for it in of.columns], [it.right for it in of.columns]
    widths = [max(map(len, texts)) for texts in zip(heads, *cells, strict=True)]

    def line(texts: Sequence[str]) -> str:
        padded = (
            text.rjust(width) if right else text.ljust(width)
            for text, width, right in zip(texts, widths, sides, strict=True)
        )
        return f"| {' | '.join(padded)} |"

    rule = ["-" * (w - 1) + (":" if right else "-") for w, right in zip(widths, sides, strict=True)]
    return "\n".join([line(heads), line(rule), *map(line, cells)])
