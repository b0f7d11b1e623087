"""`deskbus check`: every file of market data that the desk would read, without a desk."""

from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Annotated

import typer
from pydantic import BaseModel
from rich.text import Text

from libs.market.replay.checked import CheckedFile, checked_files
from libs.market.replay.store import ReplayStore
from services.cli.operating.market_files import require_exit_rules
from services.cli.shell.options import JsonOption, group
from services.cli.shell.problem import ExitCode, Problem
from services.cli.shell.running import asking, load_settings
from services.cli.shell.terminal import emit, err, out, table, write

app = group()


class FileRow(BaseModel):
    """One file, as `CheckedFile` says."""

    name: str
    what: str
    rows: int | None
    first: date | None
    last: date | None
    refused: str
    note: str
    is_ignored: bool


@app.command()
def check(
    directory: Annotated[
        Path | None,
        typer.Argument(help="A folder of market data; the one of the settings by default."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Read all market files, and say of each what it is and whether it can be used.

    No desk is needed, and nothing is changed. The settings and the exit rules are read too, and
    refused where they cannot be used. Exit 1 where a file cannot be used.
    """
    settings = load_settings()
    require_exit_rules(settings)
    folder = directory or settings.replay_dir
    if folder is not None and not folder.is_dir():
        raise Problem(ExitCode.USAGE, f"{folder} is not a folder", "name one, or none")
    files = asking(_files(folder))
    if json:
        emit([FileRow.model_validate(file, from_attributes=True) for file in files])
    else:
        grid = table("", "file", "what it is", ("rows", "right"), "first", "last", "what to know")
        for file in files:
            grid.add_row(*_cells(file))
        write(grid, out())
    refused = [file for file in files if file.refused]
    if refused:
        raise Problem(
            ExitCode.FAILED,
            f"{len(refused)} of {len(files)} files cannot be used; the first: {refused[0].refused}",
            "a ticker whose file cannot be used is left out of decisions until the file is mended",
        )
    if not json:
        where = folder or "the bundled prices"
        err().print(Text(f"all files of {where} can be used", style="dim"))


async def _files(folder: Path | None) -> Sequence[CheckedFile]:
    return [file async for file in checked_files(ReplayStore(folder))]


def _cells(file: CheckedFile) -> tuple[Text, ...]:
    mark, style = ("✗", "bold red") if file.refused else ("✓", "green")
    if file.is_ignored:
        mark, style = "-", "yellow"
    say = file.refused or file.note
    return (
        Text(mark, style=style),
        Text(file.name),
        Text(file.what),
        Text("" if file.rows is None else f"{file.rows:,}"),
        Text("" if file.first is None else file.first.isoformat()),
        Text("" if file.last is None else file.last.isoformat()),
        Text(say, style="yellow" if say else ""),
    )
