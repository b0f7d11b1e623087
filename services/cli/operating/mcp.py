"""`deskbus mcp`: the desk for models of other programs, over standard input or HTTP."""

import asyncio
import secrets
from pathlib import Path
from typing import Annotated

import typer

from libs.bus.client import DeskNotReachable
from libs.keys.credentials import ensure_token
from libs.runtime.extras import require
from libs.runtime.http_address import HttpAddress, http_certificate
from libs.runtime.ports import choose_port
from libs.runtime.proposers import Proposers
from libs.runtime.settings import Settings
from libs.telemetry.logging import configure_logging
from services import launcher
from services.cli.shell.invalid import writing
from services.cli.shell.options import group
from services.cli.shell.problem import CliProblem, WrongUsage
from services.cli.shell.running import as_the_desk, find_desk, load_settings, until_stopped
from services.cli.shell.terminal import aside

PORT_DEFAULT = 8765
TOKEN_VARIABLE = "DESKBUS_MCP_PROPOSER_TOKEN"  # noqa: S105 - its name, not what is in it
TOKEN_FILE = "mcp.token"  # noqa: S105 - its name, not what is in it

app = group()


@app.command()
def mcp(
    http: Annotated[
        bool,
        typer.Option("--http", help="Use streamable HTTP instead of standard input and output."),
    ] = False,
    host: Annotated[str, typer.Option(help="Address that HTTP listens on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65_535, help="Port of HTTP; 0 takes any free one.")
    ] = PORT_DEFAULT,
    allow_requests: Annotated[
        bool,
        typer.Option(
            "--allow-requests",
            help=(
                "Also offer request_cycle, run_backtest and run_study, so that models can start "
                "them."
            ),
        ),
    ] = False,
    propose: Annotated[
        bool,
        typer.Option(
            "--propose",
            help="Offer only the proposers' tools. The token is DESKBUS_MCP_PROPOSER_TOKEN, or "
            "over HTTP each request's.",
        ),
    ] = False,
) -> None:
    """Serve the desk to AI assistants by MCP; docs/mcp.md explains how to connect.

    They can read market data, accounts, exit signals, cycles, decisions, operations, strategies and
    studies. They can never approve. You may start the desk later: each call looks for it.
    """
    require("mcp", "the MCP server")
    settings = load_settings()
    asked_for = "level" in settings.log.model_fields_set
    configure_logging(settings.log.level if asked_for else "warning", settings.log.format)
    market = as_the_desk(settings)

    def where() -> tuple[str, Path]:
        try:
            desk = find_desk(settings)
        except CliProblem as problem:
            raise DeskNotReachable(f"{problem.message}; {problem.hint}") from problem
        return desk.nats_url, desk.secrets_dir

    if propose and allow_requests:
        raise WrongUsage("--propose offers only proposals", "leave --allow-requests out")
    address = None
    if http:
        address = _address(settings, host, port, propose=propose)
    token = _proposer_token(settings, http=http) if propose else None

    def ready() -> None:
        if address is not None:
            aside(f"MCP at {address.url}/mcp", "")
            whose = "each proposer's own" if propose else str(_token_path(settings))
            aside(f"  token  {whose}", "")

    serving = launcher.mcp(
        market, where, address, may_request=allow_requests, ready=ready, proposer_token=token
    )
    if asyncio.run(until_stopped(serving)):
        aside("stopped")


def _address(settings: Settings, host: str, port: int, *, propose: bool) -> HttpAddress:
    if propose:
        # Nobody knows it: proposers alone come here, with tokens of their own.
        token = secrets.token_urlsafe()
    else:
        path = _token_path(settings)
        with writing(path, "make its folder writable for this user, or set DESKBUS_MCP_TOKEN_FILE"):
            token = ensure_token(path)
    port = port or choose_port(None, set())
    return HttpAddress(host, port, token, http_certificate(settings))


def _proposer_token(settings: Settings, *, http: bool) -> str:
    """The token of the proposer on standard input; empty where each request bears one."""
    if http:
        return ""
    given = settings.mcp.proposer_token
    token = "" if given is None else given.get_secret_value().strip()
    if Proposers(settings.secrets_path).bearing(token) is None:
        raise WrongUsage(
            f"{TOKEN_VARIABLE} is not a token of this desk's proposers",
            "`deskbus proposer add NAME --account A` makes one",
        )
    return token


def _token_path(settings: Settings) -> Path:
    return settings.mcp.token_file or settings.secrets_path / TOKEN_FILE
