"""Which channels a notice goes to and when, and how long a failed channel rests."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from contracts.audit import Event, EventType
from libs.report.notify import channels, notices
from libs.runtime.notify_settings import Notify
from services.notifier import logic
from tests.fakes.notable import notable

NIGHT = datetime(2026, 11, 25, 23, 10, tzinfo=UTC)
MORNING = datetime(2026, 11, 26, 7, 0, tzinfo=UTC)


def notify(*rules: dict[str, Any], **others: Any) -> Notify:
    return Notify.model_validate(
        {
            "channels": {"phone": {}, "ops": {}},
            "rules": {f"rule-{n}": {"to": ["phone"], **rule} for n, rule in enumerate(rules)},
            **others,
        }
    )


def due(
    event: Event, settings: Notify, channel: str = "phone", now: datetime = NIGHT
) -> datetime | None:
    return logic.due_at(notices.of(event), event, channel, settings, now)


@pytest.mark.parametrize(
    ("rule", "fits"),
    [
        ({"events": ["fill"]}, True),
        ({"events": ["order_filled"]}, True),
        ({"events": ["order_*"]}, True),
        ({"events": ["decision"]}, False),
        ({"events": ["fill"], "accounts": ["main"]}, True),
        ({"events": ["fill"], "accounts": ["other"]}, False),
        ({"events": ["fill"], "severity": "warning"}, False),
        ({"events": ["fill"], "to": ["ops"]}, False),
    ],
)
def test_a_rule_is_about_its_events_accounts_severities_and_channels(
    rule: dict[str, Any], fits: bool
) -> None:
    assert (due(notable(EventType.ORDER_FILLED), notify(rule)) is not None) is fits


def test_a_sell_check_is_one_message_and_a_second_one_only_where_something_is_wrong() -> None:
    wrong = notable(EventType.EXITS_CHECKED)
    fine = notable(EventType.EXITS_CHECKED, checks=[], warnings=[])
    old_rules = notable(EventType.EXITS_CHECKED, checks=[], warnings=["the rules of before"])
    everything = notify({"events": ["*"]})
    assert due(fine, everything) is None
    assert due(wrong, everything)
    assert due(old_rules, everything)


def test_sales_of_a_sell_check_are_exits_and_other_decisions_are_not() -> None:
    decided = notable(EventType.DECISION)
    sale = {**decided.data["decisions"][0], "action": "sell", "plan": None, "exit": {}}
    exits = notable(EventType.DECISION, decisions=[sale])
    rule = notify({"events": ["exit"]})
    assert due(exits, rule)
    assert due(decided, rule) is None


def test_what_is_about_no_account_fits_a_rule_of_one() -> None:
    rule = {"events": ["halt"], "accounts": ["main"]}
    assert due(notable(EventType.TRADING_HALTED), notify(rule))


def test_two_rules_send_at_the_earlier_time() -> None:
    event = notable(EventType.ORDER_FILLED, NIGHT)
    assert due(event, notify({"events": ["fill"], "digest": "2h"}, {"events": ["*"]})) == NIGHT


def test_a_digest_gathers_from_the_events_own_time_on_and_ends_once() -> None:
    event = notable(EventType.ORDER_FILLED, NIGHT)
    digest = notify({"events": ["fill"], "digest": "30m"})
    assert due(event, digest) == NIGHT.replace(minute=30)
    assert due(event, digest, now=MORNING) == MORNING, "it comes late, and waits for no other"


def test_in_quiet_hours_all_but_alarms_wait_for_the_morning() -> None:
    quiet = notify({"events": ["*"]}, quiet="22:00-07:00")
    assert due(notable(EventType.ORDER_FILLED, NIGHT), quiet) == MORNING
    assert due(notable(EventType.TRADING_HALTED, NIGHT), quiet) == NIGHT


def test_a_notice_that_was_not_sent_by_nightfall_waits_for_the_morning() -> None:
    quiet = notify({"events": ["*"]}, quiet="22:00-07:00")
    evening = NIGHT.replace(hour=21)
    event = notable(EventType.ORDER_FILLED, evening)
    assert due(event, quiet, now=evening) == evening
    assert due(event, quiet) == MORNING


def test_a_digest_that_ends_in_quiet_hours_waits_for_their_end() -> None:
    quiet = notify({"events": ["*"], "digest": "30m"}, quiet="23:20-07:00")
    assert due(notable(EventType.ORDER_FILLED, NIGHT), quiet) == MORNING


def test_a_rule_may_have_no_quiet_hours() -> None:
    settings = notify({"events": ["*"], "quiet": "none"}, quiet="22:00-07:00")
    assert due(notable(EventType.ORDER_FILLED, NIGHT), settings) == NIGHT


def test_the_failure_of_a_channel_goes_over_the_others() -> None:
    lost = notable(EventType.NOTICES_GIVEN_UP, channel="phone")
    both = notify({"events": ["undelivered"], "to": ["phone", "ops"]})
    assert due(lost, both) is None
    assert due(lost, both, "ops") == NIGHT


@given(failures=some.integers(1, 200), chance=some.floats(0, 1))
def test_waits_grow_to_a_bound(failures: int, chance: float) -> None:
    wait_s = logic.backoff_s(failures, "timeout", chance)
    assert 0 < wait_s <= logic.BACKOFF_S_MAX * (1 + logic.JITTER)
    assert logic.backoff_s(failures + 1, "timeout", chance) >= wait_s


def test_a_service_that_asks_for_fewer_messages_is_left_alone_for_longer() -> None:
    assert logic.backoff_s(1, "http_429", 0.5) == logic.SLOW_DOWN_S


def test_rules_and_problems_are_shown_and_no_address() -> None:
    view = channels.of_settings(
        notify({"events": ["fill"], "digest": "30m"}, quiet="22:00-07:00"),
        {"ops": "neither DESKBUS_NOTIFY_OPS is set, nor is there a file"},
        {"phone": NIGHT},
    )
    phone, ops = view.channels
    assert (phone.rules, phone.problem, phone.since) == (("rule-0",), "", NIGHT)
    assert (ops.rules, bool(ops.problem), ops.since) == ((), True, None)
    assert view.rules[0].when == "every 30m, but for 22:00-07:00 UTC"
