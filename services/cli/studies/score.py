"""`deskbus study score|cells`: what a study shows, and the cycles that it is from."""

from collections.abc import Sequence
from datetime import date
from typing import Annotated

import typer
from pydantic import ValidationError
from rich.console import Console, Group, RenderableType
from rich.text import Text

from contracts.cycle import DECISION, PROBE
from contracts.message import PAGE_MAX
from contracts.study import CELLS_MAX, CellView, StudyCells, StudyCellsQuery
from contracts.study_score import StudyScore, StudyScoreQuery
from contracts.subjects.studies import STUDY_CELLS, STUDY_SCORE
from libs.facts import amounts
from libs.report.studies.compose import compose
from libs.report.studies.parts import Cell, Section, Span, StudyReport, Table
from libs.runtime.settings import Settings
from services.cli.shell.invalid import invalid
from services.cli.shell.list_options import tell_next
from services.cli.shell.options import JsonOption
from services.cli.shell.problem import ExitCode, Problem
from services.cli.shell.running import asking, load_settings, reading_client
from services.cli.shell.terminal import TONE_STYLES, Sheet, emit, out, table, write
from services.cli.studies.file import NameArgument
from services.cli.studies.run import no_such_study

SPAN_COLUMNS = 21
SCORE_S = 120.0
"""A long study's statistics, on a busy machine."""

HorizonOption = Annotated[
    int | None, typer.Option(min=1, max=252, help="Sessions after a decision; or its file's first.")
]
CostOption = Annotated[
    float | None, typer.Option("--cost-bps", min=0, max=1_000, help="Basis points a side.")
]
BenchmarkOption = Annotated[
    str | None, typer.Option(help="Compare with `candidates`, `cash` or a ticker.")
]


def score(
    study_name: NameArgument,
    horizon: HorizonOption = None,
    cost_bps: CostOption = None,
    benchmark: BenchmarkOption = None,
    json: JsonOption = False,
) -> None:
    """Score a study: which arm decides better, what is luck, who has seen the future.

    Reads the record and the prices alone: it costs nothing, for any horizon, cost and benchmark.
    """
    result = asking(scored(study_name, horizon, cost_bps, benchmark))
    if json:
        emit([result])
    else:
        show(compose(result), out())


def cells(
    study_name: NameArgument,
    arm: Annotated[str | None, typer.Option(help="Of this arm alone.")] = None,
    on: Annotated[str | None, typer.Option(help="Of this date alone: 2012-06-29.")] = None,
    probes: Annotated[
        bool, typer.Option("--probes", help="Those that ask who a masked input is.")
    ] = False,
    limit: Annotated[int, typer.Option(min=1, max=CELLS_MAX, help="How many cells to list.")] = 50,
    skip: Annotated[int, typer.Option(min=0, help="Leave out so many first ones.")] = 0,
    json: JsonOption = False,
) -> None:
    """List the cycles that a study's figures are from."""
    settings = load_settings()
    try:
        query = StudyCellsQuery(
            name=study_name,
            kind=PROBE if probes else DECISION,
            arm=arm,
            on=date.fromisoformat(on) if on else None,
            skip=skip,
        )
    except ValidationError as error:
        raise invalid("study", error) from None
    except ValueError:
        raise Problem(
            ExitCode.USAGE, f"--on must be a date, e.g. 2012-06-29 (got {on!r})"
        ) from None

    view = asking(_cells(settings, query, limit))
    if json:
        emit(view.cells)
    else:
        write(_grid(view.cells, probes=probes), out())
    if view.more:
        filters = {"arm": arm, "on": on, "probes": probes, "limit": limit}
        following = {**filters, "skip": skip + len(view.cells)}
        tell_next("more", f"deskbus study cells {study_name}", following)


