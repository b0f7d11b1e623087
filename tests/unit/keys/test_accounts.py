"""Accounts: what crosses between two of them is what one may say and the other may hear."""

from typing import Any

import pytest

from libs.bus.permissions import permissions
from libs.keys.accounts import NatsPermissions, accounts, covers, intersection


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        ("a.b", "a.b", "a.b"),
        ("a.*", "a.b", "a.b"),
        ("a.>", "a.b.c", "a.b.c"),
        ("a.>", "a.*.c", "a.*.c"),
        ("a.>", "a", None),
        ("a.*.c", "a.b.*", "a.b.c"),
        ("a.b", "a.b.c", None),
        ("a.b", "a.c", None),
        (">", "$JS.API.>", "$JS.API.>"),
        ("a.>", "a.>", "a.>"),
    ],
)
def test_two_patterns_have_the_subjects_in_common_that_both_stand_for(
    one: str, other: str, both: str | None
) -> None:
    assert intersection(one, other) == intersection(other, one) == both


def test_a_pattern_covers_what_it_stands_for() -> None:
    assert covers("a.>", "a.*.c")
    assert not covers("a.*.c", "a.>")


def _made(**given: NatsPermissions) -> Any:
    return accounts(given, {name: f"U{name}" for name in given})


def test_what_one_says_and_another_hears_crosses_and_nothing_else() -> None:
    made = _made(
        asks=NatsPermissions(("q.answers.asks", "other"), ("_INBOX_asks.>",)),
        answers=NatsPermissions(("_INBOX_asks.>",), ("q.answers.*",)),
    )

    assert made["asks"]["exports"] == [{"stream": "q.answers.asks", "accounts": ["answers"]}]
    assert made["answers"]["imports"] == [
        {"stream": {"account": "asks", "subject": "q.answers.asks"}}
    ]
    assert made["answers"]["exports"] == [{"stream": "_INBOX_asks.>", "accounts": ["asks"]}]


def test_the_streams_are_in_their_keepers_account_alone_and_reached_call_by_call() -> None:
    made = _made(
        keeps=NatsPermissions(("$JS.API.>",), ("_INBOX_keeps.>",), keeps=("cmd.>",)),
        says=NatsPermissions(("cmd.one", "$JS.API.STREAM.INFO.S"), ()),
        pulls=NatsPermissions(("$JS.API.CONSUMER.MSG.NEXT.S.d", "$JS.ACK.S.d.>"), ("cmd.>",)),
    )

    assert [name for name, each in made.items() if "jetstream" in each] == ["keeps"]
    assert made["keeps"]["exports"] == [
        {"service": "$JS.API.STREAM.INFO.S", "accounts": ["says"]},
        {"service": "cmd.one", "accounts": ["says"]},
        {"service": "$JS.ACK.S.d.>", "accounts": ["pulls"]},
        {
            "service": "$JS.API.CONSUMER.MSG.NEXT.S.d",
            "accounts": ["pulls"],
            "response_type": "stream",
        },
    ]


def test_nobody_shares_an_account_and_nobody_is_allowed_responses() -> None:
    allowed = permissions()
    made = _made(**allowed)

    assert {name for name, each in made.items() if "users" in each} == set(allowed)
    assert all(len(each.get("users", [])) <= 1 for each in made.values())
    assert "allow_responses" not in str(made)


def test_only_the_keeper_reaches_what_changes_a_stream() -> None:
    made = _made(**permissions())
    calls = {
        each["service"]["subject"]
        for name, account in made.items()
        for each in account.get("imports", [])
        if "service" in each and each["service"]["account"] == "provisioner"
    }
    changing = ("DELETE", "PURGE", "CREATE", "UPDATE", "RESTORE", "SNAPSHOT", ">")
    api = {call for call in calls if call.startswith("$JS.API.")}
    assert {call for call in api if any(word in call for word in changing)} == {
        "$JS.API.STREAM.MSG.DELETE.DEAD_LETTERS"
    }
