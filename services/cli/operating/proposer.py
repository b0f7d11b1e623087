"""`deskbus proposer`: other people's programs that may propose trades, and nothing else."""

import asyncio
from datetime import UTC, datetime
from typing import Annotated

import typer
from pydantic import BaseModel, Field

from contracts.cycle import STUDY_ACCOUNTS
from contracts.subjects.subject import identity_of
from libs.bus.connection import BusKeyRefused, BusNotReachable, connect
from libs.keys.credentials import NATS_CONFIG, ensure_token
from libs.report import view
from libs.runtime.proposers import (
    HTTP_TOKEN_FILE,
    PER_HOUR,
    SALES_MAX,
    SOLD_PCT_MAX,
    Proposer,
    ProposerRefused,
    Proposers,
    new_token,
)
from libs.runtime.settings import Settings
from services.cli.render.described import show
from services.cli.shell.invalid import typed, writing
from services.cli.shell.options import JsonOption, group
from services.cli.shell.problem import CliProblem, ExitCode, NoSuchThing, WrongUsage
from services.cli.shell.running import RunningDesk, asking, desk_here, load_settings
from services.cli.shell.terminal import aside, emit, put

app = group()

IN_FORCE_S_MAX = 20.0
"""How long the running desk may take; it takes half a second, on a busy machine a few."""
LOOK_EVERY_S = 0.1
HANDSHAKE_S_MAX = 0.5
"""Of one try: a key that is refused is tried again until then."""
YOU = "an agent with a shell under your user has your rights: it can read your files and keys"


class ProposerAdded(BaseModel):
    """A new proposer with its token, which is shown this once."""

    name: str
    account: str
    token: str
    approval_required: bool


class ProposerShown(Proposer):
    """A proposer, without its token's hash."""

    token_sha256: str = Field(exclude=True)


@app.callback()
def proposer() -> None:
    """Programs that may propose trades for one account, under your rules and your approval."""


@app.command()
def add(
    name: Annotated[str, typer.Argument(help="Its name: letters, digits and '-'.")],
    account: Annotated[
        str, typer.Option("--account", help="Its account, the only one that it sees.")
    ],
    approval: Annotated[
        bool,
        typer.Option(
            "--approval/--no-approval", help="Require a person's approval for each proposal."
        ),
    ] = True,
    per_hour: Annotated[
        int, typer.Option(min=1, max=1_000, help="Most proposals and previews per hour, together.")
    ] = PER_HOUR,
    sales: Annotated[
        int, typer.Option(min=0, max=20, help="Most sales of one session that may wait at once.")
    ] = SALES_MAX,
    sold_pct: Annotated[
        str, typer.Option(help="Most equity that these sales may sell together, in percent.")
    ] = f"{SOLD_PCT_MAX}",
    json: JsonOption = False,
) -> None:
    """Allow a program to propose trades, and show its token once; see docs/proposals.md.

    A running desk takes it at once; with servers of your own the command says what to do. From then
    on HTTP needs a token on this machine too.
    """
    settings = load_settings()
    if account.startswith(STUDY_ACCOUNTS):
        raise WrongUsage(f"accounts that begin with {STUDY_ACCOUNTS} are reserved for studies")
    token, sha256 = new_token()
    known = Proposers(settings.secrets_path)
    added = typed(
        "proposer",
        Proposer,
        name=name,
        account=account,
        token_sha256=sha256,
        added_at=datetime.now(UTC),
        approval_required=approval,
        per_hour_max=per_hour,
        sales_max=sales,
        sold_pct_max=sold_pct.removesuffix("%"),
    )
    owner = settings.secrets_path / HTTP_TOKEN_FILE
    with writing(known.path, "make the secrets directory writable for this user"):
        ensure_token(owner)
        try:
            known.add(added)
        except ProposerRefused as error:
            raise WrongUsage(error.message) from error
    answer = ProposerAdded(name=name, account=account, token=token, approval_required=approval)
    # Before anything that may fail: nobody else has it.
    if json:
        emit([answer])
    else:
        put(token)
        aside("it is shown only once; give it to the program as DESKBUS_MCP_PROPOSER_TOKEN", "")
    next_ = _in_force(settings, name, admitted=True)
    if json:
        return
    aside(next_, "")
    if settings.http.token is None and settings.http.token_file is None:
        aside(f"your token for HTTP and the console is in {owner}", "")
    if not approval:
        aside("its proposals need no approval: only the rules limit them", "yellow")
    aside(YOU, "yellow")


