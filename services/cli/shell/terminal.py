"""Where words go: data to stdout, everything else to stderr; colour only where a person looks."""

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import Field
from functools import cache
from io import TextIOWrapper
from typing import Any, ClassVar, Literal, Protocol

from pydantic import BaseModel
from pydantic_core import to_json
from rich.cells import cell_len
from rich.console import COLOR_SYSTEMS, Console, Group, RenderableType
from rich.padding import Padding
from rich.style import Style
from rich.table import Column, Table
from rich.text import Text

from libs.report.tones import MARKS, Tone, tone

PLAIN_WIDTH = 110
"""Columns where no terminal is known: wide enough that nothing is broken or cut."""
WIDTH_MAX = 118
"""Wider lines are hard to read."""
WIDTH_MIN = 40
"""Data in less would be cut and broken letter by letter: a narrower terminal breaks their lines."""
TEXT_WIDTH_MIN = 20
"""A text that wraps in less than this is a ribbon that nobody reads."""
CUT_WIDTH_MIN = 12
"""The same of a text that is cut with …."""
LABEL_WIDTH = 13
"""Of the labels that stand before facts, with their two blanks."""

TONE_STYLES = {
    Tone.GOOD: "green",
    Tone.BUSY: "cyan",
    Tone.WARN: "yellow",
    Tone.BAD: "red",
    Tone.QUIET: "dim",
}
STATUS_STYLES = {word: TONE_STYLES[tone(word)] for word in MARKS}


class Dataclass(Protocol):
    """An instance of one."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]


@cache
def out() -> Console:
    """Data, on stdout."""
    return _console(stderr=False)


@cache
def err() -> Console:
    """Words, on stderr."""
    return _console(stderr=True)


def put(text: str | Text, style: str = "") -> None:
    """Data: a line on stdout, which only a terminal breaks."""
    out().print(text, style=style, soft_wrap=True)


def aside(text: str | Text, style: str = "dim") -> None:
    """Words: a line on stderr, which only a terminal breaks."""
    err().print(text, style=style, soft_wrap=True)


class _Piped(Console):
    """rich's, but that a reader who has seen enough is no failure of the command."""

    def on_broken_pipe(self) -> None:
        """Leave it to the command's entry, as every other write does."""
        raise BrokenPipeError


def _console(*, stderr: bool) -> Console:
    console = _Piped(stderr=stderr, highlight=False, markup=False, emoji=False)
    stream = sys.stderr if stderr else sys.stdout
    if isinstance(stream, TextIOWrapper) and not stream.encoding.lower().startswith("utf"):
        # A mark that the terminal cannot show is a question mark, not the end of the command.
        stream.reconfigure(errors="replace")
    # COLUMNS is the reader's own word; rich's guess about a pipe is not.
    asked_for = os.environ.get("COLUMNS", "").isdigit()
    wide = console.width if console.is_terminal or asked_for else _width_of_a_pipe()
    # Words keep the terminal's own width: a line that changes must fit on one of its lines.
    console.width = min(wide if stderr else max(wide, WIDTH_MIN), WIDTH_MAX)
    return console


def _width_of_a_pipe() -> int:
    """That of the terminal that the command was typed in, by what of it is no pipe."""
    for number in (2, 0):
        with suppress(OSError):
            return os.get_terminal_size(number).columns or PLAIN_WIDTH
    return PLAIN_WIDTH


def emit(lines: Iterable[BaseModel | Dataclass]) -> None:
    """NDJSON: one model or dataclass a line, exact, on stdout."""
    for line in lines:
        body = line.model_dump_json() if isinstance(line, BaseModel) else to_json(line).decode()
        sys.stdout.write(f"{body}\n")
    sys.stdout.flush()


def write(renderable: RenderableType, console: Console) -> None:
    """Print without the blanks that tables leave at the ends of lines; a table that would have to
    cut what must stay whole is printed as blocks."""
    with console.capture() as captured:
        console.print(_fitted(renderable, console.width))
    for line in captured.get().splitlines():
        console.file.write(line.rstrip() + "\n")
    console.file.flush()


class FactsTable(Table):
    """Labels at the left, values beside them, as `facts` makes it."""

    def fitted(self, width: int) -> RenderableType:
        """The same with values that fit beside the labels."""
        labels, values = (column.cells for column in self.columns)
        room = width - LABEL_WIDTH - 1
        rows = zip(labels, values, strict=True)
        return _labelled((label, _fitted(value, room)) for label, value in rows)


