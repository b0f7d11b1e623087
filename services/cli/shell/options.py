"""Shared options of all commands: how a group is made, and the options that mean the same
everywhere.
"""

from enum import StrEnum
from typing import Annotated

import typer
from typer.core import TyperGroup

from services.cli.shell.shape import ShapedGroup

JsonOption = Annotated[
    bool, typer.Option("--json", help="Print JSON, one object per line, for programs.")
]
ApprovalOption = Annotated[
    bool, typer.Option("--approval", help="Require a person's approval before placing orders.")
]


class DateOrder(StrEnum):
    """How dates such as 03/04/2024 are meant."""

    DAY_FIRST = "day-first"
    MONTH_FIRST = "month-first"


def group(kind: type[TyperGroup] = ShapedGroup) -> typer.Typer:
    """An empty group of commands, or a single command's home."""
    return typer.Typer(
        cls=kind,
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
