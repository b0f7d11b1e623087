"""`deskbus secrets`: keys, passwords and certificates for servers of your own."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import BaseModel

from libs.facts import amounts
from libs.keys.compose_files import write_compose_files
from services.cli.shell.options import JsonOption, group
from services.cli.shell.running import load_settings
from services.cli.shell.terminal import aside, emit, put
from services.provisioner.secrets import kept_place, provision_secrets

app = group()

PORT_MAX = 65_535


class SecretsMade(BaseModel):
    """The files that `secrets init` left: their names, never their contents."""

    directory: Path
    made: tuple[str, ...]
    kept: int
    expires: dict[str, datetime]
    compose: tuple[str, ...]
    """Files and folders made beside compose.yaml."""


@app.callback()
def secrets() -> None:
    """Keys, passwords and certificates for servers of your own."""


@app.command()
def init(
    directory: Annotated[
        Path | None,
        typer.Argument(
            help="A new folder, or one that this command created; by default DESKBUS_SECRETS_DIR."
        ),
    ] = None,
    tls: Annotated[
        bool,
        typer.Option("--tls", help="Also create certificates for NATS, Postgres and HTTP."),
    ] = False,
    host: Annotated[
        list[str] | None,
        typer.Option(
            help="A host name or address of the servers, for their certificates; may be repeated."
        ),
    ] = None,
    listen: Annotated[str | None, typer.Option(help="Address that NATS listens on.")] = None,
    port: Annotated[
        int | None, typer.Option(min=1, max=PORT_MAX, help="NATS' port for clients.")
    ] = None,
    monitor_port: Annotated[
        int | None, typer.Option(min=1, max=PORT_MAX, help="NATS' port for monitoring.")
    ] = None,
    store_dir: Annotated[Path | None, typer.Option(help="Directory of NATS' streams.")] = None,
    tls_dir: Annotated[
        Path | None, typer.Option(help="Directory where NATS finds nats.pem, nats.key and ca.pem.")
    ] = None,
    nats_node: Annotated[
        list[str] | None,
        typer.Option(
            help="A node of a NATS cluster, HOST:PORT; repeat it for each node. Needs --tls."
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Create all missing secrets and the servers' files nats.conf and roles.sql.

    In a clone, for deploy/secrets, it also creates what compose.yaml needs: .env with the owner of
    the secrets, deskbus.toml for settings, and the folders that containers write to.

    It keeps existing files and shows no secret. Run it again after an upgrade: it updates the
    permissions to the new version and keeps the addresses in nats.conf, unless you give an option.
    To replace a secret, delete its file first.
    """
    folder = directory or load_settings().secrets_path
    place: dict[str, Any] = {
        "listen": listen,
        "port": port,
        "monitor_port": monitor_port,
        "store_dir": store_dir,
        "tls_dir": tls_dir,
        "nodes": tuple(nats_node) if nats_node else None,
    }
    places = {name: value for name, value in place.items() if value is not None}
    kept = replace(kept_place(folder), **places)
    done = provision_secrets(folder, kept, tls=tls, hosts=host or ())
    answer = SecretsMade(
        directory=folder,
        made=done.made,
        kept=done.kept,
        expires=dict(done.expires),
        compose=write_compose_files(Path.cwd(), folder),
    )
    if json:
        emit([answer])
    else:
        _tell(answer)


def _tell(answer: SecretsMade) -> None:
    for name in answer.made:
        put(name)
    aside(
        f"{answer.directory}: {amounts.count(len(answer.made), 'secret')} made, {answer.kept} "
        "kept; nats.conf and roles.sql written",
        "",
    )
    if answer.compose:
        aside(f"for compose.yaml: {', '.join(answer.compose)} written", "")
    for name, at in answer.expires.items():
        days = (at - datetime.now(UTC)).days
        aside(f"the certificate of {name} is valid until {at:%Y-%m-%d}, {days} days")
    files = "--file compose.yaml --file deploy/compose.tls.yaml " if answer.expires else ""
    aside(
        f"next: `docker compose {files}up --detach --wait`, or start NATS with nats.conf, run "
        "roles.sql as Postgres' superuser, and set DESKBUS_NATS_URL, DESKBUS_POSTGRES_DSN and "
        f"DESKBUS_SECRETS_DIR={answer.directory}; see docs/deployment.md, and docs/kubernetes.md "
        "for a cluster",
        "",
    )
