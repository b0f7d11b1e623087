"""Words for what was typed and cannot be read: the fields at fault, in a sentence."""

from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import contextmanager
from datetime import date
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TypeVar, overload

from pydantic import BaseModel, ValidationError

from libs.runtime.own_text import UnreadableFile
from libs.runtime.wording import describe, first_field
from services.cli.shell.problem import CliProblem, WrongUsage

Typed = TypeVar("Typed", bound=BaseModel)
Read = TypeVar("Read")


def typed(what: str, model: type[Typed], **fields: object) -> Typed:
    """The model of what was typed. Raises `CliProblem` (usage) that names the field at fault."""
    try:
        return model.model_validate(fields)
    except ValidationError as error:
        raise invalid(what, error) from error


@overload
def day_of(option: str, text: str) -> date: ...
@overload
def day_of(option: str, text: None) -> None: ...
@overload
def day_of(option: str, text: str | None) -> date | None: ...
def day_of(option: str, text: str | None) -> date | None:
    """The date that was typed, None where none was. Raises `CliProblem` (usage)."""
    try:
        return None if text is None else date.fromisoformat(text)
    except ValueError:
        message = f"{option} must be a date, e.g. 2012-06-29 (got {text!r})"
        raise WrongUsage(message) from None


def amount_of(option: str, text: str) -> Decimal:
    """The number that was typed, `5,000` too. Raises `CliProblem` (usage)."""
    try:
        number = Decimal(text.replace(",", ""))
    except InvalidOperation:
        number = Decimal("nan")
    if not number.is_finite():
        raise WrongUsage(f"{option} must be an amount, e.g. 5000 or 250.50 (got {text!r})")
    return number


def pairs_of(example: str, texts: Sequence[str], known: Set[str] = frozenset()) -> dict[str, str]:
    """The values of an option NAME=VALUE by name, in capitals where no name is `known`; `example`
    shows how it is typed. Raises `CliProblem` (usage)."""
    pairs = {}
    for text in filter(None, texts):
        name, _, value = (part.strip() for part in text.partition("="))
        name = name.lower() if known else name.upper()
        if not value or (known and name not in known):
            names = f"; the columns are {', '.join(sorted(known))}" if known else ""
            what = f"{example.split(maxsplit=1)[0]} {text!r} is not valid"
            raise WrongUsage(what, f"write {example}{names}")
        pairs[name] = value
    return pairs


def invalid(what: str, error: ValidationError, model: type[BaseModel] | None = None) -> CliProblem:
    """The problems of something typed, field by field; with the `model` that was to be read an
    unknown field is told with those that there are.
    """
    text = describe(error, model).replace("body: ", "")
    hint = "deskbus accounts" if first_field(error) == "account" else ""
    return WrongUsage(f"invalid {what}: {text}", hint)


def own_file(path: Path, read: Callable[[Path], Read], hint: str, kind: type[BaseModel]) -> Read:
    """What a file of a person's own says. Raises `CliProblem` (usage) that names the field at
    fault."""
    try:
        return read(path)
    except OSError as error:
        raise WrongUsage(f"{path} cannot be read: {error.strerror}", hint) from error
    except UnreadableFile as error:
        raise WrongUsage(f"{path}: {error.message}", hint) from error
    except ValidationError as error:
        raise invalid(str(path), error, kind) from error


@contextmanager
def writing(path: Path, hint: str) -> Iterator[None]:
    """Write a file. Raises `CliProblem` with the hint where that cannot be."""
    try:
        yield
    except OSError as error:
        where = error.filename or path
        raise CliProblem(f"{where} cannot be written: {error.strerror}", hint) from error
