"""The hint under an error: the command as it was probably meant."""

import sys
from pathlib import Path

import pytest

from services.cli.shell.typed import in_another_directory, meant, on_another_account


def test_a_trial_runs_on_an_account_and_in_a_directory_that_are_not_those_that_were_named() -> None:
    typed = ["cycle", "request", "--as-of", "2012-06-29", "--account", "test"]
    assert on_another_account(typed, "2012-06-29") == (
        "deskbus cycle request --as-of 2012-06-29 --account test2"
    )
    assert in_another_directory(["schedule", "list"], Path("a/.deskbus-replay")) == (
        "export DESKBUS_DATA_DIR=.deskbus-replay-2; deskbus up --detach; deskbus schedule list"
    )


@pytest.mark.parametrize(
    ("typed", "word", "near", "hint"),
    [
        (["portfolio", "mian"], "mian", "main", "deskbus portfolio main"),
        (["tail", "ordr_*"], "ordr_*", "order_*", "deskbus tail 'order_*'"),
        (
            ["cycle", "show", "--evidence=appl"],
            "APPL",
            "AAPL",
            "deskbus cycle show --evidence=AAPL",
        ),
        (
            ["run", "--provider", "rules", "--provider", "ruls", "--max-cost", "1"],
            "ruls",
            "rules",
            "deskbus run --provider rules --max-cost 1",
        ),
        (["run", "--universe", "AAPL,APPL"], "APPL", "AAPL", "deskbus run --universe AAPL"),
        (
            ["run", "--account", "rules", "--provider", "ruls"],
            "ruls",
            "rules",
            "deskbus run --account rules --provider rules",
        ),
        (["trades"], "main", "mine", ""),
        (["trades", "mian"], "mian", None, ""),
        (["trades", "mian"], None, "main", ""),
    ],
)
def test_the_nearest_name_stands_in_place_of_what_was_typed(
    typed: list[str],
    word: str | None,
    near: str | None,
    hint: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "argv", ["deskbus", *typed])

    assert meant(word, near) == hint
