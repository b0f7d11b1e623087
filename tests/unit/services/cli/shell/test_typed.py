"""The hint under an error: the command as it was probably meant."""

import sys

import pytest

from services.cli.shell.typed import meant


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