class Sheet(Table):
    """A table that nothing whole is cut in: where the terminal is too narrow it does without the
    columns that are `spare`, the first one first, and those that are empty; where that is not
    enough its rows become blocks of `label  value`, unless it `keeps_rows`, as a tree does."""

    keeps_rows = False
    spare: Sequence[str] = ()

    def fitted(self, width: int) -> RenderableType:
        """The table with as many columns as fit."""
        if self.width_needed() <= width:
            return self
        kept = [column for column in self.columns if any(map(_length, column.cells))]
        narrower = self._of(kept)
        for title in self.spare:
            if narrower.width_needed() <= width:
                break
            kept = [column for column in kept if column.header != title]
            narrower = self._of(kept)
        fits = narrower.width_needed() <= width
        return narrower if fits or self.keeps_rows else self.blocks()

    def _of(self, kept: Sequence[Column]) -> "Sheet":
        sheet = _empty_sheet()
        sheet.show_header = self.show_header
        for column in kept:
            sheet.add_column(column.header, justify=column.justify, no_wrap=column.no_wrap)
        for cells in zip(*(column.cells for column in kept), strict=True):
            sheet.add_row(*cells)
        return sheet

    def width_needed(self) -> int:
        """Columns without which something whole is cut, or a text becomes a ribbon."""
        widths = []
        for column in self.columns:
            need = _length if column.no_wrap else _length_needed
            widths.append(max(map(need, (column.header, *column.cells)), default=0))
        return sum(widths) + 2 * (len(widths) - 1)

    def blocks(self) -> RenderableType:
        """Each row as lines, under its first cell; what is empty is left out."""
        titles = [str(column.header).replace("\n", " ") for column in self.columns]
        label_width = max(map(len, titles), default=0) + 2
        parts: list[RenderableType] = []
        for cells in zip(*(column.cells for column in self.columns), strict=True):
            head, *rest_of_row = cells
            if _length(head):
                parts.append(head if isinstance(head, Text) else Text(str(head), "bold"))
            grid = Table.grid(padding=(0, 1, 0, 0))
            grid.add_column(width=label_width + 2, style="dim", no_wrap=True)
            grid.add_column()
            for title, cell in zip(titles[1:], rest_of_row, strict=True):
                if _length(cell):
                    grid.add_row(f"  {title}", _wrapping(cell))
            parts.append(grid)
        return Group(*parts)


def _length(cell: object) -> int:
    """The longest line of a cell."""
    text = cell.plain if isinstance(cell, Text) else str(cell)
    return max((cell_len(line) for line in text.splitlines()), default=0)


def _length_needed(cell: object) -> int:
    """Columns without which a cell that gives way says nothing: what is cut needs fewer than what
    wraps."""
    is_cut = isinstance(cell, Text) and cell.overflow == "ellipsis"
    return min(_length(cell), CUT_WIDTH_MIN if is_cut else TEXT_WIDTH_MIN)


def _wrapping(cell: RenderableType) -> RenderableType:
    """The cell, whole: in a block there is room for further lines."""
    if isinstance(cell, Text):
        cell = cell.copy()
        cell.no_wrap, cell.overflow = None, "fold"
    return cell


def _fitted(renderable: RenderableType, width: int) -> RenderableType:
    """The same with every table that is too wide as blocks, however deep it stands."""
    if isinstance(renderable, Group):
        return Group(*(_fitted(part, width) for part in renderable.renderables))
    if isinstance(renderable, Padding):
        inner = _fitted(renderable.renderable, width - renderable.left - renderable.right)
        sides = (renderable.top, renderable.right, renderable.bottom, renderable.left)
        return Padding(inner, sides)
    return renderable.fitted(width) if isinstance(renderable, Sheet | FactsTable) else renderable


def table(*columns: str | tuple[str, str], spare: Sequence[str] = ()) -> Sheet:
    """An open table with a dim head; a column is its title, or title and `right` or `gives`.

    Where the line is too narrow, the last column gives way and those that say so, the widest first;
    what must stay on one line there is a `Text` that ends with …. Where even that is not enough,
    `write` leaves out the columns that are `spare`, and then prints each row as a block.
    """
    grid = _empty_sheet()
    grid.spare = spare
    for number, column in enumerate(columns, start=1):
        title, side = (column, "left") if isinstance(column, str) else column
        justify: Literal["left", "right"] = "right" if side == "right" else "left"
        stays = side != "gives" and number < len(columns)
        grid.add_column(title, justify=justify, no_wrap=stays)
    return grid


def _empty_sheet() -> Sheet:
    return Sheet(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")


def facts(rows: Sequence[tuple[str, RenderableType]]) -> Table:
    """Labels at the left, what there is to say beside them."""
    return _labelled((f"  {label}", value) for label, value in rows)


def _labelled(rows: Iterable[tuple[RenderableType, RenderableType]]) -> FactsTable:
    grid = FactsTable(
        box=None, show_header=False, pad_edge=False, padding=(0, 1, 0, 0), collapse_padding=True
    )
    grid.add_column(width=LABEL_WIDTH, style="cyan", no_wrap=True)
    grid.add_column()
    for row in rows:
        grid.add_row(*row)
    return grid


def painter(console: Console) -> Callable[[str, str], str]:
    """A quick way to colour single words: rich's own lines cost a millisecond each."""
    if console.color_system is None or console.no_color:
        return lambda text, _style: text
    system = COLOR_SYSTEMS[console.color_system]
    styles: dict[str, Style] = {}

    def paint(text: str, style: str) -> str:
        if style not in styles:
            styles[style] = Style.parse(style)
        return styles[style].render(text, color_system=system)

    return paint
