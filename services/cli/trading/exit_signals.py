"""`deskbus exit-signals`: whether positions should be sold, how much, why, and how far it is."""

import sys
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import orjson
import typer
from pydantic import ValidationError
from rich.console import Console
from rich.table import Table
from rich.text import Text

from contracts.exit_signal import (
    CheckExitSignals,
    ExitDistances,
    ExitDistancesQuery,
    ExitFormat,
    ExitOutput,
    ExitSignals,
)
from contracts.subjects.exits import EXIT_DISTANCES, EXIT_SIGNALS
from libs.facts import amounts
from services.cli.render import distances as ways
from services.cli.shell.invalid import invalid
from services.cli.shell.options import JsonOption, group
from services.cli.shell.problem import ExitCode, Problem
from services.cli.shell.running import asking, desk_client, load_settings
from services.cli.shell.terminal import emit, err, out, table, write

CHECK_TIMEOUT_S = 60.0
"""A live source may be asked for the prices of a whole basket."""
NOT_FOUND = {"not_held", "unknown_account", "unknown_ticker"}
SEVERITY_STYLES = {"error": "bold red", "warning": "yellow", "info": "cyan", "success": "green"}

app = group()


@app.callback()
def exit_signals() -> None:
    """Check open positions against the exit rules (docs/exit-signals.md)."""


@app.command()
def check(
    ticker: Annotated[str, typer.Argument(help="A ticker that the account holds.")],
    format: Annotated[  # noqa: A002 - the option's name
        ExitFormat,
        typer.Option(
            help="How much to show: a summary, everything, or the fields an agent decides by."
        ),
    ] = ExitFormat.SUMMARY,
    output: Annotated[
        ExitOutput, typer.Option(help="Also save the full result to a file and print its path.")
    ] = ExitOutput.INLINE,
    account: Annotated[str, typer.Option(help="The account.")] = "main",
    as_of: Annotated[
        str | None, typer.Option(help="A session not after the account's clock, YYYY-MM-DD.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Check one position. Nothing is ordered: `deskbus cycle request --kind exit` proposes sales.

    The prices are those known at the session's close. Exit code 3 where the account or the ticker
    is not known or nothing of it is held.
    """
    settings = load_settings()
    try:
        query = CheckExitSignals.model_validate(
            {
                "ticker": ticker.upper(),
                "account": account,
                "as_of": as_of,
                "format": format,
                "output": output,
            }
        )
    except ValidationError as error:
        raise invalid("check", error) from None

    async def work() -> ExitSignals:
        async with desk_client(settings) as client:
            return await client.ask(EXIT_SIGNALS, query, timeout_s=CHECK_TIMEOUT_S)

    answer = asking(work()).answer
    failed = answer["status"] != "success"
    if json:
        sys.stdout.buffer.write(orjson.dumps(answer) + b"\n")
        sys.stdout.buffer.flush()
    elif failed:
        _notes(answer, err())
    else:
        show(answer, out(), err())
    if failed:
        problem = refused(answer, account)
        raise typer.Exit(problem.code) if json else problem


@app.command()
def distances(
    account: Annotated[str, typer.Option(help="The account.")] = "main",
    json: JsonOption = False,
) -> None:
    """Tell how far each position is from every trigger, the nearest first; nothing is ordered.

    As of the account's own session. Exit code 3 where the account is not known.
    """
    settings = load_settings()
    try:
        query = ExitDistancesQuery(account=account)
    except ValidationError as error:
        raise invalid("name", error) from None

    async def work() -> ExitDistances:
        async with desk_client(settings) as client:
            return await client.ask(EXIT_DISTANCES, query, timeout_s=CHECK_TIMEOUT_S)

    view = asking(work())
    if json:
        emit([view])
    else:
        ways.show(view, out())


def refused(answer: Mapping[str, Any], account: str) -> Problem:
    """The problem that a check which could not be made is, with the command that helps."""
    code = str(answer.get("error_code"))
    snapshot = answer.get("snapshot", answer)
    why = answer.get("error") or snapshot.get("error") or snapshot.get("verdict")
    hint = f"`deskbus portfolio {account}` lists the positions"
    if code == "unknown_account":
        hint = "`deskbus accounts` lists the accounts"
    exit_code = ExitCode.NOT_FOUND if code in NOT_FOUND else ExitCode.FAILED
    return Problem(exit_code, str(why), hint if code in NOT_FOUND else "")


def show(answer: Mapping[str, Any], data: Console, words: Console) -> None:
    """Print a check that succeeded, of any format, for people."""
    snapshot = answer.get("snapshot", answer)
    assessment = snapshot.get("overall_assessment")
    verdict = snapshot.get("verdict") or f"{snapshot['ticker']}: {assessment}"
    data.print(Text(str(verdict), style="bold"), soft_wrap=True)
    for flag in answer.get("flags", ()):
        style = SEVERITY_STYLES[flag["severity"]]
        data.print(Text(f"  {flag['severity']:<8} {flag['message']}", style=style))
    if snapshot.get("signals"):
        data.print()
        write(_signals(snapshot["signals"]), data)
    if snapshot.get("recommended_actions"):
        data.print()
        write(_actions(snapshot["recommended_actions"], _stop(snapshot)), data)
    elif stop := _stop(snapshot):
        data.print(Text(f"  then a stop on what remains at {stop}"))
    if snapshot.get("not_sold"):
        data.print(Text(f"\nnothing is proposed: {snapshot['not_sold']}", style="yellow"))
    sizing = snapshot.get("sizing") or {}
    if sizing.get("no_stop"):
        data.print(Text(f"\nno stop: {sizing['no_stop']}", style="yellow"))
    _notes(answer, words)


def _stop(answer: Mapping[str, Any]) -> str:
    """The price of the stop on what remains, `763.81 GBX`; empty where there is none."""
    price = {"amount": answer.get("stop_price"), "currency": answer.get("stop_currency")}
    return amounts.recorded(price) or ""


def _notes(answer: Mapping[str, Any], words: Console) -> None:
    """Warnings, and the file that the answer is kept in, on stderr."""
    for warning in answer.get("warnings", ()):
        words.print(Text(str(warning), style="yellow"), soft_wrap=True)
    if answer.get("file_path"):
        words.print(Text(f"saved as {answer['file_path']}", style="dim"), soft_wrap=True)
    if answer.get("file_error"):
        words.print(Text(str(answer["file_error"]), style="red"), soft_wrap=True)


def _signals(signals: Sequence[Mapping[str, Any]]) -> Table:
    grid = table("rule", "kind", "state", ("severity", "right"), "why", spare=("kind",))
    for signal in signals:
        failed = signal["status"] != "ok"
        state = "failed" if failed else "triggered" if signal["triggered"] else "quiet"
        style = "red" if failed else "yellow" if signal["triggered"] else "dim"
        grid.add_row(
            Text(signal["rule_name"], style="bold"),
            "primary" if signal["is_primary"] else "secondary",
            Text(state, style=style),
            f"{signal['severity']:.2f}",
            signal.get("detail", ""),
        )
    return grid


def _actions(actions: Sequence[Mapping[str, Any]], stop: str) -> Table:
    """The stop's price is in the action of a full answer, and beside those of an agent's."""
    grid = table("proposed", ("shares", "right"), "ticker", ("at", "right"), "why")
    for action in actions:
        at_market = action["order_type"] == "market"
        price = "the open" if at_market else _stop(action) or stop or amounts.UNKNOWN
        grid.add_row(
            Text(action["action"], style="red"),
            f"{action['quantity']:,}",
            action["ticker"],
            price,
            action.get("reason", ""),
        )
    return grid
