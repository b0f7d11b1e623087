"""`deskbus resume`: end a halt."""

from typing import Annotated

import typer

from contracts.subjects.halts import RESUME
from services.cli.render.halts import show
from services.cli.shell.options import JsonOption, group
from services.cli.shell.terminal import emit, err
from services.cli.trading.halt import switch

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
    """End the halt of all accounts, or with --account that of one; shows what still stands.

    Each halt ends by itself: resuming all accounts leaves the halts of single ones standing.
    """
    answer = switch(RESUME, account, reason)
    if json:
        emit([answer])
        return
    if not answer.changed:
        whose = account or "all accounts"
        err().print(f"no halt on {whose}; nothing changed", style="dim")
    show(answer.halts)
