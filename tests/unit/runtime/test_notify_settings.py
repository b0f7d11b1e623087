"""The rules of `[notify]`: what is refused, when a digest goes out, which hours are quiet."""

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as some
from pydantic import ValidationError

from contracts.notice import NoticeKind
from libs.runtime.notify_settings import (
    DEFAULT_EVENTS,
    KINDS,
    Notify,
    next_digest,
    quiet_until,
)
from libs.runtime.settings import Settings
from libs.runtime.wording import describe

BERLIN = ZoneInfo("Europe/Berlin")
MOMENTS = some.integers(0, 10 * 366 * 86_400).map(
    lambda second: datetime(2020, 1, 1, tzinfo=UTC) + timedelta(seconds=second)
)
PHONE: dict[str, Any] = {"phone": {}}


def rule(**fields: Any) -> dict[str, Any]:
    return {"channels": PHONE, "rules": {"mine": {"events": ["fill"], "to": ["phone"], **fields}}}


def refusal(given: dict[str, Any]) -> str:
    with pytest.raises(ValidationError) as refused:
        Notify.model_validate(given)
    return describe(refused.value, Notify)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (rule(events=["fil"]), "did you mean fill?"),
        (rule(events=["order_fild"]), "did you mean order_filled?"),
        (rule(events=["llm_called"]), "unknown event 'llm_called'"),
        (
            rule(to=["fone"]),
            "channel 'fone' does not exist; the channels are phone; did you mean phone?",
        ),
        (rule(digest="90s"), "digest"),
        (rule(digest="1441m"), "24 hours at most"),
        (rule(quiet="22-7"), "quiet"),
        (rule(severity="loud"), "severity"),
        (rule(event=["fill"]), "event"),
        (rule(accounts=["Main"]), "accounts"),
        ({"time_zone": "Europe/Berlim"}, "unknown time zone 'Europe/Berlim'"),
        ({"base_url": "desk.example.org"}, "https://"),
        ({"base_url": "https://me:pw@desk.example.org"}, "no login"),
        ({"base_url": "https://desk.example.org/?token=1"}, "no ?"),
        ({"channels": {"a-b": {}, "a_b": {}}}, "is that of channel a-b already"),
        ({"channels": {"ops": {}, "ops_key": {}}}, "is that of channel ops already"),
        ({"channels": {"quiet": {}}}, "is that of the setting notify.quiet already"),
        ({"channels": {"phone": {"service": "pigeon"}}}, "service"),
        ({"channels": {"phone": {"url": "ntfy://secret"}}}, "url"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_a_hint(given: dict[str, Any], says: str) -> None:
    assert says in refusal(given)


def test_an_address_among_the_settings_is_refused_and_not_repeated() -> None:
    """It is a secret, and stands in the environment or a file of its own."""
    assert "ntfy://secret" not in refusal({"channels": {"phone": {"url": "ntfy://secret"}}})


@pytest.mark.parametrize("events", [["order_*"], ["fill", "decision"], ["*"], ["trading_halted"]])
def test_events_go_by_what_they_are_and_by_type(events: list[str]) -> None:
    assert Notify.model_validate(rule(events=events)).rules["mine"].events == tuple(events)


def test_without_rules_every_channel_is_told_what_matters() -> None:
    notify = Notify.model_validate({"channels": {"phone": {}, "ops": {"service": "webhook"}}})
    (only,) = notify.rules_in_force.values()
    assert (only.events, only.to) == (DEFAULT_EVENTS, ("phone", "ops"))
    assert set(DEFAULT_EVENTS) <= set(KINDS)


def test_without_channels_there_is_nothing_to_do() -> None:
    assert Settings().notify.rules_in_force == {}


def test_no_rule_can_ask_for_tests() -> None:
    assert NoticeKind.TEST.value not in KINDS


@pytest.mark.parametrize(
    ("digest", "after", "goes_out"),
    [
        ("30m", "2026-11-25 09:10", "2026-11-25 09:30"),
        ("30m", "2026-11-25 09:30", "2026-11-25 10:00"),
        ("2h", "2026-11-25 09:10", "2026-11-25 10:00"),
        ("7h", "2026-11-25 22:10", "2026-11-26 00:00"),
        ("18:00", "2026-11-25 09:10", "2026-11-25 18:00"),
        ("18:00", "2026-11-25 18:00", "2026-11-26 18:00"),
        # On the night of 25 October 2026 the hour from 02:00 comes twice.
        ("1h", "2026-10-25 01:30", "2026-10-25 02:00"),
        ("03:00", "2026-10-24 12:00", "2026-10-25 03:00"),
        # On that of 28 March 2027 it does not come.
        ("1h", "2027-03-28 01:30", "2027-03-28 03:00"),
    ],
)
def test_a_digest_goes_out_at_the_next_full_period_or_time(
    digest: str, after: str, goes_out: str
) -> None:
    at = datetime.fromisoformat(after).replace(tzinfo=BERLIN).astimezone(UTC)
    found = next_digest(digest, at, BERLIN)
    assert f"{found.astimezone(BERLIN):%Y-%m-%d %H:%M}" == goes_out


@pytest.mark.parametrize(
    ("quiet", "at", "until"),
    [
        ("22:00-07:00", "2026-11-25 21:59", None),
        ("22:00-07:00", "2026-11-25 22:00", "2026-11-26 07:00"),
        ("22:00-07:00", "2026-11-26 06:59", "2026-11-26 07:00"),
        ("22:00-07:00", "2026-11-26 07:00", None),
        ("12:00-13:00", "2026-11-26 12:30", "2026-11-26 13:00"),
        ("22:00-07:00", "2026-10-25 01:00", "2026-10-25 07:00"),
    ],
)
def test_quiet_hours_are_those_of_the_zone_and_may_pass_midnight(
    quiet: str, at: str, until: str | None
) -> None:
    moment = datetime.fromisoformat(at).replace(tzinfo=BERLIN).astimezone(UTC)
    found = quiet_until(quiet, moment, BERLIN)
    assert (None if found is None else f"{found.astimezone(BERLIN):%Y-%m-%d %H:%M}") == until


@given(
    at=MOMENTS,
    digest=some.sampled_from(["1m", "30m", "7h", "24h", "00:00", "02:30", "18:00"]),
    zone=some.sampled_from(["UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu"]),
)
def test_a_digest_always_lies_ahead_and_at_most_a_day_and_a_clocks_change_away(
    at: datetime, digest: str, zone: str
) -> None:
    ahead = next_digest(digest, at, ZoneInfo(zone)) - at
    assert 0 < ahead.total_seconds() <= 25 * 3600


@given(
    at=MOMENTS,
    quiet=some.sampled_from(["22:00-07:00", "02:00-03:00", "00:00-23:59", "12:00-12:00"]),
    zone=some.sampled_from(["UTC", "Europe/Berlin", "America/New_York"]),
)
def test_the_end_of_quiet_hours_lies_ahead_and_is_not_quiet_itself_unless_they_never_end(
    at: datetime, quiet: str, zone: str
) -> None:
    end = quiet_until(quiet, at, ZoneInfo(zone))
    if end is not None:
        assert end > at
        assert (end - at).total_seconds() <= 25 * 3600


def test_the_settings_show_rules_and_channels_in_words() -> None:
    notify = Notify.model_validate(rule(accounts=["main"], severity="warning", digest="30m"))
    assert str(notify) == (
        "channels phone (apprise); rules mine: fill of main from warning on to phone every 30m"
    )
