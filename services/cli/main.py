"""`deskbus`: the table of commands, each loaded when it is called, so that --help stays quick."""

import gc
import importlib
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import typer
from typer.core import TyperGroup

from libs.runtime.errors import DeskError, StartError
from libs.runtime.nearest import did_you_mean, nearest
from libs.runtime.utf8 import use_utf8
from services.cli.shell.examples import with_examples
from services.cli.shell.problem import ARROW, WHO, CliProblem, ExitCode, WrongUsage


@dataclass(frozen=True)
class CommandEntry:
    """One command: its name, its module below services.cli, and its line in the help."""

    name: str
    module: str
    help: str


SECTIONS: Sequence[tuple[str, Sequence[CommandEntry]]] = (
    (
        "Start",
        (
            CommandEntry(
                "run",
                "trading.run",
                "Run one decision cycle from start to finish (the quickest start)",
            ),
            CommandEntry(
                "init", "desk.init", "Write a folder to start from: settings, jobs, exits, data"
            ),
            CommandEntry("new", "desk.new", "Write a rule, an exit rule or a tool of your own"),
            CommandEntry(
                "demo",
                "demo.command",
                "Show a sample desk with a year of history, in a browser",
            ),
            CommandEntry("up", "desk.up", "Start the desk and keep it running"),
            CommandEntry("down", "desk.down", "Stop the desk that runs here"),
            CommandEntry("status", "desk.status", "Show whether a desk runs here, and its health"),
            CommandEntry("open", "desk.console", "Open the console in a browser"),
            CommandEntry("logs", "desk.logs", "Show and follow the desk's log"),
        ),
    ),
    (
        "Trade and watch",
        (
            CommandEntry("cycle", "trading.cycle", "Request, show, list, cancel and replay cycles"),
            CommandEntry("agent", "trading.agent", "Design, train, backtest and assess a strategy"),
            CommandEntry(
                "strategies",
                "trading.strategies",
                "List, show and compare strategies",
            ),
            CommandEntry(
                "approvals",
                "trading.approvals",
                "List, approve and reject waiting proposals",
            ),
            CommandEntry(
                "operations", "trading.operations", "Show a cycle's steps, down to single calls"
            ),
            CommandEntry("tail", "trading.tail", "Follow events live"),
            CommandEntry(
                "portfolio",
                "trading.portfolio",
                "Show an account, open one with your holdings, deposit and withdraw cash",
            ),
            CommandEntry(
                "account",
                "trading.account",
                "Bind an account to a broker's paper account, and reconcile both books",
            ),
            CommandEntry(
                "orders", "trading.orders", "List, show and cancel the orders at a broker"
            ),
            CommandEntry("accounts", "books.accounts", "List the accounts with equity and P&L"),
            CommandEntry(
                "trades", "books.trades", "List an account's trades: entry, exit, P&L, why"
            ),
            CommandEntry(
                "performance",
                "trading.performance",
                "Show an account's return, risk and round trips against a benchmark",
            ),
            CommandEntry("report", "trading.report", "Show a session's report, and what needs you"),
            CommandEntry(
                "exit-signals", "trading.exit_signals", "Check positions against the exit rules"
            ),
            CommandEntry(
                "exit", "trading.exit_now", "Sell a position now, whatever its exit rules say"
            ),
            CommandEntry(
                "leaderboard", "trading.leaderboard", "Compare pipelines with cash and buy-and-hold"
            ),
            CommandEntry(
                "study",
                "studies.command",
                "Run studies: compare providers, skill and luck",
            ),
            CommandEntry("risk", "trading.risk", "Show how much of each risk limit is used"),
            CommandEntry("budget", "trading.budget", "Show today's remaining model budget"),
            CommandEntry(
                "mcp", "operating.mcp", "Give other AI assistants access to the desk (MCP)"
            ),
            CommandEntry(
                "market",
                "operating.market",
                "Show, import and record market data",
            ),
        ),
    ),
    (
        "Operate",
        (
            CommandEntry(
                "schedule",
                "trading.schedule",
                "List, pause, resume and run scheduled jobs",
            ),
            CommandEntry(
                "notify",
                "operating.notify",
                "Test, list and review notifications (mail, Slack, ntfy, ...)",
            ),
            CommandEntry("halt", "trading.halt", "Block buys at once, for one account or all"),
            CommandEntry("resume", "trading.resume", "End a halt"),
            CommandEntry("doctor", "operating.doctor", "Check this machine and the running desk"),
            CommandEntry("check", "operating.check", "Check all market data files; needs no desk"),
            CommandEntry(
                "config", "operating.config", "Show every setting and its source, and set a limit"
            ),
            CommandEntry(
                "proposer", "operating.proposer", "Allow programs to propose trades for one account"
            ),
            CommandEntry("dlq", "operating.dlq", "Show, retry and discard dead letters"),
            CommandEntry("export", "operating.export", "Export the record as Parquet files"),
            CommandEntry("db", "operating.db", "Migrate, back up, restore and prune the database"),
            CommandEntry(
                "secrets",
                "operating.secrets",
                "Create keys, passwords and certificates for your own servers",
            ),
        ),
    ),
)
ENTRIES = {entry.name: entry for _, entries in SECTIONS for entry in entries}
ELSEWHERE: Mapping[str, str] = {
    "why": "cycle show",
    "show": "cycle show",
    "decide": "cycle request",
    "replay": "cycle replay",
    "backtest": "agent trigger",
    "sell": "exit now",
    "positions": "portfolio",
    "prices": "market show",
    "start": "up",
    "stop": "down",
    "ps": "status",
    "console": "open",
    "settings": "config",
    "limits": "risk",
    "alerts": "notify",
    "balance": "portfolio",
    "cash": "portfolio",
    "holdings": "portfolio",
    "pnl": "performance",
    "jobs": "schedule list",
    "events": "tail",
    "kill": "halt",
}
"""Words of other programs, and the command that does it here."""

