"""Words for what was typed and cannot be read: the fields at fault, in a sentence."""

from datetime import date
from typing import TypeVar, overload

from pydantic import BaseModel, ValidationError

from libs.runtime.wording import describe, first_field
from services.cli.shell.problem import CliProblem, ExitCode

Typed = TypeVar("Typed", bound=BaseModel)


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
        raise CliProblem(ExitCode.USAGE, message) from None


def invalid(what: str, error: ValidationError, model: type[BaseModel] | None = None) -> CliProblem:
    """The problems of something typed, field by field; with the `model` that was to be read an
    unknown field is told with those that there are.
    """
    text = describe(error, model).replace("body: ", "")
    hint = "deskbus accounts" if first_field(error) == "account" else ""
    return CliProblem(ExitCode.USAGE, f"invalid {what}: {text}", hint)
