"""How channels fare, in words: one sentence and one thing to do, the same at every edge."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from contracts.notice import ChannelShown, ChannelState, ChannelsView, Notification
from libs.report.notify import channels
from libs.report.notify.channels import Line, Standing
from libs.report.tones import Tone
from libs.runtime.notify_settings import Notify
from tests.fakes.notices import notice

NOW = datetime(2026, 11, 25, 2, 0, tzinfo=UTC)


def ago(**span: float) -> datetime:
    return NOW - timedelta(**span)


def line(problem: str = "", rules: tuple[str, ...] = ("trades",), **state: Any) -> Line:
    """The line of one channel with this on record; nothing where no state is given."""
    shown = ChannelShown(name="phone", service="apprise", rules=rules, problem=problem)
    known = [ChannelState(channel="phone", since=ago(days=1), **state)] if state else []
    (made,) = channels.lines(ChannelsView(channels=(shown,)), known, NOW)
    return made


def test_a_channel_that_takes_messages_says_when_it_did_last() -> None:
    made = line(sent=4, sent_at=ago(minutes=5))
    assert (made.standing, made.tone) == (Standing.OK, Tone.GOOD)
    assert (made.finding, made.todo) == ("last sent 5 min ago", "")


def test_what_waits_is_said_with_the_age_of_the_oldest() -> None:
    made = line(sent=4, sent_at=ago(minutes=5), waiting=3, oldest_at=ago(hours=2))
    assert made.finding == "last sent 5 min ago; 3 messages waiting, the oldest for 2 h"
    assert line(sent_at=ago(minutes=5), waiting=1).finding.endswith("; 1 message waiting")


def test_a_channel_that_fails_says_how_often_why_and_when_it_is_tried_again() -> None:
    made = line(
        failures=3,
        code="http_401",
        failing_since=ago(minutes=20),
        failed_at=ago(minutes=2),
        sent_at=ago(hours=5),
        next_try_at=NOW + timedelta(minutes=4),
    )
    assert (made.standing, made.tone) == (Standing.FAILING, Tone.BAD)
    assert made.finding == (
        "failing for 20 min: 3 tries in a row failed (HTTP 401), the last 2 min ago; "
        "last sent 5 h ago; next try in 4 min"
    )
    assert made.todo.startswith("the service refuses the address")


def test_a_try_that_is_due_by_now_is_not_announced() -> None:
    made = line(failures=1, code="timeout", next_try_at=ago(seconds=1))
    assert made.finding == "1 try in a row failed (timeout); nothing was sent yet"


def test_a_code_that_nobody_foresaw_still_leads_somewhere() -> None:
    assert line(failures=1, code="http_599").todo == channels.NOT_TAKEN


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("smtp_login_535", "user or password"),
        ("smtp_recipient_550", "recipient"),
        ("smtp_recipient_450", "tried again"),
        ("wrong_address", "no such chat, channel or topic"),
        ("unreachable", "nobody answers"),
    ],
)
def test_what_to_do_differs_by_who_is_at_fault(code: str, says: str) -> None:
    assert says in line(failures=1, code=code).todo


def test_a_channel_without_an_address_says_what_is_missing_before_anything_else() -> None:
    missing = "neither DESKBUS_NOTIFY_PHONE is set, nor is there a file x"
    made = line(missing, failures=4, code="not_set", waiting=2)
    assert made.standing is Standing.UNUSABLE
    assert made.finding == f"{missing}; 2 messages waiting"
    assert made.todo.startswith("set its address")


def test_a_channel_that_no_rule_names_says_so() -> None:
    assert line(rules=()).finding == "no rule sends anything to it"


def test_a_channel_that_the_desk_has_not_seen_yet_is_new() -> None:
    made = line()
    assert (made.standing, made.finding, made.state) == (Standing.NEW, "nothing was sent yet", None)


def test_a_channel_that_left_the_settings_is_listed_while_something_waits_for_it() -> None:
    states = [
        ChannelState(channel="gone", since=ago(days=9), waiting=2),
        ChannelState(channel="done", since=ago(days=9), sent=70),
    ]
    (made,) = channels.lines(ChannelsView(), states, NOW)
    assert (made.name, made.standing) == ("gone", Standing.REMOVED)
    assert made.finding == "not in the settings any more; 2 messages waiting"


def message(**fields: Any) -> Notification:
    given = {"number": 1, "channel": "phone", "notice": notice(), "due_at": NOW, **fields}
    return Notification(**given)


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"status": "sent", "tries": 1}, ""),
        ({"status": "sent", "tries": 2}, "after 1 failed try"),
        ({"status": "sent", "tries": 4}, "after 3 failed tries"),
        ({"status": "due"}, ""),
        ({"status": "due", "gathered": True}, "in a digest"),
        ({"status": "due", "tries": 2, "code": "tls", "gathered": True}, "2 tries failed (tls)"),
        ({"status": "given_up", "tries": 9, "code": "http_500"}, "after 9 tries (HTTP 500)"),
    ],
)
def test_what_became_of_a_message_is_said_as_far_as_its_status_does_not(
    fields: dict[str, Any], text: str
) -> None:
    assert channels.outcome(message(**fields)) == text


def test_the_settings_are_shown_as_the_notifier_shows_them_and_hold_no_address() -> None:
    notify = Notify.model_validate(
        {
            "quiet": "22:00-07:00",
            "channels": {"phone": {}, "ops": {"service": "webhook"}},
            "rules": {
                "trades": {"events": ["fill"], "accounts": ["main"], "to": ["phone"]},
                "loud": {"events": ["*"], "severity": "alarm", "to": ["phone"], "quiet": "none"},
            },
        }
    )
    view = channels.of_settings(notify, {"ops": "its key is missing"}, working=True)
    assert [(each.name, each.rules, each.problem) for each in view.channels] == [
        ("phone", ("trades", "loud"), ""),
        ("ops", (), "its key is missing"),
    ]
    assert list(map(channels.rule_in_words, view.rules)) == [
        "fill of main, to phone: at once, but for 22:00-07:00 UTC",
        "* from alarm on, to phone: at once",
    ]
