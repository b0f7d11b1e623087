"""The line under a list that goes on: a shell takes it as it stands."""

import shlex
from datetime import date
from uuid import UUID

import pytest

from contracts.cycle_query import CyclesQuery
from services.cli.shell.list_options import tell_limit, tell_older


def test_the_command_for_older_ones_is_read_by_a_shell_as_it_was_meant(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = "O'Neil `id` $HOME"
    query = CyclesQuery(text=text, since=date(2012, 6, 1), ascending=True)
    tell_older("deskbus cycle list", query, UUID(int=0))
    line = " ".join(capsys.readouterr().err.split())

    assert shlex.split(line.removeprefix("older: ")) == [
        "deskbus",
        "cycle",
        "list",
        "--since",
        "2012-06-01",
        "--text",
        text,
        "--ascending",
        "--before",
        "00000000",
    ]


def test_a_list_that_ends_at_its_limit_says_how_to_see_more(
    capsys: pytest.CaptureFixture[str],
) -> None:
    tell_limit(20, "`deskbus export` writes the full record")
    assert capsys.readouterr().err.split("\n")[0] == (
        "there are more than these 20: --limit shows up to 200"
    )
    tell_limit(200, "`deskbus export` writes the full record", option="--trips")
    assert capsys.readouterr().err.split("\n")[0] == (
        "a list has at most 200 entries: `deskbus export` writes the full record"
    )