@app.command("list")
def list_proposers(json: JsonOption = False) -> None:
    """List proposers and their limits, including revoked ones."""
    known = Proposers(load_settings().secrets_path).all()
    shown = [ProposerShown.model_validate(one.model_dump()) for one in known]
    listed = view.table(
        ("Proposer", "Account", "Approval", "Per hour", "Sales", "Sold %", "State"),
        (
            (
                one.name,
                one.account,
                "yes" if one.approval_required else "no",
                f"{one.per_hour_max}",
                f"{one.sales_max}",
                f"{one.sold_pct_max:f}",
                f"revoked {one.revoked_at:%Y-%m-%d}" if one.revoked_at else "may propose",
            )
            for one in shown
        ),
        empty=view.NoRows("No program may propose: `deskbus proposer add NAME --account A`."),
    )
    show(shown, [listed], json=json)


@app.command()
def revoke(
    name: Annotated[str, typer.Argument(help="The proposer's name.")], json: JsonOption = False
) -> None:
    """Revoke a proposer at once and permanently; proposals waiting for approval still wait.

    Its token and its key no longer work, and its connections are closed.
    """
    settings = load_settings()
    known = Proposers(settings.secrets_path)
    with writing(known.path, "make the secrets directory writable for this user"):
        try:
            revoked = known.revoke(name, datetime.now(UTC))
        except ProposerRefused as error:
            raise NoSuchThing(error.message, "see `deskbus proposer list`") from error
    if json:
        emit([ProposerShown.model_validate(revoked.model_dump())])
    else:
        aside(f"{name} is revoked; `deskbus approvals list` shows its waiting proposals")
    next_ = _in_force(settings, name, admitted=False)
    if not json and _has_servers_of_its_own(settings):
        aside(next_, "yellow")


def _in_force(settings: Settings, name: str, *, admitted: bool) -> str:
    """Wait until the running desk lets a proposer in, or out; the next step in words. Raises
    `CliProblem` where it does not take the change."""
    if _has_servers_of_its_own(settings):
        return (
            f"next: `deskbus secrets init {settings.secrets_path}`, then have NATS read its "
            'nats.conf again; docs/proposals.md, "Servers of your own", has the commands, also for '
            "containers"
        )
    use = "`deskbus mcp --propose`, or HTTP at /api/v1/proposals"
    desk = desk_here(settings)
    if desk is None:
        return f"next: `deskbus up`; then {use}"
    if not asking(_comes_to(desk, identity_of(name), admitted=admitted)):
        raise CliProblem(
            f"the running desk has not taken it within {IN_FORCE_S_MAX:g} s",
            "`deskbus logs` may say why; `deskbus down` and `deskbus up` take it for certain",
            ExitCode.TIMED_OUT,
        )
    return f"the running desk takes it; next: {use}"


def _has_servers_of_its_own(settings: Settings) -> bool:
    """Whether NATS is another's to set up: its address is given, or `secrets init` was here."""
    return settings.nats.url is not None or (settings.secrets_path / NATS_CONFIG).exists()


async def _comes_to(desk: RunningDesk, identity: str, *, admitted: bool) -> bool:
    """Whether NATS comes to let the identity in, or to refuse it, within IN_FORCE_S_MAX."""
    loop = asyncio.get_running_loop()
    until = loop.time() + IN_FORCE_S_MAX
    while loop.time() < until:
        if await _is_let_in(desk, identity) == admitted:
            return True
        await asyncio.sleep(LOOK_EVERY_S)
    return False


async def _is_let_in(desk: RunningDesk, identity: str) -> bool | None:
    """Whether NATS takes the identity's key now; None where it does not say."""
    try:
        connection = await connect(
            desk.nats_url, identity, desk.secrets_dir, timeout_s=HANDSHAKE_S_MAX
        )
    except BusKeyRefused:
        return False
    except BusNotReachable:
        return None
    await connection.close()
    return True
