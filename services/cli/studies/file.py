"""A study's file: YAML that a person writes."""

from pathlib import Path
from typing import Annotated

import typer
from pydantic import ValidationError

from contracts.study import Study
from libs.runtime.own_text import UnreadableFile, text_in, yaml_in
from services.cli.shell.invalid import invalid
from services.cli.shell.problem import CliProblem, ExitCode

FILE_BYTES_MAX = 200_000
"""A study with every field written out has a few thousand."""
EXAMPLE_HINT = "deskbus init writes study.yaml to start from; docs/studies.md explains each field"

FileArgument = Annotated[
    Path,
    typer.Argument(help="The study's file (YAML); `deskbus init` writes one.", show_default=False),
]
NameArgument = Annotated[
    str, typer.Argument(help="The study's name, as its file has it.", show_default=False)
]


def read_study(path: Path) -> Study:
    """The study in a file. What is wrong with it is a `CliProblem` that names the field."""
    try:
        read = yaml_in(text_in(path, FILE_BYTES_MAX))
    except OSError as error:
        why = f"{path} cannot be read: {error.strerror}"
        raise CliProblem(ExitCode.USAGE, why, EXAMPLE_HINT) from None
    except UnreadableFile as error:
        raise CliProblem(ExitCode.USAGE, f"{path}: {error.message}", EXAMPLE_HINT) from None
    try:
        return Study.model_validate(read)
    except ValidationError as error:
        raise invalid(path.name, error) from None
