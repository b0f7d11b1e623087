"""`deskbus export`: what is on record, as Parquet files."""

from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from libs.postgres.export import ExportManifest, ExportRange, cycle_named
from libs.postgres.export import export as write_export
from libs.postgres.pool import CONSOLE_ROLE, open_pool
from libs.report import view
from libs.report.view import Column, Table
from libs.runtime.ids import NotFound
from services.cli.render.described import show
from services.cli.shell.database import database_dsn
from services.cli.shell.options import JsonOption, group
from services.cli.shell.problem import NoSuchThing, WrongUsage
from services.cli.shell.running import asking, load_settings

app = group()


@app.command()
def export(
    directory: Annotated[Path, typer.Argument(help="A new or empty folder.")],
    since: Annotated[
        datetime | None,
        typer.Option(formats=["%Y-%m-%d"], help="Cycles accepted on this UTC day or later."),
    ] = None,
    until: Annotated[
        datetime | None,
        typer.Option(formats=["%Y-%m-%d"], help="Cycles accepted on this UTC day or earlier."),
    ] = None,
    cycle: Annotated[
        str | None, typer.Option(help="Only this cycle: its id, the id's first digits, or `last`.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Write cycles, operations, journal, events, orders, fills and ledger as Parquet files.

    It writes one file per table, and a manifest with row counts and hashes, all from the same
    moment. The desk may be running.
    """
    first, last = since.date() if since else None, until.date() if until else None
    if first and last and last < first:
        raise WrongUsage(f"--until {last} is before --since {first}")
    settings = load_settings()
    dsn = database_dsn(settings, CONSOLE_ROLE)

    async def work() -> ExportManifest:
        async with open_pool(dsn, size_max=1, name="deskbus_export") as pool:
            only = None if cycle is None else await cycle_named(pool, cycle)
            return await write_export(pool, directory, ExportRange(first, last, only))

    try:
        manifest = asking(work())
    except NotFound as error:
        raise NoSuchThing(error.message, "deskbus cycle list") from None
    files = Table(
        (Column("File"), Column("Rows", right=True), Column("Bytes", right=True)),
        tuple(
            view.row(it.file, view.count(it.rows), view.count(it.size_bytes))
            for it in manifest.tables
        ),
    )
    show([manifest], [files], json=json)
