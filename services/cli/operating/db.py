"""`deskbus db`: the database's tables."""

from pathlib import Path
from typing import Annotated

import typer
from pydantic import BaseModel

from libs.facts import amounts
from libs.postgres.migrate import migrate as run_migrations
from libs.postgres.migrate import migrations
from libs.postgres.pool import OWNER_ROLE, PostgresError, dsn_for, is_outage, open_pool
from libs.postgres.retention import retain as drop_months
from libs.postgres.retention import retain_looks, retain_models
from libs.report import view
from libs.report.settings import without_login
from libs.report.view import Column, NoRows, Text
from libs.runtime.settings import Settings
from libs.servers.binaries import find_postgres_bindir
from libs.servers.postgres_backup import DUMP_MAGIC, dump
from libs.servers.postgres_backup import restore as restore_dump
from libs.servers.postgres_server import note_backup
from services.cli.render.described import show
from services.cli.shell.database import database_dsn
from services.cli.shell.options import JsonOption, group
from services.cli.shell.problem import CliProblem, ExitCode, WrongUsage
from services.cli.shell.running import asking, load_settings
from services.cli.shell.terminal import aside
from services.launcher import servers_of

app = group()


class Migrated(BaseModel):
    """One migration that was run now."""

    version: int
    name: str


class BackedUp(BaseModel):
    """A dump that was written or restored."""

    file: Path
    size_bytes: int


@app.command()
def migrate(json: JsonOption = False) -> None:
    """Update the tables to this version; a second run changes nothing.

    `deskbus up` does this too. Use this command for your own Postgres, before an upgrade.
    """
    dsn = database_dsn(load_settings(), OWNER_ROLE)
    try:
        done = asking(run_migrations(dsn))
    except Exception as error:
        if not is_outage(error) and not isinstance(error, PostgresError):
            raise
        raise CliProblem(
            f"the migration did not run on {without_login(dsn)}: {error or type(error).__name__}",
            "check that Postgres is running, that DESKBUS_POSTGRES_DSN names its owner, and that "
            "the roles exist (deskbus_owner, deskbus_orchestrator, deskbus_execution, "
            "deskbus_console, deskbus_study)",
            ExitCode.NOT_REACHABLE if is_outage(error) else ExitCode.FAILED,
        ) from error
    show(
        [Migrated(version=it.version, name=it.name) for it in done],
        [f"{it.version:04} {it.name}" for it in done],
        json=json,
    )
    if not done and not json:
        aside(f"nothing to do: the database is at version {migrations()[-1].version}")


@app.command()
def backup(
    file: Annotated[Path, typer.Argument(help="A new file.")], json: JsonOption = False
) -> None:
    """Dump the whole database into one file with pg_dump; the desk may keep running."""
    settings = load_settings()
    dsn = database_dsn(settings, OWNER_ROLE)
    asking(dump(find_postgres_bindir(settings.postgres.bindir), dsn, file))
    note_backup(settings.data_dir, file)
    _tell(file, "written", json)


@app.command()
def restore(
    file: Annotated[Path, typer.Argument(help="A file from `deskbus db backup`.")],
    json: JsonOption = False,
) -> None:
    """Restore a dump into a new, empty database, and prepare it for a desk.

    Without your own servers it creates embedded ones in DESKBUS_DATA_DIR; no desk may run there.
    """
    _require_dump(file)
    asking(_restore(load_settings(), file))
    _tell(file, "restored; `deskbus up` starts the desk on it", json)


@app.command()
def retain(
    months: Annotated[
        int, typer.Option(min=1, max=1_200, help="Full months to keep before the current one.")
    ],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what would be deleted.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Delete the journal and events of older months in which all cycles have ended.

    It also deletes trained models that no kept month and no strategy that passed its gates needs.
    Cycles, operations and the ledger stay. To keep a copy, run `deskbus export` first.
    """
    dsn = database_dsn(load_settings(), OWNER_ROLE)
    outcomes = asking(drop_months(dsn, months, dry_run=dry_run))
    models = asking(retain_models(dsn, months, dry_run=dry_run))
    if not dry_run:
        asking(retain_looks(dsn, months))
    count = amounts.count(models.models, "trained model")
    months_shown = view.table(
        ("Month", "What", "Cycles", "Bytes", Column("Why", wraps=True)),
        (
            (
                f"{it.month:%Y-%m}",
                it.verdict,
                view.count(it.cycles),
                view.count(it.size_bytes),
                it.reason,
            )
            for it in outcomes
        ),
        empty=NoRows("No months to drop."),
    )
    freed = Text(f"{models.verdict}: {count}, {models.size_bytes:,} bytes", None)
    show([*outcomes, models], [months_shown, freed], json=json)


def _require_dump(file: Path) -> None:
    """Before servers are started for it."""
    try:
        with file.open("rb") as dump_file:
            is_dump = dump_file.read(len(DUMP_MAGIC)) == DUMP_MAGIC
        why = "" if is_dump else f"{file} is not a database dump"
    except OSError as error:
        why = f"{file} cannot be read: {error.strerror}"
    if why:
        raise WrongUsage(why, "name a file that `deskbus db backup FILE` wrote")


async def _restore(settings: Settings, file: Path) -> None:
    async with servers_of(settings) as placed:
        dsn = dsn_for(placed.postgres_address, OWNER_ROLE, placed.secrets_path)
        async with open_pool(dsn, size_max=1) as pool:
            if await pool.fetchval("select to_regclass('cycles') is not null"):
                raise CliProblem(
                    f"the database at {without_login(dsn)} already has a desk's tables",
                    "restore into a new database; with embedded servers, name a new folder with "
                    "DESKBUS_DATA_DIR",
                )
        await restore_dump(find_postgres_bindir(settings.postgres.bindir), dsn, file)
        await run_migrations(dsn)


def _tell(file: Path, what: str, json: bool) -> None:
    size = file.stat().st_size
    line = f"{file}: {size:,} bytes {what}"
    show([BackedUp(file=file, size_bytes=size)], [line], json=json)
