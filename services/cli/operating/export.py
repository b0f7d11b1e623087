"""`deskbus export`: what is on record, as Parquet files."""

from datetime import datetime
from pathlib import Path
from typing import Annotated
from uuid import UUID

import typer

from libs.postgres.export import Manifest, Wanted
from libs.postgres.export import export as write_export
from libs.postgres.pool import CONSOLE_ROLE, open_pool
from libs.runtime.settings import Settings
from services.cli.shell.database import database_dsn
from services.cli.shell.options import JsonOption, group
from services.cli.shell.problem import ExitCode, Problem
from services.cli.shell.request import show
from services.cli.shell.running import asking, desk_client, load_settings
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
    cycle: Annotated[
        str | None, typer.Option(help="This cycle alone, by its id or the id's first digits.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Write cycles, operations, journal, events, orders, fills and ledger as Parquet files.

    One file a table and a manifest with row counts and hashes, all of one moment. The desk may run.
    """
    first, last = since.date() if since else None, until.date() if until else None
    if first and last and last < first:
        raise Problem(ExitCode.USAGE, f"--until {last} is before --since {first}")
    settings = load_settings()
    dsn = database_dsn(settings, CONSOLE_ROLE)

    async def work() -> Manifest:
        wanted = Wanted(first, last, None if cycle is None else await _cycle(settings, cycle))
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


async def _cycle(settings: Settings, typed: str) -> UUID:
    """The cycle's whole id; the desk is asked only about first digits."""
    try:
        return UUID(typed)
    except ValueError:
        async with desk_client(settings) as client:
            whole = (await show(client, typed)).cycle_id
    assert whole is not None, "a cycle that is shown has its id"  # noqa: S101
    return whole
