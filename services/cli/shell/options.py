"""Shared options of all commands: how a group is made, and the options that mean the same
everywhere.
"""

from collections.abc import Callable, Iterable
from enum import StrEnum
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from libs.runtime.nearest import did_you_mean, nearest
from services.cli.shell import completion
from services.cli.shell.problem import WrongUsage

WHOLE_SENTENCE = 500
"""Characters of a command's line in its group's help: more than any first sentence has."""

JsonOption = Annotated[
    bool, typer.Option("--json", help="Print JSON, one object per line, for programs.")
]
AccountArgument = Annotated[
    str, typer.Argument(help="The account's name.", autocompletion=completion.accounts)
]
AccountOption = Annotated[
    str,
    typer.Option("--account", help="The account's name.", autocompletion=completion.accounts),
]
HeldArgument = Annotated[
    str,
    typer.Argument(help="A ticker that the account holds.", autocompletion=completion.tickers),
]
ApprovalOption = Annotated[
    bool, typer.Option("--approval", help="Require a person's approval before placing orders.")
]


def account_either_way(function: Callable[..., None]) -> Callable[..., None]:
    """A command whose argument `account` may also be written as `--account`, as other commands take
    it. The option is not in the help: the argument is."""
    own = signature(function, eval_str=True).parameters.values()
    option = Parameter(
        "by_option",
        Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[str | None, typer.Option("--account", hidden=True)],
    )

    @wraps(function)
    def command(**typed: Any) -> None:
        by_option = typed.pop("by_option")
        if by_option is not None:
            typed["account"] = by_option
        function(**typed)

    # typer reads a command's options from its signature.
    command.__signature__ = Signature(  # type: ignore[attr-defined]
        [*(one.replace(kind=Parameter.KEYWORD_ONLY) for one in own), option]
    )
    return command


def with_options(
    parameters: Iterable[Parameter], make: Callable[..., object]
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a command of a function whose first argument is what `make` makes of these options; they
    stand before its own."""

    def command_of(function: Callable[..., None]) -> Callable[..., None]:
        _, *own = signature(function, eval_str=True).parameters.values()
        made = {parameter.name: parameter for parameter in parameters}

        @wraps(function)
        def command(**typed: Any) -> None:
            function(make(**{name: typed.pop(name) for name in made}), **typed)

        # typer reads a command's options from its signature.
        command.__signature__ = Signature(  # type: ignore[attr-defined]
            [one.replace(kind=Parameter.KEYWORD_ONLY) for one in (*made.values(), *own)]
        )
        return command

    return command_of


class DateOrder(StrEnum):
    """How to read dates such as 03/04/2024."""

    DAY_FIRST = "day-first"
    MONTH_FIRST = "month-first"


class DecimalMark(StrEnum):
    """The mark before the decimals of a number."""

    COMMA = "comma"
    POINT = "point"


class Commands(TyperGroup):
    """A group whose help shows the whole first sentence of each command."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that is named. Raises `WrongUsage` with the nearest one; in a group of one
        command a word that is none was meant for it: `deskbus exit AAPL`."""
        word, names = args[0], list(self.commands)
        if word in names or word.startswith("-") or ctx.resilient_parsing:
            return super().resolve_command(ctx, args)
        near = nearest(word, names)
        if near is None and len(names) == 1 and not self.invoke_without_command:
            near = f"{names[0]} {word}"
        path = _path(ctx)
        raise WrongUsage(
            f"unknown command {' '.join((*path, word))!r}"
            + did_you_mean(near and " ".join((*path, near))),
            " ".join(("deskbus", *path, "--help")),
        )

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - as typer calls it
        """The commands with their sentences."""
        with formatter.section("Commands"):
            formatter.write_dl(
                [
                    (name, it.get_short_help_str(WHOLE_SENTENCE))
                    for name, it in self.commands.items()
                ]
            )


def _path(ctx: Any) -> tuple[str, ...]:
    """The words that lead to a group, without the program's name."""
    return () if ctx.parent is None else (*_path(ctx.parent), ctx.info_name)


def group(kind: type[TyperGroup] = Commands) -> typer.Typer:
    """An empty group of commands, or a single command's home."""
    return typer.Typer(
        cls=kind,
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
