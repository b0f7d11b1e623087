"""`deskbus halt`: the kill switch. (`deskbus resume` is in resume.py.)"""

from collections.abc import Sequence
from typing import Annotated

import typer
from pydantic import ValidationError
from rich.text import Text

from contracts.halt import Halt, HaltAnswer, Halts, HaltsQuery, HaltTrading, ResumeTrading
from contracts.subjects import HALT, HALTS, Subject
from libs.facts import amounts
from services.cli.commands import JsonOption, group
from services.cli.problem import ExitCode, Problem
from services.cli.request import invalid
from services.cli.running import asking, desk_client, load_settings
from services.cli.terminal import emit, err, out

AccountOption = Annotated[
    str | None, typer.Option(help="One account; without it all of them, also later ones.")
]
ReasonOption = Annotated[str, typer.Option(help="Kept on record and shown with every refusal.")]

app = group()


@app.command()
def halt(
    account: AccountOption = None,
    reason: ReasonOption = "",
    status: Annotated[bool, typer.Option("--status", help="Only show what is halted.")] = False,
    json: JsonOption = False,
) -> None:
    """Block buys at once, on every path, until `deskbus resume`; sales pass.

    When the command returns, no buy that was under way can be placed or filled any more. A halt
    survives restarts. Orders that were filled before stay as they are.
    """
    if status:
        _show_status(json=json)
        return
    answer = switch(HALT, HaltTrading, account, reason)
    if json:
        emit([answer])
        return
    if not answer.changed:
        err().print("it was halted before, and stays so as it was: nothing changed", style="dim")
    show(answer.halts)


def switch(
    row: Subject,
    request: type[HaltTrading | ResumeTrading],
    account: str | None,
    reason: str,
) -> HaltAnswer:
    """Send the request. Raises `Problem` for what is no account's name."""
    settings = load_settings()
    try:
        wish = request(account=account, reason=reason)
    except ValidationError as error:
        if account is not None and any(e["loc"] == ("account",) for e in error.errors()):
            raise Problem(
                ExitCode.USAGE,
                f"--account {account!r} is no account's name",
                "a name is a lowercase letter, then letters, digits, - and _: deskbus portfolio",
            ) from None
        raise invalid("halt", error) from None

    async def work() -> HaltAnswer:
        async with desk_client(settings) as client:
            answer: HaltAnswer = await client.ask(row, wish)
            return answer

    return asking(work())


def _show_status(*, json: bool) -> None:
    settings = load_settings()

    async def work() -> Halts:
        async with desk_client(settings) as client:
            answer: Halts = await client.ask(HALTS, HaltsQuery())
            return answer

    halts = asking(work())
    if json:
        emit([halts])
    else:
        show(halts.halts)


def show(halts: Sequence[Halt]) -> None:
    """The halts that stand, one a line, each with what ends it."""
    if not halts:
        out().print("no halt: buys are free", style="green")
    for each in halts:
        out().print(Text(told(each), style="bold yellow"), soft_wrap=True)
        out().print(Text(f"  → {ending(each)}", style="dim"), soft_wrap=True)


def told(each: Halt) -> str:
    """`HALTED main since ...`, for people."""
    whose = each.account or "every account"
    since = f"{each.since:%Y-%m-%d %H:%M:%S} UTC"
    because = f": {amounts.cut(each.reason, 400)}" if each.reason else ""
    return f"HALTED {whose} since {since} by {each.by}{because}"


def ending(each: Halt) -> str:
    """What ends it."""
    return "deskbus resume" + (f" --account {each.account}" if each.account else "")