# A desk error's code where it means another exit than 1.
EXITS = {
    "desk_not_reachable": ExitCode.NOT_REACHABLE,
    "bus_not_reachable": ExitCode.NOT_REACHABLE,
    "database_not_reachable": ExitCode.NOT_REACHABLE,
    "too_large": ExitCode.USAGE,
    "invalid": ExitCode.USAGE,
    "not_found": ExitCode.NOT_FOUND,
    "unknown_account": ExitCode.NOT_FOUND,
    "account_exists": ExitCode.REJECTED,
    "not_as_shown": ExitCode.REJECTED,
    "not_enough_cash": ExitCode.REJECTED,
    "not_bindable": ExitCode.REJECTED,
    "not_bound": ExitCode.REJECTED,
    "bound_to_broker": ExitCode.REJECTED,
    "unknown_type": ExitCode.USAGE,
}
HINTS = {
    "desk_not_reachable": "deskbus doctor",
    "bus_not_reachable": "deskbus doctor",
    "database_not_reachable": "deskbus doctor",
    "unknown_account": "deskbus accounts",
}
"""A command that helps, by the error's code."""


def _loaded(entry: CommandEntry) -> Any:
    """The command's module. What it consists of stays: to search it for garbage again and again,
    while loading and after, takes a seventh of a short command's time.
    """
    gc.disable()
    try:
        return importlib.import_module(f"services.cli.{entry.module}")
    finally:
        gc.freeze()
        gc.enable()


