"""`deskbus study report`: what a study shows, on one page of HTML that needs nothing else."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from contracts.study_score import StudyScoreQuery
from contracts.subjects.studies import STUDY_CELLS
from contracts.subjects.subject import STUDY
from libs.runtime.whole_file import write_whole
from libs.study.report.compose import compose
from services.cli.shell.invalid import writing
from services.cli.shell.list_options import filters
from services.cli.shell.options import JsonOption
from services.cli.shell.running import with_record
from services.cli.shell.terminal import aside, emit
from services.cli.studies.file import NameArgument
from services.cli.studies.score import scored


@filters(StudyScoreQuery, name=NameArgument)
def report(
    query: StudyScoreQuery,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The file; by default NAME.html in this folder."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Write a study's report: one HTML file that loads nothing from the network."""
    from libs.study.report.page import listed, page  # noqa: PLC0415 - loads the templates

    result, study_name = scored(query), query.name
    if json:
        emit([result])
        return
    path = output or Path(f"{study_name}.html")
    cells = with_record(lambda client: listed(study_name, partial(client.ask, STUDY_CELLS)), STUDY)
    text = page(compose(result), cells)
    hint = "name a file in an existing, writable folder with --output"
    with writing(path, hint):
        write_whole(path, text.encode())
    aside(f"wrote {path}")
