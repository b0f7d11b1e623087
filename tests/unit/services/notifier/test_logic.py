"""What is due where and when, what goes in one message, how long a failure is waited for."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from contracts.audit import EventType
from contracts.notice import DueNotice, Notice, Severity
from libs.report.notify import channels
from libs.runtime.notify_settings import ChannelSettings, Notify
from services.notifier import logic
from tests.fakes.notable import notable, notice

NIGHT = datetime(2026, 11, 25, 23, 10, tzinfo=UTC)
MORNING = datetime(2026, 11, 26, 7, 0, tzinfo=UTC)
CHANNEL = ChannelSettings()


def notify(*rules: dict[str, Any], **others: Any) -> Notify:
    return Notify.model_validate(
        {
            "channels": {"phone": {}, "ops": {}},
            "rules": {f"rule-{n}": {"to": ["phone"], **each} for n, each in enumerate(rules)},
            **others,
        }
    )


def due(*notices: Notice, gathered: bool = False, at: datetime = NIGHT) -> list[DueNotice]:
    return [DueNotice(notice=each, due_at=at, gathered=gathered) for each in notices]


@pytest.mark.parametrize(
    ("rule", "is_told"),
    [
        ({"events": ["fill"]}, True),
        ({"events": ["order_filled"]}, True),
        ({"events": ["order_*"]}, True),
        ({"events": ["decision"]}, False),
        ({"events": ["fill"], "accounts": ["main"]}, True),
        ({"events": ["fill"], "accounts": ["other"]}, False),
        ({"events": ["fill"], "severity": "warning"}, False),
    ],
)
def test_a_rule_tells_of_its_events_accounts_and_severities(
    rule: dict[str, Any], is_told: bool
) -> None:
    assert bool(logic.kept(notable(EventType.ORDER_FILLED), notify(rule))) is is_told


def test_what_is_about_no_account_is_told_to_those_who_hear_of_one() -> None:
    rule = {"events": ["halt"], "accounts": ["main"]}
    assert logic.kept(notable(EventType.TRADING_HALTED), notify(rule))


def test_two_rules_tell_a_channel_once_at_the_earlier_time() -> None:
    event = notable(EventType.ORDER_FILLED, NIGHT)
    told = logic.kept(event, notify({"events": ["fill"], "digest": "2h"}, {"events": ["*"]}))
    assert told is not None
    (only,) = told.due
    assert (only.channel, only.due_at, only.gathered) == ("phone", NIGHT, False)


def test_what_is_due_goes_by_the_events_own_time_whatever_this_machines_clock_says() -> None:
    long_ago = datetime(2001, 1, 1, 12, 10, tzinfo=UTC)
    told = logic.kept(
        notable(EventType.ORDER_FILLED, long_ago), notify({"events": ["fill"], "digest": "30m"})
    )
    assert told is not None
    assert told.due[0].due_at == datetime(2001, 1, 1, 12, 30, tzinfo=UTC)


def test_in_quiet_hours_nothing_is_due_but_an_alarm() -> None:
    quiet = notify({"events": ["*"]}, quiet="22:00-07:00")
    held = logic.kept(notable(EventType.ORDER_FILLED, NIGHT), quiet)
    rings = logic.kept(notable(EventType.TRADING_HALTED, NIGHT), quiet)
    assert held is not None
    assert rings is not None
    assert held.due[0].due_at == MORNING
    assert rings.due[0].due_at == NIGHT


def test_a_rule_may_have_no_quiet_hours() -> None:
    told = logic.kept(
        notable(EventType.ORDER_FILLED, NIGHT),
        notify({"events": ["*"], "quiet": "none"}, quiet="22:00-07:00"),
    )
    assert told is not None
    assert told.due[0].due_at == NIGHT


def test_what_a_channel_never_got_is_told_over_the_others() -> None:
    lost = notable(EventType.NOTICES_GIVEN_UP, channel="phone")
    told = logic.kept(lost, notify({"events": ["undelivered"], "to": ["phone", "ops"]}))
    assert told is not None
    assert [each.channel for each in told.due] == ["ops"]
    assert logic.kept(lost, notify({"events": ["undelivered"]})) is None


def test_at_once_means_one_message_each_until_many_wait() -> None:
    several = due(*(notice(str(n)) for n in range(logic.GATHER_FROM - 1)))
    many = due(*(notice(str(n)) for n in range(logic.GATHER_FROM)))
    step = logic.step(several, NIGHT, "phone", CHANNEL, Notify())
    assert [each.title for each in step.message] == ["0"]
    caught_up = logic.step(many, NIGHT, "phone", CHANNEL, Notify())
    assert len(caught_up.message) == logic.GATHER_FROM


def test_a_digest_is_one_message_and_does_not_take_along_what_comes_after() -> None:
    waiting = [*due(notice("0"), notice("1"), gathered=True), *due(notice("2"))]
    step = logic.step(waiting, NIGHT, "phone", CHANNEL, Notify())
    assert [each.title for each in step.message] == ["0", "1"]


def test_after_a_refused_message_each_goes_alone() -> None:
    waiting = due(notice("0"), notice("1"), gathered=True)
    step = logic.step(waiting, NIGHT, "phone", CHANNEL, Notify(), alone=True)
    assert [each.title for each in step.message] == ["0"]


LONG_AGO = NIGHT - timedelta(days=30)


def test_what_is_too_old_is_given_up_by_when_it_was_due() -> None:
    patience = timedelta(seconds=CHANNEL.give_up_after_s)
    digest = due(notice("old event", at=NIGHT - 2 * patience), at=NIGHT)
    late = due(notice("late"), at=NIGHT - patience - timedelta(seconds=1))
    step = logic.step([*late, *digest], NIGHT, "phone", CHANNEL, Notify(), failing_since=LONG_AGO)
    assert [each.title for each in step.given_up] == ["late"]
    assert step.message == ()
    assert logic.step(digest, NIGHT, "phone", CHANNEL, Notify(), failing_since=LONG_AGO).message


@pytest.mark.parametrize("failing_since", [None, NIGHT - timedelta(minutes=5)])
def test_what_is_late_for_another_reason_than_the_channel_is_not_given_up(
    failing_since: datetime | None,
) -> None:
    """The desk stood still over a holiday, or a clock jumped; the network may still be away."""
    late = due(notice("late"), at=LONG_AGO)
    step = logic.step(late, NIGHT, "phone", CHANNEL, Notify(), failing_since=failing_since)
    assert (step.given_up, [each.title for each in step.message]) == ((), ["late"])


def test_a_clock_that_jumps_back_gives_nothing_up_and_ends_quiet_hours_by_itself() -> None:
    """Kept in the night, and now it is the evening before."""
    quiet = notify({"events": ["*"]}, quiet="22:00-07:00")
    before = NIGHT - timedelta(hours=6)
    step = logic.step(due(notice("x")), before, "phone", CHANNEL, quiet, failing_since=NIGHT)
    assert (step.given_up, step.held) == ((), ())
    assert [each.title for each in step.message] == ["x"]


def test_what_was_not_sent_by_nightfall_waits_for_the_morning() -> None:
    quiet = notify({"events": ["*"]}, quiet="22:00-07:00")
    step = logic.step(due(notice("x")), NIGHT, "phone", CHANNEL, quiet)
    assert (len(step.held), step.held_until) == (1, MORNING)


def test_what_no_rule_tells_any_more_is_sent_all_the_same() -> None:
    """It was due when it was kept, and rules change at a restart."""
    quiet = notify({"events": ["halt"]}, quiet="22:00-07:00")
    step = logic.step(due(notice("x")), NIGHT, "phone", CHANNEL, quiet)
    assert step.message


@given(
    failures=some.integers(0, 200),
    asked=some.none() | some.floats(0, 3_600),
    chance=some.floats(0, 1),
)
def test_waits_grow_to_a_bound_and_are_never_shorter_than_asked_for(
    failures: int, asked: float | None, chance: float
) -> None:
    wait_s = logic.backoff_s(failures, asked, chance)
    assert wait_s >= (asked or 0)
    assert wait_s <= max(logic.BACKOFF_S_MAX * (1 + logic.JITTER), asked or 0)
    assert logic.backoff_s(failures + 1, None, chance) >= logic.backoff_s(failures, None, chance)


def test_rules_and_problems_are_shown_and_no_address() -> None:
    view = channels.of_settings(
        notify({"events": ["fill"], "digest": "30m"}, quiet="22:00-07:00"),
        {"ops": "neither DESKBUS_NOTIFY_OPS is set, nor is there a file"},
        working=True,
    )
    phone, ops = view.channels
    assert (phone.rules, phone.problem) == (("rule-0",), "")
    assert (ops.rules, bool(ops.problem)) == ((), True)
    assert view.rules[0].when == "every 30m, but for 22:00-07:00 UTC"
    assert view.rules[0].severity is Severity.INFO