def _grid(cells: Sequence[CellView], *, probes: bool) -> Sheet:
    last = "identified" if probes else "bought"
    grid = table("date", ("sample", "right"), "arm", "status", "cycle", last)
    for cell in cells:
        bought = ", ".join(f"{asset} {part:.1%}" for asset, part in cell.weights.items())
        style = "red" if cell.status == "failed" else ""
        identified = ", ".join(cell.identified) or "nobody"
        grid.add_row(
            f"{cell.on}",
            f"{cell.sample}",
            Text(cell.arm, "bold"),
            Text(cell.status, style),
            amounts.short(cell.cycle_id),
            identified if probes else bought or "nothing",
        )
    return grid


async def _cells(settings: Settings, query: StudyCellsQuery, limit: int) -> StudyCells:
    """The first `limit` cells, read page by page. Raises `Problem` where there is no such study."""
    cells: list[CellView] = []
    more = True
    async with reading_client(settings) as client:
        while more and len(cells) < limit:
            here = {"skip": query.skip + len(cells), "limit": min(PAGE_MAX, limit - len(cells))}
            page = await client.ask(STUDY_CELLS, query.model_copy(update=here))
            if not page.found:
                raise await no_such_study(client, query.name)
            cells += page.cells
            more = page.more and bool(page.cells)
    return StudyCells(cells=tuple(cells), more=more)


async def scored(
    name: str, horizon: int | None, cost_bps: float | None, benchmark: str | None
) -> StudyScore:
    """The score of a study that there is. Raises `Problem`."""
    settings = load_settings()
    try:
        query = StudyScoreQuery(name=name, horizon=horizon, cost_bps=cost_bps, benchmark=benchmark)
    except ValidationError as error:
        raise invalid("study", error) from None
    async with reading_client(settings) as client:
        result = await client.ask(STUDY_SCORE, query, timeout_s=SCORE_S)
        if not result.found:
            raise await no_such_study(client, name)
    return result


def show(report: StudyReport, console: Console) -> None:
    """Print a study's report."""
    parts: list[RenderableType] = [Text.assemble((f"study {report.name}", "bold"))]
    parts += [Text(line, "dim") for line in report.asked]
    if report.answer:
        parts += [Text(), *(Text.assemble("  ", _text(cell)) for cell in report.answer)]
    write(Group(*parts), console)
    for section in report.sections:
        _section(section, console)
    write(
        Text(f"\nthe cycles of an arm: deskbus study cells {report.name} --arm ARM", "dim"), console
    )


def _section(section: Section, console: Console) -> None:
    write(Group(Text(), Text(section.title, "bold"), Text(section.about, "dim")), console)
    for one in section.tables:
        write(Group(Text(), *([Text(one.title, "cyan")] if one.title else ())), console)
        write(_table(one, console.width), console)
    for note in section.notes:
        write(Text(note, "dim"), console)


def _table(of: Table, width: int) -> Sheet:
    """The table with as many columns as there is room for: first the drawings give way, then what
    a reader can do without."""
    everything = range(len(of.columns))
    without_drawings = [at for at in everything if not of.draws(at)]
    for places in (everything, without_drawings):
        grid = _sheet(of, places)
        if grid.width_needed() <= width:
            return grid
    return _sheet(of, [at for at in without_drawings if not of.columns[at].wide])


def _sheet(of: Table, places: Sequence[int]) -> Sheet:
    heads = [of.columns[at] for at in places]
    grid = table(*((it.title, "right") if it.right else it.title for it in heads))
    for row in of.rows:
        grid.add_row(*(_text(row[at]) for at in places))
    return grid


def _text(cell: Cell) -> Text:
    if cell.span is not None:
        return Text(drawn_span(cell.span, SPAN_COLUMNS), "cyan")
    return Text(cell.text, TONE_STYLES[cell.tone] if cell.tone else "")


def drawn_span(span: Span, columns: int) -> str:
    """An interval in a line of characters: `  --o--  |   `; `|` is nothing."""

    def place(part: float) -> int:
        return min(int(part * columns), columns - 1)

    marks = [" "] * columns
    for at in range(place(span.low), place(span.high) + 1):
        marks[at] = "-"
    marks[place(span.nothing)] = "|"
    marks[place(span.middle)] = "o"
    return "".join(marks)
