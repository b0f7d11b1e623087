"""`deskbus dlq`: messages that could not be used."""

from collections.abc import Iterable
from typing import Annotated

import typer

from contracts.message import PAGE_MAX
from contracts.subjects.upkeep import DEAD_LETTERS, DISCARD_LETTER, RETRY_LETTER
from contracts.upkeep import DeadLetter, DeadLettersQuery, DiscardLetter, LetterAnswer, RetryLetter
from libs.facts import amounts
from libs.report import letters
from libs.report.tones import Tone
from libs.report.view import Text
from services.cli.render.described import show
from services.cli.shell.invalid import typed
from services.cli.shell.list_options import tell_limit
from services.cli.shell.options import JsonOption, group
from services.cli.shell.problem import NoSuchThing, refusal
from services.cli.shell.running import ask
from services.cli.shell.terminal import aside

app = group()


@app.callback()
def dlq() -> None:
    """Messages that could not be processed, kept with the reason. They block nothing."""


@app.command("list")
def list_letters(
    limit: Annotated[int, typer.Option(min=1, max=PAGE_MAX, help="How many to show.")] = 20,
    json: JsonOption = False,
) -> None:
    """List dead letters, newest first."""
    query = DeadLettersQuery(limit=min(limit + 1, PAGE_MAX))
    found = ask(DEAD_LETTERS, query).letters
    show(found[:limit], [letters.listed(found[:limit])], json=json)
    if len(found) > limit or len(found) == PAGE_MAX:
        tell_limit(min(limit, len(found)), "discard or retry these to see older ones")


@app.command("show")
def show_letter(
    number: Annotated[int, typer.Argument(min=1, help="The letter's number.")],
    json: JsonOption = False,
) -> None:
    """Show one dead letter with its body."""
    found = ask(DEAD_LETTERS, DeadLettersQuery(sequence=number)).letters
    if not found:
        raise NoSuchThing(f"dead letter {number} does not exist", "see `deskbus dlq list`")
    show(found, _letter(found[0]), json=json)


@app.command("retry")
def retry_letter(
    number: Annotated[int, typer.Argument(min=1, help="The letter's number.")],
    json: JsonOption = False,
) -> None:
    """Send a dead letter's command again, if its operation is still open.

    The letter stays until you discard it. If the command cannot be sent again, it says what to do.
    """
    _tell(ask(RETRY_LETTER, RetryLetter(sequence=number)), json=json)


@app.command("discard")
def discard_letter(
    number: Annotated[int, typer.Argument(min=1, help="The letter's number.")],
    reason: Annotated[str, typer.Option(help="Reason, kept on record as an event.")] = "",
    json: JsonOption = False,
) -> None:
    """Delete a dead letter. The record keeps who did it; the operation does not change."""
    request = typed("request", DiscardLetter, sequence=number, reason=reason)
    _tell(ask(DISCARD_LETTER, request), json=json)


def _tell(answer: LetterAnswer, *, json: bool) -> None:
    if answer.outcome == "rejected":
        raise refusal(answer.code, f"{answer.message} ({answer.code})")
    show([answer], [Text(answer.message, None)], json=json)
    if answer.cycle_id is not None and not json:
        aside(f"deskbus operations tree {answer.cycle_id}")


def _letter(of: DeadLetter) -> Iterable[Text]:
    yield Text(f"{of.sequence} {of.subject}", None)
    yield Text(f"{of.at.astimezone():%Y-%m-%d %H:%M:%S} · {of.size_bytes:,} bytes")
    yield Text(f"{of.failure.code}: {amounts.cut(of.failure.message, 2_000)}", Tone.BAD)
    yield Text(of.body if of.body is not None else "(the body is no longer in the command stream)")
