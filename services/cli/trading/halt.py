"""`deskbus halt`: the kill switch. (`deskbus resume` is in resume.py.)"""

from collections.abc import Iterable, Sequence
from typing import Annotated

import typer

from contracts.halt import Halt, HaltAnswer, HaltsQuery, HaltTrading
from contracts.subjects.halts import HALT, HALTS
from libs.report.account import halted, remedy
from libs.report.tones import Tone
from libs.report.view import Text
from services.cli.render.described import show
from services.cli.shell.invalid import typed
from services.cli.shell.options import JsonOption, group
from services.cli.shell.running import ask
from services.cli.shell.terminal import aside

ASK_TIMEOUT_S = 30.0
"""Execution waits for buys that are about to commit, and some seconds for a broker's cancels."""

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
    """Block all buys at once, until `deskbus resume`. Sales are still possible.

    After the command returns, the simulated broker places and fills no more buys, even those
    already under way. For a bound account, nothing more is sent and buys waiting at the broker are
    cancelled: it shows how many cancels are confirmed and how many pending. A halt survives
    restarts.
    """
    if status:
        standing = ask(HALTS, HaltsQuery())
        show([standing], screen(standing.halts), json=json)
        return
    request = typed("halt", HaltTrading, account=account, reason=reason)
    answer = ask(HALT, request, timeout_s=ASK_TIMEOUT_S)
    if not answer.changed and not json:
        aside("already halted; nothing changed")
    show([answer], (*screen(answer.halts), *_at_broker(answer)), json=json)


def _at_broker(answer: HaltAnswer) -> Iterable[Text]:
    """What is known of the buys that were at a broker. Never more than that."""
    if answer.cancelled or answer.pending:
        told = f"buys at the broker: {answer.cancelled} confirmed, {answer.pending} pending"
        yield Text(told, Tone.WARN if answer.pending else Tone.GOOD)
    if answer.pending:
        yield Text("  → a pending one may still be filled: deskbus orders list --open")


def screen(halts: Sequence[Halt]) -> Iterable[Text]:
    """The halts that stand, each with what ends it."""
    if not halts:
        yield Text("no halt: buys are allowed", Tone.GOOD)
    for one in halts:
        yield Text(halted(one), Tone.WARN)
        yield Text(f"  → {remedy(one)}")
