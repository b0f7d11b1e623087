"""The terminal's renderer of what libs/report describes (libs/report/view.py)."""

from collections.abc import Iterable, Sequence

from pydantic import BaseModel
from rich.console import Console, Group, RenderableType
from rich.table import Table as Grid
from rich.text import Text as Line

from libs.facts.amounts import plain
from libs.report.tones import Tone
from libs.report.view import Absence, Cell, Facts, NoRows, Part, Table, Text
from services.cli.render import chart
from services.cli.render.chart import TerminalChart
from services.cli.shell.terminal import (
    TONE_STYLES,
    Dataclass,
    Sheet,
    aside,
    emit,
    out,
    table,
    write,
)

Shown = Part | tuple[Facts, ...] | RenderableType
CURVE_WIDTH = 12
UNBOUNDED = 1_000
"""A width at which the true need is measured."""
GAP = 4
"""Blanks between facts that stand side by side."""


def show(models: Sequence[BaseModel | Dataclass], parts: Iterable[Shown], *, json: bool) -> None:
    """Print an answer: its models as JSON, a line each, or its description."""
    if json:
        emit(models)
    else:
        write_screen(parts, out())


def show_change(answer: BaseModel, done: str, same: str, *, changed: bool, json: bool) -> None:
    """Print the answer to a wish: what was `done`, or that it was the `same` before."""
    show([answer], [done] if changed else [], json=json)
    if not changed and not json:
        aside(f"{same}: nothing changed")


def write_screen(parts: Iterable[Shown], console: Console) -> None:
    """Print the parts, a blank line before each table or chart but the first part; the words of an
    empty table are on stderr."""
    for number, part in enumerate(parts):
        if isinstance(part, Table) and not part.rows:
            aside(absent(part.empty), "")
            continue
        if number and isinstance(part, Table | Facts | tuple | TerminalChart):
            write(Line(), console)
        if isinstance(part, Table | Facts | Text | tuple):
            write(placed(part, console), console)
        elif isinstance(part, str):
            console.print(part, soft_wrap=True)
        else:
            write(part, console)


def head(title: str, under: str = "") -> Line:
    """The first line of a screen."""
    return Line.assemble((plain(title), "bold"), (f"  {plain(under)}" if under else "", "dim"))


def stacked(parts: Sequence[RenderableType]) -> RenderableType:
    """The parts below one another, a blank line between them."""
    spaced: list[RenderableType] = []
    for part in parts:
        spaced += [Line(), part] if spaced else [part]
    return Group(*spaced)


def placed(part: Part | tuple[Facts, ...], console: Console) -> RenderableType:
    """A part; facts in a tuple stand side by side, or below one another where that is too wide."""
    if not isinstance(part, tuple):
        return described(part, console)
    grids = [_facts(facts, console) for facts in part]
    beside = Grid.grid(padding=(0, GAP, 0, 0))
    beside.add_row(*grids)
    unbounded = console.options.update(width=UNBOUNDED)
    needed = console.measure(beside, options=unbounded).maximum
    return beside if needed <= console.width else stacked(grids)


def described(part: Part, console: Console) -> RenderableType:
    """One part."""
    match part:
        case Text():
            return _note(part)
        case Facts():
            return _facts(part, console)
        case Table():
            return Group(*_table(part, console))


def _table(of: Table, console: Console) -> Iterable[RenderableType]:
    if of.title:
        yield Line(plain(of.title), "bold")
    yield sheet(of, console) if of.rows else absent(of.empty)
    yield from map(_note, of.notes)


def sheet(of: Table, console: Console) -> Sheet:
    """The rows of a table; the first cell of each names it. Rows of a table without titles have no
    head."""
    of = of.in_use
    grid = table(
        *(
            (
                _headed(column.title),
                "right" if column.right else "gives" if column.wraps or column.cuts else "left",
            )
            for column in of.columns
        ),
        spare=[_headed(title) for title in of.spare],
    )
    grid.keeps_rows = of.keeps_rows
    grid.columns[-1].no_wrap = not (of.columns[-1].wraps or of.columns[-1].cuts)
    grid.show_header = any(column.title for column in of.columns)
    for entry in of.rows:
        first, *rest = entry.cells
        head = line(first, of.currency, console)
        head.style = head.style or "bold"
        cells = [head, *(line(cell, of.currency, console) for cell in rest)]
        for column, cell in zip(of.columns, cells, strict=True):
            if column.cuts:
                cell.no_wrap, cell.overflow = True, "ellipsis"
        grid.add_row(*cells)
    return grid


def _headed(title: str) -> str:
    """`unrealised P&L`: small letters but for what is spelled in capitals."""
    return " ".join(word.lower() if word[1:].islower() else word for word in title.split(" "))


def absent(of: NoRows) -> Line:
    """The words in place of what is not there; a source that did not answer stands out."""
    style = TONE_STYLES[Tone.WARN if of.absence is Absence.NO_ANSWER else Tone.QUIET]
    return Line(plain(f"{of.text} {of.todo}".rstrip()), style)


def line(cell: Cell, currency: str, console: Console) -> Line:
    """A cell on a line."""
    if isinstance(cell.value, tuple):
        marks = chart.levels(console.encoding)
        return Line(chart.sparkline(cell.value, CURVE_WIDTH, marks), "cyan", no_wrap=True)
    style = TONE_STYLES[cell.tone] if cell.tone else ""
    return Line(plain(cell.shown(currency)), f"bold {style}".strip() if cell.is_strong else style)


def _facts(of: Facts, console: Console) -> RenderableType:
    grid = Grid.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True, style="cyan")
    numbers = all(cell.unit or cell.value is None for _, cell in of.rows)
    grid.add_column(justify="right" if numbers else "left")
    for label, cell in of.rows:
        grid.add_row(_headed(plain(label)), line(cell, of.currency, console))
    title = [Line(plain(of.title), "bold")] if of.title else []
    return Group(*title, grid, *map(_note, of.notes))


def _note(of: Text) -> Line:
    return Line(plain(of.text), TONE_STYLES[of.tone] if of.tone else "")
