"""`deskbus export`: what is on record, as Parquet files."""

from datetime import datetime
from pathlib import Path
from typing import Annotated
from uuid import UUID

import typer

from libs.postgres.export import Manifest, Wanted
from libs.postgres.export import export as write_export
from libs.postgres.pool import CONSOLE_ROLE, open_pool
from services.cli.shell.database import database_dsn
from services.cli.shell.options import JsonOption, group
from services.cli.shell.problem import ExitCode, Problem
from services.cli.shell.running import asking, load_settings
from services.cli.shell.terminal import emit, err, out, table, write

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
        typer.Option(formats=["%Y-%m-%d"], help="Cycles accepted on this UTC day or before."),
    ] = None,
    cycle: Annotated[UUID | None, typer.Option(help="This cycle alone, by its whole id.")] = None,
    json: JsonOption = False,
) -> None:
    """Write cycles, operations, journal, events, orders, fills and ledger as Parquet files.

    One file a table and a manifest with row counts and hashes, all of one moment. The desk may run.
    """
    wanted = Wanted(since.date() if since else None, until.date() if until else None, cycle)
    if wanted.since and wanted.until and wanted.until < wanted.since:
        raise Problem(ExitCode.USAGE, f"--until {wanted.until} is before --since {wanted.since}")
    dsn = database_dsn(load_settings(), CONSOLE_ROLE)

    async def work() -> Manifest:
        async with open_pool(dsn, size_max=1, name="deskbus_export") as pool:
            return await write_export(pool, directory, wanted)

    manifest = asking(work())
    if cycle is not None and not manifest.tables[0].rows:
        err().print(f"no cycle has the id {cycle}: the files are empty", style="yellow")
    if json:
        emit([manifest])
        return
    listing = table("file", ("rows", "right"), ("bytes", "right"))
    for file in manifest.tables:
        listing.add_row(file.file, f"{file.rows:,}", f"{file.size_bytes:,}")
    write(listing, out())
