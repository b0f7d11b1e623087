"""`deskbus notify` as it is printed."""

import io
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from rich.console import Console

from contracts.notice import ChannelState, Notification, NotificationsPage
from libs.report.notify import channels
from libs.runtime.notify_settings import Notify
from services.cli.operating import notify
from tests.fakes.notices import notice

NOW = datetime(2026, 11, 25, 2, 0, tzinfo=UTC)
WIDTH = 80
LONG = "a-channel-with-a-name-that-is-quite-long"
NOTIFY = Notify.model_validate(
    {
        "channels": {"phone": {}, LONG: {"service": "webhook"}},
        "rules": {
            "a-rule-with-a-name-that-is-quite-long-42": {
                "events": ["decision", "fill", "stop", "approval", "halt", "budget", "failure"],
                "accounts": ["main", "second"],
                "to": ["phone", LONG],
                "digest": "30m",
            }
        },
    }
)


def console() -> Console:
    return Console(file=io.StringIO(), width=WIDTH)


def printed(made: Console) -> list[str]:
    assert isinstance(made.file, io.StringIO)
    return made.file.getvalue().splitlines()


def test_channels_are_listed_with_a_sentence_each_within_eighty_columns() -> None:
    states = [
        ChannelState(channel="phone", since=NOW, sent=12_345, sent_at=NOW - timedelta(minutes=5)),
        ChannelState(
            channel=LONG,
            since=NOW,
            waiting=1_200,
            failures=88,
            code="http_404",
            given_up=3,
            failed_at=NOW - timedelta(minutes=1),
        ),
    ]
    made = console()
    notify.show_channels(channels.of_settings(NOTIFY, {}, working=True), states, NOW, made)
    lines = printed(made)
    assert max(map(len, lines)) <= WIDTH
    text = " ".join(" ".join(lines).split())
    assert "phone apprise ok 0 12,345 0 0" in text
    assert "phone: last sent 5 min ago" in text
    assert "88 tries in a row failed (HTTP 404)" in text
    assert "→ the service knows no such address" in text
    assert "decision, fill, stop, approval, halt, budget, failure of main, second" in text


def test_without_a_channel_the_list_leads_to_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    notify.err.cache_clear()
    made = console()
    notify.show_channels(channels.of_settings(Notify(), {}, working=False), (), NOW, made)
    assert printed(made) == []
    assert "docs/notifications.md" in capsys.readouterr().err
    notify.err.cache_clear()


def message(title: str, **fields: Any) -> Notification:
    given: dict[str, Any] = {
        "number": 1,
        "channel": "phone",
        "notice": notice(title),
        "due_at": NOW,
        "status": "sent",
        "tries": 1,
        **fields,
    }
    return Notification(**given)


def test_history_is_one_line_a_message_however_long_it_is() -> None:
    page = NotificationsPage(
        notifications=(
            message("Decision of main for Fri 2012-06-29"),
            message("t" * 150, status="given_up", tries=12, code="unreachable"),
            message("wide", channel=LONG, status="due", gathered=True),
        )
    )
    made = console()
    notify.show_history(page, made)
    head, *lines = printed(made)
    assert head.split() == ["event", "channel", "status", "message"]
    assert len(lines) == 3
    assert max(map(len, lines)) <= WIDTH
    assert lines[0].endswith("Decision of main for Fri 2012-06-29")
    assert "given up" in lines[1]
    assert "waiting" in lines[2]


def test_a_name_that_can_be_none_of_a_channels_is_told_with_the_nearest_one() -> None:
    settings = notify.Settings(notify=NOTIFY)
    said = notify.unknown("Phone!", settings)
    assert (said.sent, said.code) == (False, "channel_unknown")
    assert said.message.endswith("; did you mean phone?")
    long = notify.unknown("x" * 5_000, settings)
    assert len(long.message) <= 400
