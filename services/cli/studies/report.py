"""`deskbus study report`: what a study shows, on one page of HTML that needs nothing else."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from contracts.study import CellView
from contracts.subjects.studies import STUDY_CELLS
from contracts.subjects.subject import STUDY
from libs.runtime.whole_file import beside
from libs.study.report.compose import compose
from services.cli.shell.options import JsonOption
from services.cli.shell.problem import CliProblem, ExitCode
from services.cli.shell.running import asking, load_settings, reading_client
from services.cli.shell.terminal import emit, err
from services.cli.studies.file import NameArgument
from services.cli.studies.score import BenchmarkOption, CostOption, HorizonOption, scored


def report(
    study_name: NameArgument,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The file; or NAME.html here.")
    ] = None,
    horizon: HorizonOption = None,
    cost_bps: CostOption = None,
    benchmark: BenchmarkOption = None,
    json: JsonOption = False,
) -> None:
    """Write a study's report: one HTML file that asks no other host for anything."""
    from libs.study.report.page import page  # noqa: PLC0415 - loads the templates

    result = asking(scored(study_name, horizon, cost_bps, benchmark))
    if json:
        emit([result])
        return
    path = output or Path(f"{study_name}.html")
    text = page(compose(result), asking(_cells(study_name)))
    try:
        with beside(path, text.encode()) as whole:
            whole.replace(path)
    except OSError as error:
        raise CliProblem(
            ExitCode.FAILED,
            f"{path} cannot be written: {error.strerror}",
            "name a file in a folder that is there and yours by --output",
        ) from None
    err().print(f"wrote {path}", style="dim")


async def _cells(name: str) -> Sequence[CellView]:
    from libs.study.report.page import listed  # noqa: PLC0415 - as above

    async with reading_client(load_settings(), STUDY) as client:
        return await listed(name, partial(client.ask, STUDY_CELLS))
