"""A problem read from what another `deskbus` wrote."""

import pytest

from services.cli.shell.problem import CliProblem

PROGRESS = "    0 ms  starting NATS, Postgres and the services\n"


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        ("deskbus: no room\n", "no room", ""),
        (f"{PROGRESS}deskbus: no room\n  → make some\n", "no room", "make some"),
        (f"{PROGRESS}deskbus: two\nlines\n  → a\n    b\n", "two\nlines", "a\n    b"),
    ],
)
def test_it_is_the_reason_and_the_hint_alone(words: str, message: str, hint: str) -> None:
    problem = CliProblem.in_words(words)
    assert problem is not None
    assert (problem.message, problem.hint) == (message, hint)


def test_who_was_killed_has_left_none() -> None:
    assert CliProblem.in_words(PROGRESS) is None
