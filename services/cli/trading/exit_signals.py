"""`deskbus exit-signals`: whether positions should be sold, how much, why, and how far it is."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson
import typer
from rich.console import Console
from rich.text import Text as Line

from contracts.exit_signal import (
    CheckExitSignals,
    ExitDistancesQuery,
)
from contracts.subjects.exits import EXIT_DISTANCES, EXIT_SIGNALS
from libs.facts import amounts
from libs.report import exits, view
from libs.report.tones import Tone
from libs.report.view import Cell, Column, Part, Table, Text
from services.cli.render import described
from services.cli.render.described import head
from services.cli.shell.list_options import filters
from services.cli.shell.options import HeldArgument, JsonOption, group
from services.cli.shell.problem import CliProblem, ExitCode
from services.cli.shell.running import ask
from services.cli.shell.terminal import err

CHECK_TIMEOUT_S = 60.0
"""A live source may be asked for the prices of a whole basket."""
NOT_FOUND = {"not_held", "unknown_account", "unknown_ticker"}
SEVERITIES = {"error": Tone.BAD, "warning": Tone.WARN, "info": Tone.BUSY, "success": Tone.GOOD}

app = group()


@app.command()
@filters(CheckExitSignals, ticker=HeldArgument)
def check(query: CheckExitSignals, json: JsonOption = False) -> None:
    """Check one position. It orders nothing: `deskbus cycle request --kind exit` proposes sales.

    It uses the prices known at the session's close. Exit code 3 if the account or the ticker is
    unknown, or not held.
    """
    answer = ask(EXIT_SIGNALS, query, timeout_s=CHECK_TIMEOUT_S).answer
    failed = answer["status"] != "success"
    if json:
        sys.stdout.buffer.write(orjson.dumps(answer) + b"\n")
        sys.stdout.buffer.flush()
    elif failed:
        _notes(answer, err())
    else:
        described.show((), screen(answer), json=False)
        _notes(answer, err())
    if failed:
        problem = refused(answer, query.account)
        raise typer.Exit(problem.code) if json else problem


@app.command()
@filters(ExitDistancesQuery)
def distances(query: ExitDistancesQuery, json: JsonOption = False) -> None:
    """Show how far each position is from its triggers, nearest first. It orders nothing.

    As of the account's newest session. Exit code 3 if the account is unknown.
    """
    view = ask(EXIT_DISTANCES, query, timeout_s=CHECK_TIMEOUT_S)
    title = head(f"exit signals of {view.account}", f"as of {amounts.session(view.as_of)}")
    described.show([view], [title, exits.distances(view)], json=json)


def refused(answer: Mapping[str, Any], account: str) -> CliProblem:
    """The problem that a check which could not be made is, with the command that helps."""
    code = str(answer.get("error_code"))
    snapshot = answer.get("snapshot", answer)
    why = answer.get("error") or snapshot.get("error") or snapshot.get("verdict")
    hint = f"`deskbus portfolio {account}` lists the positions"
    if code == "unknown_account":
        hint = "`deskbus accounts` lists the accounts"
    exit_code = ExitCode.NOT_FOUND if code in NOT_FOUND else ExitCode.FAILED
    return CliProblem(str(why), hint if code in NOT_FOUND else "", exit_code)


def screen(answer: Mapping[str, Any]) -> Iterable[Part]:
    """A check that succeeded, of any format, for people."""
    snapshot = answer.get("snapshot", answer)
    verdict = snapshot.get("verdict") or f"{snapshot['ticker']}: {snapshot['overall_assessment']}"
    yield Text(str(verdict), None)
    for flag in answer.get("flags", ()):
        yield Text(f"  {flag['severity']:<8} {flag['message']}", SEVERITIES[flag["severity"]])
    if snapshot.get("signals"):
        yield _signals(snapshot["signals"])
    stop = _stop(snapshot)
    if snapshot.get("recommended_actions"):
        yield _actions(snapshot["recommended_actions"], stop)
    elif stop:
        yield Text(f"  then a stop on the rest at {stop}", None)
    if snapshot.get("not_sold"):
        yield Text(f"nothing is proposed: {snapshot['not_sold']}", Tone.WARN)
    if no_stop := (snapshot.get("sizing") or {}).get("no_stop"):
        yield Text(f"no stop: {no_stop}", Tone.WARN)


def _stop(answer: Mapping[str, Any]) -> str:
    """The price of the stop on what remains, `763.81 GBX`; empty where there is none."""
    price = {"amount": answer.get("stop_price"), "currency": answer.get("stop_currency")}
    return amounts.recorded(price) or ""


def _notes(answer: Mapping[str, Any], words: Console) -> None:
    """Warnings, and the file that the answer is kept in, on stderr."""
    for warning in answer.get("warnings", ()):
        words.print(Line(str(warning), style="yellow"), soft_wrap=True)
    if answer.get("file_path"):
        words.print(Line(f"saved as {answer['file_path']}", style="dim"), soft_wrap=True)
    if answer.get("file_error"):
        words.print(Line(str(answer["file_error"]), style="red"), soft_wrap=True)


def _signals(signals: Sequence[Mapping[str, Any]]) -> Table:
    return view.table(
        (
            "Rule",
            Column("Kind", spare=1),
            "State",
            Column("Severity", right=True),
            Column("Why", wraps=True),
        ),
        (
            (
                it["rule_name"],
                "primary" if it["is_primary"] else "secondary",
                _state(it),
                f"{it['severity']:.2f}",
                it.get("detail", ""),
            )
            for it in signals
        ),
    )


def _state(signal: Mapping[str, Any]) -> Cell:
    if signal["status"] != "ok":
        return view.say("failed", Tone.BAD)
    return view.say(*(("triggered", Tone.WARN) if signal["triggered"] else ("quiet", Tone.QUIET)))


def _actions(actions: Sequence[Mapping[str, Any]], stop: str) -> Table:
    """The stop's price is in the action of a full answer, and beside those of an agent's."""
    return view.table(
        (
            "Proposed",
            "Shares",
            "Ticker",
            Column("At", right=True),
            Column("Why", wraps=True),
        ),
        (
            (
                view.say(it["action"], Tone.BAD),
                view.count(it["quantity"]),
                it["ticker"],
                "the open"
                if it["order_type"] == "market"
                else _stop(it) or stop or amounts.UNKNOWN,
                it.get("reason", ""),
            )
            for it in actions
        ),
    )
