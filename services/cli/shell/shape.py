"""The shape that all commands share: help without types, examples, whole sentences, names completed
by the shell, and one voice for what is typed wrong."""

import re
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from types import MethodType
from typing import Any

import typer
from typer._click.exceptions import (
    BadParameter,
    ClickException,
    MissingParameter,
    NoSuchOption,
)
from typer.core import TyperGroup

from libs.runtime.nearest import did_you_mean, nearest
from services.cli.shell.completion import COMPLETED, complete
from services.cli.shell.examples import EXAMPLES
from services.cli.shell.problem import ExitCode, Problem
from services.cli.shell.typed import PROGRAM, meant

GROUP_EXAMPLES_MAX = 3
"""In the help of a group: each of its commands has more."""
OTHER_LETTER_LIKE_MIN = 0.75
"""How alike a command must be that begins with another letter than what was typed."""
WHOLE_SENTENCE = 500
"""Characters of a command's line in its group's help: more than any first sentence has."""
METAVARS = {
    "as_of": "DATE",
    "at": "TIME",
    "since": "DATE",
    "until": "DATE",
    "account": "ACCOUNT",
    "benchmark": "TICKER",
    "cycle": "CYCLE",
    "cycle_id": "CYCLE",
    "op_id": "OPERATION",
    "universe": "TICKERS",
    "evidence_of": "TICKER",
    "ticker": "TICKER",
    "provider": "PROVIDER",
    "source": "SOURCES",
    "constraint": "KEY=VALUE",
    "kind": "KIND",
    "job": "JOB",
    "key": "KEY",
    "timeout_s": "SECONDS",
    "max_money": "AMOUNT",
    "max_cost": "AMOUNT",
    "amount": "AMOUNT",
    "stage": "STAGE",
    "reason": "TEXT",
    "replicas": "SERVICE=N",
    "service": "SERVICE",
    "pattern": "EVENTS",
    "name": "STRATEGY",
    "names": "STRATEGY",
    "study_name": "STUDY",
    "arm": "ARM",
    "on": "DATE",
    "before": "ID",
    "text": "WORDS",
    "drop": "TICKER",
    "quantity": "TICKER=N",
    "pipeline": "PIPELINE",
    "proposal": "HASH",
    "confirmed": "HASH",
    "cash": "AMOUNT",
    "share": "PERCENT",
    "row": "PIPELINE@ACCOUNT",
    "channel": "CHANNEL",
    "host": "HOST",
    "listen": "HOST:PORT",
    "nats_node": "HOST:PORT",
}
"""How values are shown where the name of their type would stand."""
_EXTRA = re.compile(r"Got unexpected extra (arguments?)(?:\(s\))?")
_NEGATIVE = re.compile(r"-[.,]?\d")
_QUOTED = re.compile(r"Value error, '(?P<value>.*)' (?:is not one of|does not match)")


class ShapedGroup(TyperGroup):
    """A group whose help shows whole sentences, and which knows a slip of a command's name."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """The commands with the first sentence of each."""
        rows = [
            (name, command.get_short_help_str(WHOLE_SENTENCE))
            for name in self.list_commands(ctx)
            if (command := self.get_command(ctx, name)) is not None and not command.hidden
        ]
        if rows:
            with formatter.section("Commands"):
                formatter.write_dl(rows)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that is named. Raises `Problem` (usage) with the nearest one."""
        require_command(self, ctx, args)
        return super().resolve_command(ctx, args)


ELSEWHERE: Mapping[str, str] = {
    "why": "cycle show",
    "show": "cycle show",
    "decide": "cycle request",
    "replay": "cycle replay",
    "backtest": "agent trigger",
    "sell": "exit now",
    "positions": "portfolio",
    "orders": "trades",
    "prices": "market show",
    "start": "up",
    "stop": "down",
    "ps": "status",
    "console": "open",
    "settings": "config",
    "limits": "config",
    "alerts": "notify",
    "balance": "portfolio",
    "cash": "portfolio",
    "holdings": "portfolio",
    "pnl": "performance",
    "jobs": "schedule list",
    "events": "tail",
    "kill": "halt",
}
"""What a person types who comes from elsewhere, and the command that does it here."""
LISTS = frozenset({"positions", "orders", "prices", "settings", "limits", "alerts", "holdings"})
"""Those of them that name a list which the command shows, not an action."""


