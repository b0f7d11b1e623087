"""How channels fare, in words: one sentence and one thing to do, the same at every edge."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from contracts.notice import ChannelShown, ChannelState, ChannelsView, Notification
from libs.report.notify import channels
from libs.report.notify.channels import ChannelHealth, ChannelStanding
from libs.runtime.notify_settings import Notify
from tests.fakes.notices import notice

NOW = datetime(2026, 11, 25, 2, 0, tzinfo=UTC)


def ago(**span: float) -> datetime:
    return NOW - timedelta(**span)


def line(
    problem: str = "",
    rules: tuple[str, ...] = ("trades",),
    since: datetime | None = None,
    **state: Any,
) -> ChannelStanding:
    """The standing of one channel with this on record; nothing where no state is given."""
    shown = ChannelShown(name="phone", service="apprise", rules=rules, problem=problem, since=since)
    known = [ChannelState(channel="phone", **state)] if state else []
    (made,) = channels.standings(ChannelsView(channels=(shown,)), known, NOW)
    return made


def test_a_channel_that_takes_messages_says_when_it_did_last() -> None:
    made = line(sent=4, sent_at=ago(minutes=5))
    assert made.standing is ChannelHealth.OK
    assert (made.finding, made.todo, made.lost) == ("last sent 5 min ago", "", "")


def test_what_waits_is_said_with_the_age_of_the_oldest() -> None:
    made = line(sent=4, sent_at=ago(minutes=5), waiting=3, oldest_at=ago(hours=2))
    assert made.finding == "last sent 5 min ago; 3 messages waiting, the oldest for 2 h"
    assert line(sent_at=ago(minutes=5), waiting=1).finding.endswith("; 1 message waiting")


def test_a_channel_that_fails_says_how_often_and_why() -> None:
    failing = {"code": "http_401", "failing_since": ago(minutes=20), "sent_at": ago(hours=5)}
    made = line(failures=3, **failing)
    assert made.standing is ChannelHealth.FAILING
    assert made.finding == "failing for 20 min: 3 tries failed (HTTP 401); last sent 5 h ago"
    assert made.todo.startswith("the service refuses the address")


@pytest.mark.parametrize(
    ("since", "first", "lost"),
    [
        (ago(hours=3), ago(hours=4), True),
        (ago(hours=2), ago(hours=1), False),
        (ago(days=8), ago(days=9), False),
        (None, ago(hours=1), False),
        (ago(hours=1), None, False),
    ],
)
def test_a_lost_store_of_nats_is_said_for_a_week(
    since: datetime | None, first: datetime | None, lost: bool
) -> None:
    made = line(since=since, first_at=first, given_up=2, lost=2)
    assert bool(made.lost) is lost
    if lost:
        assert made.lost == (
            "NATS lost its store 3 h ago: messages that waited then are lost (2 of them on record)"
        )


def test_a_code_that_nobody_foresaw_still_leads_somewhere() -> None:
    assert line(failures=1, code="http_599").todo == channels.NOT_TAKEN


def test_a_channel_without_an_address_says_what_is_missing_before_anything_else() -> None:
    missing = "neither DESKBUS_NOTIFY_PHONE is set, nor is there a file x"
    made = line(missing, failures=4, code="not_set", waiting=2)
    assert made.standing is ChannelHealth.UNUSABLE
    assert made.finding == f"{missing}; 2 messages waiting"
    assert made.todo.startswith("set its address")


def test_a_channel_that_no_rule_names_says_so() -> None:
    assert line(rules=()).finding == "no rule sends anything to it"


def test_a_channel_that_the_desk_has_not_seen_yet_is_new() -> None:
    made = line()
    assert (made.standing, made.finding) == (ChannelHealth.NEW, "nothing was sent yet")


def test_a_channel_that_left_the_settings_is_listed_while_something_waits_for_it() -> None:
    states = [
        ChannelState(channel="gone", waiting=2),
        ChannelState(channel="done", sent=70),
    ]
    (made,) = channels.standings(ChannelsView(), states, NOW)
    assert (made.name, made.standing) == ("gone", ChannelHealth.REMOVED)
    assert made.finding == "not in the settings any more; 2 messages waiting"


def message(**fields: Any) -> Notification:
    given = {"number": 1, "channel": "phone", "notice": notice(), "due_at": NOW, **fields}
    return Notification(**given)


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"status": "sent", "tries": 1}, ""),
        ({"status": "sent", "tries": 4}, "after 4 tries"),
        ({"status": "due"}, ""),
        ({"status": "due", "due_at": NOW + timedelta(hours=5)}, "until 11-25 07:00"),
        ({"status": "due", "tries": 2, "code": "tls"}, "2 tries failed (tls)"),
        ({"status": "given_up", "tries": 9, "code": "http_500"}, "after 9 tries (HTTP 500)"),
    ],
)
def test_what_became_of_a_message_is_said_as_far_as_its_status_does_not(
    fields: dict[str, Any], text: str
) -> None:
    assert channels.result_of(message(**fields)) == text


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
    view = channels.of_settings(notify, {"ops": "its key is missing"}, {"phone": NOW})
    assert [(it.name, it.rules, it.problem, it.since) for it in view.channels] == [
        ("phone", ("trades", "loud"), "", NOW),
        ("ops", (), "its key is missing", None),
    ]
    rows = channels.rule_table(view.rules).rows
    assert [[cell.text for cell in row.cells] for row in rows] == [
        ["trades", "fill", "main", "info", "phone", "at once, but for 22:00-07:00 UTC"],
        ["loud", "*", "all", "alarm", "phone", "at once"],
    ]
