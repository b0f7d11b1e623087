"""Words for what was typed and cannot be read: the fields at fault, in a sentence."""

from pydantic import BaseModel, ValidationError

from libs.runtime.wording import describe, first_field
from services.cli.shell.problem import ExitCode, Problem


def invalid(what: str, error: ValidationError, model: type[BaseModel] | None = None) -> Problem:
    """The problems of something typed, field by field; with the `model` that was to be read an
    unknown field is told with those that there are.
    """
    text = describe(error, model).replace("body: ", "")
    hint = "deskbus accounts" if first_field(error) == "account" else ""
    return Problem(ExitCode.USAGE, f"invalid {what}: {text}", hint)
