"""`deskbus proposer`: other people's programs that may propose trades, and nothing else."""

from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Annotated

import typer
from pydantic import BaseModel

from contracts.cycle import STUDY_ACCOUNTS
from libs.keys.credentials import ensure_token
from libs.report import view
from libs.runtime.proposers import (
    HTTP_TOKEN_FILE,
    PER_HOUR,
    SALES_MAX,
    SOLD_PCT_MAX,
    Proposer,
    ProposerRefused,
    Proposers,
    ProposersUnreadable,
    new_token,
)
from libs.runtime.settings import Settings
from services.cli.render.described import show
from services.cli.shell.invalid import typed, writing
from services.cli.shell.options import JsonOption, group
from services.cli.shell.problem import CliProblem, ExitCode, NoSuchThing, WrongUsage
from services.cli.shell.running import find_desk, load_settings
from services.cli.shell.terminal import aside, emit, put

app = group()

YOU = "an agent with a shell under your user has your rights: it can read your files and keys"


class ProposerAdded(BaseModel):
    """A new proposer with its token, which is shown this once."""

    name: str
    account: str
    token: str
    approval_required: bool


class ProposerShown(BaseModel):
    """A proposer, without its token's hash."""

    name: str
    account: str
    approval_required: bool
    per_hour_max: int
    sales_max: int
    sold_pct_max: Decimal
    added_at: datetime
    revoked_at: datetime | None


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

    Stop the desk first: NATS reads new keys when it starts. After that, HTTP needs a token on this
    machine too.
    """
    settings = load_settings()
    _require_stopped(settings)
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
        sold_pct_max=_percent(sold_pct),
    )
    owner = settings.secrets_path / HTTP_TOKEN_FILE
    with writing(known.path, "make the secrets directory writable for this user"):
        ensure_token(owner)
        try:
            known.add(added)
        except ProposerRefused as error:
            raise WrongUsage(error.message) from error
        except ProposersUnreadable as error:
            raise CliProblem(error.message) from error
    answer = ProposerAdded(name=name, account=account, token=token, approval_required=approval)
    if json:
        emit([answer])
        return
    put(token)
    aside("it is shown only once; give it to the program as DESKBUS_MCP_PROPOSER_TOKEN", "")
    if settings.nats.url is None:
        aside("next: `deskbus up`; then `deskbus mcp --propose`, or HTTP at /api/v1/proposals", "")
    else:
        aside(
            f"next: `deskbus secrets init {settings.secrets_path}`, and start NATS, the "
            "orchestrator and the console again",
            "",
        )
    if settings.http.token is None and settings.http.token_file is None:
        aside(f"your token for HTTP and the console is in {owner}", "")
    if not approval:
        aside("its proposals need no approval: only the rules limit them", "yellow")
    aside(YOU, "yellow")


@app.command("list")
def list_proposers(json: JsonOption = False) -> None:
    """List proposers and their limits, including revoked ones."""
    try:
        known = Proposers(load_settings().secrets_path).all()
    except ProposersUnreadable as error:
        raise CliProblem(error.message) from error
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

    Its token and its key no longer work.
    """
    settings = load_settings()
    known = Proposers(settings.secrets_path)
    with writing(known.path, "make the secrets directory writable for this user"):
        try:
            revoked = known.revoke(name, datetime.now(UTC))
        except ProposerRefused as error:
            raise NoSuchThing(error.message, "see `deskbus proposer list`") from error
        except ProposersUnreadable as error:
            raise CliProblem(error.message) from error
    if json:
        emit([ProposerShown.model_validate(revoked.model_dump())])
    else:
        aside(f"{name} is revoked; `deskbus approvals list` shows its waiting proposals")
        if settings.nats.url is not None:
            old = "restart the orchestrator and the console: a container keeps the old file"
            aside(f"{old} of proposers", "yellow")


def _percent(text: str) -> Decimal:
    try:
        return Decimal(text.removesuffix("%"))
    except InvalidOperation as error:
        raise WrongUsage(f"--sold-pct {text!r} is not a percentage", "write 25") from error


def _require_stopped(settings: Settings) -> None:
    """Raise `CliProblem` where a desk runs here: it would let anybody in without a token."""
    if settings.nats.url is not None:
        return
    try:
        find_desk(settings)
    except CliProblem:
        return
    raise CliProblem(
        "the desk is running, and NATS reads new keys only at its start",
        "`deskbus down`, then this command, then `deskbus up`",
        ExitCode.REJECTED,
    )
