"""The options that filter a list, and the line under one that goes on, for every such command."""

import shlex
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, TypeVar
from uuid import UUID

import typer
from pydantic import BaseModel, ValidationError

from libs.facts import amounts
from libs.runtime.wording import describe
from services.cli.shell import completion
from services.cli.shell.problem import WrongUsage
from services.cli.shell.terminal import aside

Query = TypeVar("Query", bound=BaseModel)

EXPORT = "`deskbus export` writes the whole record"
DAY = ["%Y-%m-%d"]
AccountFilter = Annotated[
    str | None,
    typer.Option(
        "--account", help="Only those of this account.", autocompletion=completion.accounts
    ),
]
SinceOption = Annotated[
    datetime | None, typer.Option(formats=DAY, help="As of this session or a later one.")
]
UntilOption = Annotated[
    datetime | None, typer.Option(formats=DAY, help="As of this session or an earlier one.")
]
TextOption = Annotated[
    str | None,
    typer.Option(
        help="Only those with these words: a ticker, of the result, first digits of an id."
    ),
]
BeforeOption = Annotated[
    str | None, typer.Option(help="Continue behind this one: its id, or first characters.")
]


def query_of(model: type[Query], **filters: object) -> Query:
    """The query of these filters. Raises `CliProblem` (usage) where one cannot be."""
    since, until = filters.get("since"), filters.get("until")
    if isinstance(since, datetime) and isinstance(until, datetime) and until < since:
        raise WrongUsage(f"--until {until:%Y-%m-%d} is before --since {since:%Y-%m-%d}")
    try:
        return model.model_validate(
            {
                name: value.date() if isinstance(value, datetime) else value
                for name, value in filters.items()
            }
        )
    except ValidationError as error:
        raise WrongUsage(describe(error, model)) from error


def tell_more(command: str, filters: Mapping[str, object], before: UUID | None) -> None:
    """Say how to see those behind the last, where there are any."""
    if before is not None:
        tell_next("older", command, {**filters, "before": amounts.short(before)})


def tell_next(what: str, command: str, filters: Mapping[str, object]) -> None:
    """Say on stderr by which command a list goes on: its filters as options."""
    typed = [
        f"--{name.replace('_', '-')}" + ("" if value is True else f" {_quoted(value)}")
        for name, value in filters.items()
        if value not in {None, False}
    ]
    aside(" ".join([f"{what}:", command, *typed]))


def tell_limit(
    shown: int, limit_max: int, beyond: str = EXPORT, *, option: str = "--limit"
) -> None:
    """Say on stderr that a list ends at its limit: a larger one shows more, up to `limit_max`;
    from there on `beyond` says what does."""
    text = f"there are more than these {shown}: {option} shows up to {limit_max}"
    if shown >= limit_max:
        text = f"these {shown} are as many as are listed: {beyond}"
    aside(text)


def _quoted(value: object) -> str:
    return shlex.quote(f"{value:%Y-%m-%d}" if isinstance(value, datetime) else str(value))