def require_command(group: Any, ctx: Any, args: Sequence[str]) -> None:
    """Raise `Problem` (usage) where the first word is no command of the group."""
    if not args or args[0].startswith("-") or group.get_command(ctx, args[0]) is not None:
        return
    known = group.list_commands(ctx)
    path = _path_of(ctx)
    if not path and (usual := ELSEWHERE.get(args[0].lower())):
        hint = shlex.join([PROGRAM, *usual.split(), *args[1:]])
        word, path = args[0], _typed(usual, "")
        message = f"unknown command '{word}': use {path}"
        if word.lower() in LISTS:
            message = f"the {word.lower()} are in {path}"
        raise Problem(ExitCode.USAGE, message, hint)
    # Few slips change the first letter: `limit` is no slip of `init`.
    same = [name for name in known if name[:1] == args[0][:1].lower()]
    near = nearest(args[0], same) or nearest(args[0], known, OTHER_LETTER_LIKE_MIN)
    shown = " ".join(filter(None, (path, args[0])))
    hint = f"{_typed(path, '--help')} lists the commands"
    if near is not None:
        hint = shlex.join([PROGRAM, *path.split(), near, *args[1:]])
    raise Problem(ExitCode.USAGE, f"unknown command '{shown}'{did_you_mean(near)}", hint)


def shaped(command: Any, path: str) -> Any:
    """Give the command, and those below it, their shape; `path` is what is typed to reach it."""
    for name, below in getattr(command, "commands", {}).items():
        shaped(below, f"{path} {name}")
    if any(param.param_type_name == "argument" for param in command.params):
        command.parse_args = MethodType(_parse_args, command)
    for param in command.params:
        _shape_param(param)
    examples = EXAMPLES.get(path) or _examples_below(command, path)
    if examples:
        command.epilog = "\n".join(examples)
        command.format_epilog = MethodType(_format_examples, command)
    return command


def _parse_args(command: Any, ctx: Any, args: Sequence[str]) -> Any:
    """Parse what was typed. `-5` is a number, where an argument is expected: the command says
    what is wrong with it."""
    typed = list(args)
    try:
        return type(command).parse_args(command, ctx, list(args))
    except NoSuchOption as error:
        if not _NEGATIVE.match(error.option_name):
            raise
        ctx.ignore_unknown_options = True
        return type(command).parse_args(command, ctx, typed)


def _examples_below(group: Any, path: str) -> Sequence[str]:
    """The first example of each of the group's first commands."""
    firsts = (EXAMPLES.get(f"{path} {name}", ())[:1] for name in getattr(group, "commands", ()))
    return [example for first in firsts for example in first][:GROUP_EXAMPLES_MAX]


def _shape_param(param: Any) -> None:
    if param.metavar is None and not getattr(param, "is_flag", False):
        desc = param.type_descriptor
        if not desc.is_choice:
            is_argument = param.param_type_name == "argument"
            own = param.name.upper() if is_argument else _metavar(desc)
            param.metavar = METAVARS.get(param.name) or own
            if is_argument:
                param.display_type_rich = _nothing  # a type's name would stand behind its own
                param._usage_display_name = partial(_in_usage, param)  # noqa: SLF001
    if hasattr(param, "min"):
        param._get_number_range_help_str = partial(_bounds, param)  # noqa: SLF001
    if param.name in COMPLETED and param._custom_shell_complete is None:  # noqa: SLF001
        param._custom_shell_complete = complete  # noqa: SLF001 - its own way imports all commands


def _in_usage(param: Any) -> str:
    """`CYCLE`, or `[CYCLE]` where it may be left out."""
    name = param.metavar if param.required else f"[{param.metavar}]"
    return name if param.nargs == 1 else f"{name}..."


def _nothing(**_: Any) -> str:
    return ""


def _bounds(param: Any) -> str | None:
    """`1 to 200`, where typer has `1<=x<=200`."""
    if param.min is None and param.max is None:
        return None
    if param.min is not None and param.max is not None:
        return f"{param.min} to {param.max}"
    return f"at least {param.min}" if param.max is None else f"at most {param.max}"


def _metavar(desc: Any) -> str:
    annotation = str(getattr(desc, "annotation", ""))
    for part, shown in (("int", "N"), ("float", "N"), ("Path", "PATH"), ("datetime", "DATE")):
        if part in annotation:
            return shown
    return "TEXT"


