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

from services.cli.shell import completion

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

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - as typer calls it
        """The commands with their sentences."""
        with formatter.section("Commands"):
            formatter.write_dl(
                [
                    (name, it.get_short_help_str(WHOLE_SENTENCE))
                    for name, it in self.commands.items()
                ]
            )


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
