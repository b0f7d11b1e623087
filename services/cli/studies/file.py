"""A study's file: YAML that a person writes."""

from pathlib import Path
from typing import Annotated

import typer
import yaml
from pydantic import ValidationError

from contracts.study import Study
from services.cli.shell.problem import ExitCode, Problem
from services.cli.shell.request import invalid

FILE_BYTES_MAX = 200_000
EXAMPLE_HINT = "examples/studies has some to start from; docs/studies.md explains each field"

FileArgument = Annotated[Path, typer.Argument(help="The study's file (YAML).", show_default=False)]
NameArgument = Annotated[
    str, typer.Argument(help="The study's name, as its file has it.", show_default=False)
]


def read_study(path: Path) -> Study:
    """The study in a file. What is wrong with it is a `Problem` that names the field."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no UTF-8 text"
        raise Problem(ExitCode.USAGE, f"{path} cannot be read: {why}", EXAMPLE_HINT) from None
    if len(text) > FILE_BYTES_MAX:
        raise Problem(
            ExitCode.USAGE, f"{path} has more than {FILE_BYTES_MAX:,} bytes: no study needs them"
        )
    try:
        # An alias can make a small text mean a huge value, and no study needs one.
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text, yaml.SafeLoader)):
            raise Problem(ExitCode.USAGE, f"{path}: aliases (*name) are not read: write it out")
        read = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" (line {mark.line + 1})" if mark else ""
        why = getattr(error, "problem", None) or "it cannot be read"
        raise Problem(ExitCode.USAGE, f"{path} is not valid YAML: {why}{where}") from None
    if not isinstance(read, dict):
        raise Problem(ExitCode.USAGE, f"{path}: a study begins with `name:`", EXAMPLE_HINT)
    for ticker in read.get("universe") or ():
        if not isinstance(ticker, str):
            raise Problem(
                ExitCode.USAGE,
                f"{path}: universe: {ticker!r} is a word or number to YAML; quote it: "
                f'"{_as_ticker(ticker)}"',
            )
    try:
        return Study.model_validate(read)
    except ValidationError as error:
        raise invalid(path.name, error) from None


def _as_ticker(value: object) -> str:
    """As it was probably written: YAML reads ON as true and NO as false."""
    if isinstance(value, bool):
        return "ON" if value else "NO"
    return str(value)