def _format_examples(command: Any, _ctx: Any, formatter: Any) -> None:
    with formatter.section("Examples"):
        for line in command.epilog.splitlines():
            formatter.write(f"{'':{formatter.current_indent}}{line}\n")


# --- what is typed wrong ------------------------------------------------------------------------


def problem_of(error: ClickException) -> Problem:
    """A mistake in what was typed, as every other problem is said: with a command that works."""
    ctx = getattr(error, "ctx", None)
    path = _path_of(ctx) if ctx is not None else ""
    example = next(iter(EXAMPLES.get(path, ())), "")
    helped = f"{_typed(path, '--help')} says how"
    match error:
        case NoSuchOption():
            near = nearest(error.option_name, error.possibilities or _options(ctx))
            hint = meant(error.option_name, near) or helped
            message = f"unknown option {error.option_name}{did_you_mean(near)}"
        case MissingParameter() if error.param is not None:
            message, hint = f"{_shown(error.param)} is missing", example or helped
        case BadParameter() if error.param is not None:
            message, hint = _bad(error.param, error.message, ctx), helped
            typed = _typed_value(error.param, error.message)
            near = nearest(typed, _choices(error.param))
            message += did_you_mean(near)
            hint = meant(typed, near) or hint
        case _:
            message = _EXTRA.sub(r"unexpected \1", error.format_message().rstrip("."))
            message = message[:1].lower() + message[1:]
            hint = helped
    return Problem(ExitCode(error.exit_code), message, hint)


def _bad(param: Any, message: str, _ctx: Any) -> str:
    """The sentence that says how the value has to be, and how it was."""
    typed = _typed_value(param, message)
    got = f" (got {typed!r})" if typed else ""
    name = _shown(param)
    choices = _choices(param)
    low, high = getattr(param, "min", None), getattr(param, "max", None)
    if choices:
        return f"{name} must be one of {', '.join(choices)}{got}"
    if low is not None and high is not None:
        return f"{name} must be a number from {low} to {high}{got}"
    if low is not None or high is not None:
        bound = f"of at least {low}" if low is not None else f"of at most {high}"
        return f"{name} must be a number {bound}{got}"
    if "does not match" in message:
        return f"{name} must be a date, e.g. 2012-06-29{got}"
    if "valid integer" in message or "valid number" in message:
        return f"{name} must be a number{got}"
    words = message.removeprefix("Value error, ")
    return f"{name}: {words[:1].lower()}{words[1:]}{got}"


def _typed_value(param: Any, message: str) -> str:
    """The value as it was typed, where it can be told."""
    if match := _QUOTED.search(message):
        return match["value"]
    words = sys.argv[1:]
    for option in getattr(param, "opts", ()):
        if option in words[:-1]:
            return words[words.index(option) + 1]
        for word in words:
            if word.startswith(f"{option}="):
                return word.partition("=")[2]
    return ""


def _choices(param: Any) -> Sequence[str]:
    choices = param.type_descriptor.choices or ()
    return [str(getattr(choice, "value", choice)) for choice in choices]


def _options(ctx: Any) -> Iterator[str]:
    for param in ctx.command.params if ctx is not None else ():
        yield from (option for option in param.opts if option.startswith("--"))


def _shown(param: Any) -> str:
    """`--since`, or an argument's name as the usage shows it."""
    options = [option for option in param.opts if option.startswith("-")]
    return str(max(options, key=len) if options else param.metavar or param.name.upper())


def _path_of(ctx: Any) -> str:
    """The words that lead to a command, without the program's."""
    names: list[str] = []
    while ctx is not None and ctx.parent is not None:
        names.insert(0, ctx.info_name or "")
        ctx = ctx.parent
    return " ".join(names)


def _typed(path: str, word: str) -> str:
    return f"`{' '.join(filter(None, (PROGRAM, path, word)))}`"


def usage_stopped(error: ClickException) -> None:
    """Raise the problem of a mistake; a group without a command shows its help, as it is no
    mistake."""
    if type(error).__name__ == "NoArgsIsHelpError":
        typer.echo(error.format_message())
        raise SystemExit(ExitCode.USAGE)
    raise problem_of(error) from error
