"""`deskbus halt`: the kill switch. (`deskbus resume` is in resume.py.)"""

from typing import Annotated

import typer
from pydantic import ValidationError

from contracts.halt import HaltAnswer, Halts, HaltsQuery
from contracts.subjects.halts import HALT, HALTS
from contracts.subjects.subject import Asked, Subject
from services.cli.render import halts
from services.cli.shell.invalid import invalid
from services.cli.shell.options import JsonOption, group
from services.cli.shell.running import asking, desk_client, load_settings
from services.cli.shell.terminal import emit, err

AccountOption = Annotated[
    str | None,
    typer.Option(help="The account to halt; by default all accounts, future ones included."),
]
ReasonOption = Annotated[str, typer.Option(help="Kept on record and shown with every refusal.")]

app = group()


@app.command()
def halt(
    account: AccountOption = None,
    reason: ReasonOption = "",
    status: Annotated[bool, typer.Option("--status", help="Only list the current halts.")] = False,
    json: JsonOption = False,
) -> None:
    """Block buys at once, on every path, until `deskbus resume`; sales pass.

    When the command returns, no buy that was under way can be placed or filled any more. A halt
    survives restarts. Orders that were filled before stay as they are.
    """
    if status:
        _show_status(json=json)
        return
    answer = switch(HALT, account, reason)
    if json:
        emit([answer])
        return
    if not answer.changed:
        err().print("already halted; nothing changed", style="dim")
    halts.show(answer.halts)


def switch(row: Subject[Asked, HaltAnswer], account: str | None, reason: str) -> HaltAnswer:
    """Send the request. Raises `Problem` for what is no account's name."""
    settings = load_settings()
    try:
        wish = row.message.model_validate({"account": account, "reason": reason})
    except ValidationError as error:
        raise invalid("halt", error) from None

    async def work() -> HaltAnswer:
        async with desk_client(settings) as client:
            return await client.ask(row, wish)

    return asking(work())


def _show_status(*, json: bool) -> None:
    settings = load_settings()

    async def work() -> Halts:
        async with desk_client(settings) as client:
            return await client.ask(HALTS, HaltsQuery())

    standing = asking(work())
    if json:
        emit([standing])
    else:
        halts.show(standing.halts)
