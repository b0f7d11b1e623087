"""`deskbus dlq`: messages that could not be used."""

from typing import Annotated

import typer
from rich.text import Text

from contracts.query import DeadLetter, DeadLettersPage, DeadLettersQuery
from contracts.subjects import DEAD_LETTERS
from libs.runtime.settings import Settings
from services.cli import amounts
from services.cli.commands import JsonOption, group
from services.cli.problem import ExitCode, Problem
from services.cli.running import asking, desk_client, load_settings
from services.cli.terminal import emit, err, out, table, write

app = group()


@app.callback()
def dlq() -> None:
    """Messages that could not be used: kept with the reason, blocking nothing."""


@app.command("list")
def list_letters(
    limit: Annotated[int, typer.Option(min=1, max=200, help="How many, newest first.")] = 20,
    json: JsonOption = False,
) -> None:
    """List dead letters, the newest first."""
    letters = asking(_ask(load_settings(), DeadLettersQuery(limit=limit)))
    if json:
        emit(letters)
        return
    if not letters:
        err().print("no dead letters", style="dim")
        return
    made = table(("number", "right"), "at", "subject", ("bytes", "right"), "why")
    for letter in letters:
        made.add_row(
            str(letter.sequence),
            f"{letter.at.astimezone():%Y-%m-%d %H:%M:%S}",
            letter.subject,
            f"{letter.size_bytes:,}",
            Text.assemble(
                (letter.failure.code, "red"), f" {amounts.cut(letter.failure.message, 300)}"
            ),
        )
    write(made, out())


@app.command("show")
def show_letter(
    number: Annotated[int, typer.Argument(min=1, help="The letter's number.")],
    json: JsonOption = False,
) -> None:
    """Show one dead letter with its body."""
    letters = asking(_ask(load_settings(), DeadLettersQuery(sequence=number)))
    if not letters:
        raise Problem(
            ExitCode.NOT_FOUND, f"there is no dead letter {number}", "see `deskbus dlq list`"
        )
    if json:
        emit(letters)
    else:
        _show(letters[0])


async def _ask(settings: Settings, query: DeadLettersQuery) -> tuple[DeadLetter, ...]:
    async with desk_client(settings) as client:
        page: DeadLettersPage = await client.ask(DEAD_LETTERS, query)
        return page.letters


def _show(letter: DeadLetter) -> None:
    console = out()
    console.print(Text.assemble((f"{letter.sequence} ", "bold"), letter.subject))
    console.print(Text(f"{letter.at.astimezone():%Y-%m-%d %H:%M:%S} · {letter.size_bytes:,} bytes"))
    why = amounts.cut(letter.failure.message, 2_000)
    console.print(Text.assemble((letter.failure.code, "red"), f" {why}"))
    gone = "(the body is no longer in the command stream)"
    console.print(Text(f"\n{gone if letter.body is None else amounts.plain(letter.body)}"))
