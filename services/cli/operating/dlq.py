"""`deskbus dlq`: messages that could not be used."""

from collections.abc import Sequence
from typing import Annotated

import typer
from rich.text import Text

from contracts.message import PAGE_MAX
from contracts.subjects.subject import Asked, Subject
from contracts.subjects.upkeep import DEAD_LETTERS, DISCARD_LETTER, RETRY_LETTER
from contracts.upkeep import DeadLetter, DeadLettersQuery, DiscardLetter, LetterAnswer, RetryLetter
from libs.facts import amounts
from libs.runtime.settings import Settings
from services.cli.shell.list_options import tell_limit
from services.cli.shell.options import JsonOption, group
from services.cli.shell.problem import ExitCode, Problem
from services.cli.shell.running import asking, desk_client, load_settings
from services.cli.shell.terminal import Sheet, emit, err, out, table, write

app = group()

REASON_CHARS_MAX = 400


@app.callback()
def dlq() -> None:
    """Messages that could not be used: kept with the reason, blocking nothing."""


@app.command("list")
def list_letters(
    limit: Annotated[int, typer.Option(min=1, max=PAGE_MAX, help="How many, newest first.")] = 20,
    json: JsonOption = False,
) -> None:
    """List dead letters, the newest first."""
    query = DeadLettersQuery(limit=min(limit + 1, PAGE_MAX))
    letters = asking(_ask(load_settings(), query))
    shown = letters[:limit]
    if json:
        emit(shown)
    elif shown:
        write(_grid(shown), out())
    else:
        err().print("no dead letters", style="dim")
    if len(letters) > limit or len(letters) == PAGE_MAX:
        tell_limit(len(shown), PAGE_MAX, "discard or retry these to see older ones")


def _grid(letters: Sequence[DeadLetter]) -> Sheet:
    grid = table(("number", "right"), "at", "subject", ("bytes", "right"), "why")
    for letter in letters:
        grid.add_row(
            str(letter.sequence),
            f"{letter.at.astimezone():%Y-%m-%d %H:%M:%S}",
            letter.subject,
            f"{letter.size_bytes:,}",
            Text.assemble(
                (letter.failure.code, "red"), f" {amounts.cut(letter.failure.message, 300)}"
            ),
        )
    return grid


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


@app.command("retry")
def retry_letter(
    number: Annotated[int, typer.Argument(min=1, help="The letter's number.")],
    json: JsonOption = False,
) -> None:
    """Have the command that a letter speaks of sent again, if its operation is still open.

    The letter stays until it is discarded. What cannot be sent again is told with what to do.
    """
    _tell(asking(_request(load_settings(), RETRY_LETTER, RetryLetter(sequence=number))), json)


@app.command("discard")
def discard_letter(
    number: Annotated[int, typer.Argument(min=1, help="The letter's number.")],
    reason: Annotated[str, typer.Option(help="Why; it stays on record as an event.")] = "",
    json: JsonOption = False,
) -> None:
    """Delete a letter. Who did it stays on record; its operation is not touched."""
    if len(reason) > REASON_CHARS_MAX:
        text = f"the reason has {len(reason):,} characters; the limit is {REASON_CHARS_MAX}"
        raise Problem(ExitCode.USAGE, text)
    request = DiscardLetter(sequence=number, reason=reason)
    _tell(asking(_request(load_settings(), DISCARD_LETTER, request)), json)


async def _request(
    settings: Settings, row: Subject[Asked, LetterAnswer], message: Asked
) -> LetterAnswer:
    async with desk_client(settings) as client:
        return await client.ask(row, message)


def _tell(answer: LetterAnswer, json: bool) -> None:
    if answer.outcome == "rejected":
        missing = answer.code == "not_found"
        code = ExitCode.NOT_FOUND if missing else ExitCode.REJECTED
        raise Problem(code, f"{answer.message} ({answer.code})")
    if json:
        emit([answer])
        return
    out().print(Text(answer.message))
    if answer.cycle_id is not None:
        err().print(f"deskbus operations tree {answer.cycle_id}", style="dim")


async def _ask(settings: Settings, query: DeadLettersQuery) -> tuple[DeadLetter, ...]:
    async with desk_client(settings) as client:
        page = await client.ask(DEAD_LETTERS, query)
        return page.letters


def _show(letter: DeadLetter) -> None:
    console = out()
    console.print(Text.assemble((f"{letter.sequence} ", "bold"), letter.subject))
    console.print(Text(f"{letter.at.astimezone():%Y-%m-%d %H:%M:%S} · {letter.size_bytes:,} bytes"))
    why = amounts.cut(letter.failure.message, 2_000)
    console.print(Text.assemble((letter.failure.code, "red"), f" {why}"))
    gone = "(the body is no longer in the command stream)"
    console.print(Text(f"\n{gone if letter.body is None else amounts.plain(letter.body)}"))
