"""The options that filter a list, and the line under one that goes on, for every such command."""

import shlex
from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import partial
from inspect import Parameter
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin
from uuid import UUID

import typer
from pydantic.fields import FieldInfo

from contracts.message import PAGE_MAX, Message
from libs.facts import amounts
from services.cli.shell import completion
from services.cli.shell.invalid import typed
from services.cli.shell.options import with_options
from services.cli.shell.terminal import aside

Query = TypeVar("Query", bound=Message)

EXPORT = "`deskbus export` writes the full record"


def filters(
    model: type[Query], *without: str, **options: object
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a command of a function whose first argument is the query `model`: it has an option for
    each of its fields but those `without`, before its own, as the contract describes them.

    `options` are other names of them, or a whole option or argument for the field.
    """
    parameters = [
        _parameter(name, field, options.get(name))
        for name, field in model.model_fields.items()
        if name not in {*Message.model_fields, *without}
    ]
    return with_options(parameters, partial(typed, "option", model))


def _parameter(name: str, field: FieldInfo, option: object) -> Parameter:
    """The option of a field. The contract checks what is typed, but for the names of a choice."""
    kind: Any = option
    if option is None or isinstance(option, str):
        plain = _kind_of(field.annotation)
        kind = Annotated[
            plain | None if field.default is None else plain,
            typer.Option(
                option or f"--{name.replace('_', '-')}",
                help=field.description,
                autocompletion=completion.accounts if name == "account" else None,
            ),
        ]
    default = Parameter.empty if field.is_required() else field.default
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=kind)


def _kind_of(annotation: Any) -> Any:
    """The type by which typer reads an option: a choice, a flag, a number, several texts, or a
    text."""
    origin = get_origin(annotation)
    if origin is tuple:
        return list[str]
    if origin is Literal or isinstance(annotation, type):
        plain = origin is None and not issubclass(annotation, StrEnum | bool | int)
        return str if plain else annotation
    return _kind_of(get_args(annotation)[0])


def tell_older(command: str, query: Message, before: UUID | None) -> None:
    """Say how to see those behind the last, where there are any."""
    if before is not None:
        asked = query.model_dump(mode="json", exclude_defaults=True)
        tell_next("older", command, {**asked, "before": amounts.short(before)})


def tell_next(what: str, command: str, filters: Mapping[str, object]) -> None:
    """Say on stderr by which command a list goes on: its filters as options."""
    typed = [
        f"--{name.replace('_', '-')}" + ("" if value is True else f" {shlex.quote(str(value))}")
        for name, value in filters.items()
        if value not in {None, False}
    ]
    aside(" ".join([f"{what}:", command, *typed]))


def tell_limit(shown: int, beyond: str = EXPORT, *, option: str = "--limit") -> None:
    """Say on stderr that a list ends at its limit: a larger one shows more, up to `PAGE_MAX`;
    from there on `beyond` says what does."""
    text = f"there are more than these {shown}: {option} shows up to {PAGE_MAX}"
    if shown >= PAGE_MAX:
        text = f"a list has at most {shown} entries: {beyond}"
    aside(text)
