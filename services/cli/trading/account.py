"""`deskbus account`: bind a new account to a broker's paper account, and reconcile both books."""

import shlex
from collections.abc import Iterable
from typing import Annotated

import typer

from contracts.subjects.venue import BIND, RECONCILE
from contracts.venue import BindAccount, Binding, LookVerdict, LookView, ReconcileAccount
from libs.facts import amounts
from libs.report import view
from libs.report.tones import Tone
from libs.report.view import Table, Text
from services.cli.render.described import Shown, show
from services.cli.shell.confirming import HASH_CHARS, HashOption, whole_hash
from services.cli.shell.invalid import typed
from services.cli.shell.options import JsonOption, group
from services.cli.shell.problem import CliProblem, ExitCode
from services.cli.shell.running import ask

ASK_TIMEOUT_S = 120.0
"""All books are read, twice where they differ, ten seconds apart."""
TONES = {
    LookVerdict.AGREES: Tone.GOOD,
    LookVerdict.DIFFERS: Tone.BAD,
    LookVerdict.UNKNOWN: Tone.WARN,
}

app = group()

NameArgument = Annotated[str, typer.Argument(help="The desk's account.")]


@app.command()
def bind(
    name: Annotated[str, typer.Argument(help="Name of the new account.")],
    number: Annotated[
        str | None,
        typer.Option(
            help="The broker's account number as shown, to confirm. Binding is permanent."
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Open a new account, bound permanently to the paper account of the trading key.

    Without --number it only shows what would be bound. The broker's account must be new, without
    positions or orders; binding sets it to long only and cash only. The desk's account starts with
    its cash.
    """
    request = typed("bind", BindAccount, account=name, number=number)
    shown = ask(BIND, request, timeout_s=ASK_TIMEOUT_S)
    show([shown], _binding(shown), json=json)
    if shown.findings:
        raise CliProblem(
            "the broker's account cannot be bound in its current state", code=ExitCode.REJECTED
        )


def _binding(shown: Binding) -> Iterable[Shown]:
    yield Text(f"{shown.venue} {shown.number}, {shown.status}, {amounts.money(shown.cash)} in cash")
    for finding in shown.findings:
        yield Text(f"  {finding}", Tone.BAD)
    for change in shown.to_set:
        yield Text(f"  binding ends: {change}")
    if shown.bound:
        was = "is bound to it now" if shown.changed else "was bound to it before; nothing changed"
        yield Text(f"account {shown.account} {was}", Tone.GOOD)
    elif not shown.findings:
        command = f"deskbus account bind {shown.account} --number {shown.number}"
        yield Text(f"not bound yet: {command}")


@app.command()
def reconcile(
    name: NameArgument,
    confirmed: HashOption = None,
    reason: Annotated[str, typer.Option(help="Why they differ; kept on record.")] = "",
    json: JsonOption = False,
) -> None:
    """Compare both books of a bound account now, and show the differences.

    With --hash and --reason, the desk's books take the broker's shares and cash. This trades
    nothing and does not touch orders from outside the desk.
    """
    request = typed("reconcile", ReconcileAccount, account=name, reason=reason)
    shown = ask(RECONCILE, request, timeout_s=ASK_TIMEOUT_S)
    if confirmed is not None:
        known = whole_hash(confirmed, shown.hash or "")
        request = request.model_copy(update={"confirmed": known})
        shown = ask(RECONCILE, request, timeout_s=ASK_TIMEOUT_S)
    show([shown], _books(name, shown.look), json=json)
    if json:
        return
    if shown.posted:
        typer.echo(f"account {name} took over the broker's books: {reason}")
    elif shown.hash:
        typer.echo(
            f"deskbus account reconcile {shlex.quote(name)} --hash {shown.hash[:HASH_CHARS]} "
            "--reason WHY"
        )


def _books(name: str, look: LookView) -> Iterable[Shown]:
    at = f"{look.at:%Y-%m-%d %H:%M:%S} UTC"
    words = {
        LookVerdict.AGREES: "both books agree",
        LookVerdict.DIFFERS: "the books differ: buys are blocked",
        LookVerdict.UNKNOWN: f"unknown: {look.note}",
    }
    yield Text(f"account {name} at {at}: {words[look.verdict]}", TONES[look.verdict])
    if look.differences:
        yield _differences(look)


def _differences(look: LookView) -> Table:
    return view.table(
        ("What", "About", "Desk", "Broker"),
        (
            (
                view.say(it.kind.value.replace("_", " ")),
                view.say(it.about),
                view.say(it.desk),
                view.say(it.broker),
            )
            for it in look.differences
        ),
    )
