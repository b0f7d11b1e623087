"""A study's file: YAML that a person writes."""

from pathlib import Path
from typing import Annotated

import typer

from contracts.study import Study
from libs.runtime.own_text import text_in, yaml_in
from services.cli.shell.invalid import own_file

FILE_BYTES_MAX = 200_000
"""A study with every field written out has a few thousand."""
EXAMPLE_HINT = "deskbus init writes study.yaml to start from; docs/studies.md explains each field"

FileArgument = Annotated[
    Path,
    typer.Argument(help="The study's file (YAML); `deskbus init` writes one.", show_default=False),
]
NameArgument = Annotated[
    str, typer.Argument(help="The study's name, as in its file.", show_default=False)
]


def read_study(path: Path) -> Study:
    """The study in a file. What is wrong with it is a `CliProblem` that names the field."""

    def study_in(file: Path) -> Study:
        return Study.model_validate(yaml_in(text_in(file, FILE_BYTES_MAX)))

    return own_file(path, study_in, EXAMPLE_HINT, Study)