class LazyGroup(TyperGroup):
    """Knows its commands by name; imports one when it is called."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - the base class' signature
        """All names, in the help's order."""
        return list(ENTRIES)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002
        """The command, imported now."""
        entry = ENTRIES.get(cmd_name)
        if entry is None:
            return None
        command: Any = typer.main.get_command(_loaded(entry).app)
        command.name = cmd_name
        command.help = command.help or f"{entry.help}."
        return with_examples(command, cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that is named. Raises `CliProblem` (usage) with the nearest one."""
        word = args[0]
        if word not in ENTRIES and not word.startswith("-") and not ctx.resilient_parsing:
            near = ELSEWHERE.get(word.lower()) or nearest(word, ENTRIES)
            hint = f"deskbus {near} --help" if near else "`deskbus --help` lists the commands"
            message = f"unknown command {word!r}{did_you_mean(near)}"
            raise WrongUsage(message, hint)
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run the command. A reader that has seen enough, such as `head`, is no failure of it."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            sys.stdout = None  # nothing more can be written or flushed
            raise typer.Exit(ExitCode.OK) from None

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002
        """The table, by section."""
        width = max(map(len, ENTRIES))
        for title, entries in SECTIONS:
            with formatter.section(typer.style(title, bold=True)):
                formatter.write_dl(
                    [(typer.style(f"{e.name:<{width}}", fg="cyan"), e.help) for e in entries]
                )


app = typer.Typer(
    cls=LazyGroup,
    no_args_is_help=True,
    rich_markup_mode=None,  # its import alone would take most of the half second
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 ok, 1 failed, 2 usage, 3 not found, 4 rejected or expired, "
    "5 desk not reachable, 124 time-out, 130 interrupted.",
)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version  # noqa: PLC0415 - slow, and rarely wanted

        print(f"deskbus {version('deskbus')}")
        raise typer.Exit


@app.callback()
def deskbus(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Show the version."
    ),
) -> None:
    """An LLM trading desk on a message bus: durable, auditable, point-in-time.

    Try `deskbus run` first: it needs no key, no account and no network.
    """


def main() -> None:
    """The script's entry: every expected problem is a sentence and an exit code."""
    use_utf8()
    # To look for plugins pydantic reads the metadata of every installed package: a fifteenth of a
    # short command's time. Who has one sets the variable, empty.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    try:
        app()
    except CliProblem as problem:
        _stop(problem.code, problem.message, problem.hint)
    except DeskError as error:
        hint = HINTS.get(error.code, "")
        _stop(EXITS.get(error.code, ExitCode.FAILED), error.message, hint)
    except StartError as error:
        _stop(ExitCode.FAILED, str(error))
    except KeyboardInterrupt:
        sys.exit(ExitCode.INTERRUPTED)
    except ConnectionError as error:
        _stop(ExitCode.FAILED, f"part of the desk stopped: {error}", "see its log")
    except (OSError, MemoryError, RecursionError) as error:
        _stop(ExitCode.FAILED, *_machine_says(error))
    except Exception as error:
        if not _is_of_postgres(error):
            raise
        _stop(ExitCode.FAILED, f"Postgres refused it: {type(error).__name__}: {error}", AT_POSTGRES)


OTHER_PLACE = (
    "free disk space, make it writable for this user, or name another folder (the data directory "
    "with DESKBUS_DATA_DIR)"
)
AT_POSTGRES = "`deskbus doctor` checks the database, `deskbus db migrate` updates its tables"


def _machine_says(error: OSError | MemoryError | RecursionError) -> tuple[str, str]:
    """The sentence for a limit of the machine, and the advice."""
    match error:
        case MemoryError():
            return "this machine is out of memory, or its memory limit is reached", (
                "request less at once"
            )
        case RecursionError():
            return "the input is nested too deep", "use less nesting in the file or the argument"
        case _ if error.filename is None:
            return f"{error.strerror or error}", "see `deskbus doctor`"
        case _:
            return (
                f"{os.fsdecode(error.filename)} cannot be used: {error.strerror}",
                OTHER_PLACE,
            )


def _is_of_postgres(error: Exception) -> bool:
    # By its module: a command that asks no database does not import the driver.
    return type(error).__module__.partition(".")[0] == "asyncpg"


def _stop(code: ExitCode, message: str, hint: str = "") -> None:
    # Only where a setting is named: it loads a second of libraries.
    if "DESKBUS_" in message + hint:
        from libs.runtime.setting_names import as_set  # noqa: PLC0415

        message, hint = as_set(message), as_set(hint)
    mark = typer.style(WHO, fg="red", bold=True)
    typer.echo(f"{mark} {message}", err=True)
    if hint:
        typer.echo(f"  {typer.style(ARROW, dim=True)} {hint}", err=True)
    sys.exit(code)
