"""Words for what was typed and cannot be read: the fields at fault, in a sentence."""

from typing import TypeVar

from pydantic import BaseModel, ValidationError

from libs.runtime.wording import describe, first_field
from services.cli.shell.problem import ExitCode, Problem

Typed = TypeVar("Typed", bound=BaseModel)


def typed(what: str, model: type[Typed], **fields: object) -> Typed:
    """The model of what was typed. Raises `Problem` (usage) that names the field at fault."""
    try:
        return model.model_validate(fields)
    except ValidationError as error:
        raise invalid(what, error) from error


def invalid(what: str, error: ValidationError, model: type[BaseModel] | None = None) -> Problem:
    """The problems of something typed, field by field; with the `model` that was to be read an
    unknown field is told with those that there are.
    """
    text = describe(error, model).replace("body: ", "")
    hint = "deskbus accounts" if first_field(error) == "account" else ""
    return Problem(ExitCode.USAGE, f"invalid {what}: {text}", hint)
