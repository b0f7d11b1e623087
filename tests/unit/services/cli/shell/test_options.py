"""Options that mean the same everywhere."""

import pytest
import typer
from typer.testing import CliRunner

from services.cli.shell.options import AccountArgument, account_either_way

app = typer.Typer()


@app.command()
@account_either_way
def show(account: AccountArgument = "main", limit: int = 5) -> None:
    """Show an account."""
    typer.echo(f"{account} {limit}")


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("", "main 5"),
        ("mine", "mine 5"),
        ("--account mine", "mine 5"),
        ("--limit 3 --account mine", "mine 3"),
    ],
)
def test_an_account_is_named_by_the_argument_or_by_the_option(typed: str, said: str) -> None:
    assert CliRunner().invoke(app, typed.split()).output == f"{said}\n"


def test_the_help_shows_one_of_the_two() -> None:
    assert "--account" not in CliRunner().invoke(app, ["--help"]).output
