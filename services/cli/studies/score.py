"""`deskbus study score|cells`: what a study shows, and the cycles that it is from."""

from collections.abc import Sequence
from typing import Annotated

import typer
from rich.console import Console, Group, RenderableType
from rich.text import Text

from contracts.cycle import DECISION, PROBE
from contracts.message import PAGE_MAX
from contracts.study import CELLS_MAX, CellView, StudyCells, StudyCellsQuery
from contracts.study_score import StudyScore, StudyScoreQuery
from contracts.subjects.studies import STUDY_CELLS, STUDY_SCORE
from contracts.subjects.subject import STUDY
from libs.bus.client import Client
from libs.facts import amounts
from libs.report.tones import Tone
from libs.report.view import Table, count, day, say, table
from libs.study.report.compose import compose
from libs.study.report.parts import StudyReport
from services.cli.render.described import described, line
from services.cli.render.described import show as show_answer
from services.cli.shell.invalid import day_of, typed
from services.cli.shell.list_options import filters, tell_next
from services.cli.shell.options import JsonOption
from services.cli.shell.running import with_record
from services.cli.shell.terminal import emit, out, write
from services.cli.studies.file import NameArgument
from services.cli.studies.run import no_such_study

SCORE_S = 120.0
"""A long study's statistics, on a busy machine."""


@filters(StudyScoreQuery, name=NameArgument)
def score(query: StudyScoreQuery, json: JsonOption = False) -> None:
    """Score a study: compare arms, skill, luck and look-ahead.

    It only reads the record and the prices, so any horizon, cost or benchmark is free.
    """
    result = scored(query)
    if json:
        emit([result])
    else:
        show(
            compose(result),
            out(),
            f"the cycles of an arm: deskbus study cells {query.name} --arm ARM",
        )


def cells(
    study_name: NameArgument,
    arm: Annotated[str | None, typer.Option(help="Only this arm.")] = None,
    on: Annotated[str | None, typer.Option(help="Only this date, e.g. 2012-06-29.")] = None,
    probes: Annotated[
        bool,
        typer.Option(
            "--probes",
            help="Only probes, which test whether a model recognises a masked company.",
        ),
    ] = False,
    limit: Annotated[int, typer.Option(min=1, max=CELLS_MAX, help="How many cells to list.")] = 50,
    skip: Annotated[int, typer.Option(min=0, help="How many cells to skip first.")] = 0,
    json: JsonOption = False,
) -> None:
    """List the cycles behind a study's numbers."""
    query = typed(
        "study",
        StudyCellsQuery,
        name=study_name,
        kind=PROBE if probes else DECISION,
        arm=arm,
        on=day_of("--on", on),
        skip=skip,
    )
    view = with_record(lambda client: _cells(client, query, limit), STUDY)
    show_answer(view.cells, [_table(view.cells, probes=probes)], json=json)
    if view.more:
        filters = {"arm": arm, "on": on, "probes": probes, "limit": limit}
        following = {**filters, "skip": skip + len(view.cells)}
        tell_next("more", f"deskbus study cells {study_name}", following)


def _table(cells: Sequence[CellView], *, probes: bool) -> Table:
    rows = []
    for cell in cells:
        bought = ", ".join(f"{asset} {part:.1%}" for asset, part in cell.weights.items())
        identified = ", ".join(cell.identified)
        made = identified or "nobody" if probes else bought or "nothing"
        tone = Tone.BAD if cell.status == "failed" else None
        figures = (day(cell.on), count(cell.sample), say(cell.arm), say(cell.status, tone))
        rows.append((*figures, amounts.short(cell.cycle_id), made))
    heads = ("Date", "Sample", "Arm", "Status", "Cycle", "Identified" if probes else "Bought")
    return table(heads, rows)


async def _cells(client: Client, query: StudyCellsQuery, limit: int) -> StudyCells:
    """The first `limit` cells, read page by page. Raises `CliProblem` where there is no such
    study."""
    cells: list[CellView] = []
    more = True
    while more and len(cells) < limit:
        here = {"skip": query.skip + len(cells), "limit": min(PAGE_MAX, limit - len(cells))}
        page = await client.ask(STUDY_CELLS, query.model_copy(update=here))
        if not page.found:
            raise await no_such_study(client, query.name)
        cells += page.cells
        more = page.more and bool(page.cells)
    return StudyCells(cells=tuple(cells), more=more)


def scored(query: StudyScoreQuery) -> StudyScore:
    """The score of a study that there is. Raises `CliProblem`."""

    async def work(client: Client) -> StudyScore:
        result = await client.ask(STUDY_SCORE, query, timeout_s=SCORE_S)
        if not result.found:
            raise await no_such_study(client, query.name)
        return result

    return with_record(work, STUDY)


def show(report: StudyReport, console: Console, hint: str) -> None:
    """Print a report, and the command that goes on from it."""
    parts: list[RenderableType] = [Text.assemble((f"{report.kind} {report.name}", "bold"))]
    parts += [Text(line, "dim") for line in report.asked]
    if report.answer:
        parts += [Text(), *(Text.assemble("  ", line(cell, "", console)) for cell in report.answer)]
    for section in report.sections:
        parts += [Text(), Text(section.title, "bold"), Text(section.about, "dim")]
        for part in section.tables:
            parts += [Text(), described(part, console)]
        parts += [Text(note, "dim") for note in section.notes]
    write(Group(*parts, Text(f"\n{hint}", "dim")), console)
