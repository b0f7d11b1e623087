"""`deskbus check`: every file of market data that the desk would read, without a desk."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from libs.market.replay.checked import CheckedFile, checked_files
from libs.market.replay.layout import LABEL_FILE
from libs.market.replay.store import ReplayStore
from libs.report import view
from libs.report.tones import Tone
from libs.report.view import Cell, Column, Table
from libs.runtime.settings import SETTINGS_FILE
from services.cli.operating.checks import DoctorCheck
from services.cli.operating.market_files import require_exit_rules
from services.cli.operating.market_import import DEFAULT_FOLDER
from services.cli.operating.plugins import plugin_rows
from services.cli.render.described import show
from services.cli.shell.options import JsonOption, group
from services.cli.shell.problem import CliProblem, WrongUsage
from services.cli.shell.running import asking, load_settings
from services.cli.shell.terminal import aside

app = group()


@app.command()
def check(
    directory: Annotated[
        Path | None,
        typer.Argument(help="A folder of market data; by default the one in the settings."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Read all market data files, and show what each is and whether it can be used.

    It needs no desk and changes nothing. It also checks the settings and the exit rules, and runs
    each plug-in on a sample buy. Exit 1 if a file or a plug-in has a fault.
    """
    settings = load_settings()
    folder = directory or settings.market.replay_dir
    if folder is not None and not folder.is_dir():
        raise WrongUsage(f"{folder} is not a folder", "name a folder, or leave it out")
    files = asking(_files(folder))
    tried = asking(plugin_rows(settings))
    found = [check for _, check in tried]
    plugins = [_plugin_row(name, check) for name, check in tried]
    show([*files, *plugins], [_table(files), *([_plugin_table(found)] if found else [])], json=json)
    require_exit_rules(settings)
    faults = [it for it in found if it.todo]
    if faults:
        raise CliProblem(f"plug-in {faults[0].said}", faults[0].todo)
    refused = [file for file in files if file.refused]
    if refused:
        raise CliProblem(
            f"{len(refused)} of {len(files)} files have faults; the first: {refused[0].refused}",
            "until then, decisions leave out the tickers of such files, and bad rows of records",
        )
    if not json:
        where = folder or "the bundled prices"
        aside(f"all files in {where} can be used")
        if folder is None and (DEFAULT_FOLDER / LABEL_FILE).is_file():
            aside(
                f"the folder {DEFAULT_FOLDER} is not in use: replay_dir below [market] in "
                f"{SETTINGS_FILE} names it, `deskbus check {DEFAULT_FOLDER}` checks it"
            )


async def _files(folder: Path | None) -> Sequence[CheckedFile]:
    return [file async for file in checked_files(ReplayStore(folder))]


def _table(files: Sequence[CheckedFile]) -> Table:
    return view.table(
        ("File", "What it is", "Rows", "First", "Last", Column("What to know", wraps=True)),
        (
            (
                _name(it),
                it.what,
                view.BLANK if it.rows is None else view.count(it.rows),
                str(it.first or ""),
                str(it.last or ""),
                view.say("; ".join(filter(None, (it.refused, it.note))), Tone.WARN),
            )
            for it in files
        ),
    )


def _plugin_row(name: str, tried: DoctorCheck) -> CheckedFile:
    """A plug-in as a row of JSON: its fault as `refused`, or its answer as `note`."""
    if tried.todo:
        return CheckedFile(name, tried.name, refused=tried.said)
    return CheckedFile(name, tried.name, note=tried.said)


def _plugin_table(tried: Sequence[DoctorCheck]) -> Table:
    """Every plug-in: what it answered to the sample, or its fault."""
    return view.table(
        (Column("Plug-in", wraps=True),),
        ((view.say(f"{'✗' if it.todo else '✓'} {it.said}", _tone(it)),) for it in tried),
    )


def _tone(of: DoctorCheck) -> Tone:
    return Tone.BAD if of.todo else Tone.GOOD


def _name(of: CheckedFile) -> Cell:
    if of.is_ignored:
        return view.say(f"- {of.name}", Tone.WARN)
    mark, tone = ("✗", Tone.BAD) if of.refused else ("✓", Tone.GOOD)
    return view.say(f"{mark} {of.name}", tone)
