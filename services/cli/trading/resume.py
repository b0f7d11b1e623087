"""`deskbus resume`: end a halt."""

from typing import Annotated

import typer

from contracts.halt import ResumeTrading
from contracts.subjects.halts import RESUME
from services.cli.render.described import show
from services.cli.shell.invalid import typed
from services.cli.shell.options import JsonOption, group
from services.cli.shell.running import ask
from services.cli.shell.terminal import aside
from services.cli.trading.halt import screen

AccountOption = Annotated[
    str | None,
    typer.Option(help="End this account's halt; by default the halt of all accounts."),
]
ReasonOption = Annotated[str, typer.Option(help="Why buys are allowed again; kept on record.")]

app = group()


@app.command()
def resume(
    account: AccountOption = None, reason: ReasonOption = "", json: JsonOption = False
) -> None:
    """End the halt of all accounts, or with --account of one; shows the remaining halts.

    Halts are separate: resuming all accounts does not end the halts of single accounts.
    """
    answer = ask(RESUME, typed("halt", ResumeTrading, account=account, reason=reason))
    if not answer.changed and not json:
        whose = account or "all accounts"
        aside(f"no halt on {whose}; nothing changed")
    show([answer], screen(answer.halts), json=json)
