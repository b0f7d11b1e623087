"""Where the desk's Postgres is, for the commands that read or keep the tables themselves."""

from libs.postgres.pool import dsn_for
from libs.runtime.settings import Settings
from services.cli.shell.problem import CliProblem, ExitCode
from services.cli.shell.running import find_desk


def database_dsn(settings: Settings, role: str) -> str:
    """The address of Postgres with the login of `role`. Raises `CliProblem` where it is not
    known."""
    if settings.postgres.dsn is not None:
        return dsn_for(settings.postgres_address, role, settings.secrets_path)
    desk = find_desk(settings)
    if desk.postgres_dsn is None:
        raise CliProblem(
            "the address of Postgres is unknown here",
            "set DESKBUS_POSTGRES_DSN, or start the desk with `deskbus up`. Postgres in "
            "containers is reachable only from inside: see docs/deployment.md for an export, "
            "docs/backup.md for a dump, and `docker compose run --rm migrations` migrates",
            ExitCode.NOT_REACHABLE,
        )
    return dsn_for(desk.postgres_dsn, role, desk.secrets_dir)
