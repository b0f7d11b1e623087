"""`deskbus db`: the database's tables."""

from pydantic import BaseModel

from libs.postgres.migrate import migrate as run_migrations
from libs.postgres.migrate import migrations
from libs.postgres.pool import OWNER_ROLE, UNAVAILABLE, PostgresError
from services.cli.commands import JsonOption, group
from services.cli.config import without_login
from services.cli.database import database_dsn
from services.cli.problem import ExitCode, Problem
from services.cli.running import asking, load_settings
from services.cli.terminal import emit, err, out

app = group()


class Migrated(BaseModel):
    """One migration that was run now."""

    version: int
    name: str


@app.callback()
def db() -> None:
    """The database's tables."""


@app.command()
def migrate(json: JsonOption = False) -> None:
    """Bring the tables to this version; run again, it changes nothing.

    `deskbus up` does it by itself; this is for a Postgres of your own, before an upgrade.
    """
    dsn = database_dsn(load_settings(), OWNER_ROLE)
    try:
        done = asking(run_migrations(dsn))
    except (*UNAVAILABLE, PostgresError) as error:
        raise Problem(
            ExitCode.NOT_REACHABLE if isinstance(error, UNAVAILABLE) else ExitCode.FAILED,
            f"the migration did not run at {without_login(dsn)}: {error or type(error).__name__}",
            "is Postgres running, does DESKBUS_POSTGRES_DSN name its owner, and are the roles made "
            "(deskbus_owner, deskbus_orchestrator, deskbus_execution, deskbus_console)?",
        ) from error
    if json:
        emit([Migrated(version=each.version, name=each.name) for each in done])
        return
    for each in done:
        out().print(f"{each.version:04} {each.name}")
    if not done:
        err().print(f"nothing to do: version {migrations()[-1].version} is there", style="dim")
