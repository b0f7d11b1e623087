"""`deskbus notify` as it is printed."""

import io
from datetime import UTC, datetime, timedelta
from typing import Any

from rich.console import Console

from contracts.notice import ChannelState, Notification
from libs.report.notify import channels
from libs.report.view import Table
from libs.runtime.notify_settings import Notify
from services.cli.operating import notify
from services.cli.render.described import described
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


def printed(table: Table) -> list[str]:
    console = Console(file=io.StringIO(), width=WIDTH)
    console.print(described(table, console))
    assert isinstance(console.file, io.StringIO)
    lines = console.file.getvalue().splitlines()
    assert max(map(len, lines)) <= WIDTH
    return lines


def test_channels_are_listed_with_a_sentence_each_within_eighty_columns() -> None:
    states = [
        ChannelState(channel="phone", sent=12_345, sent_at=NOW - timedelta(minutes=5)),
        ChannelState(channel=LONG, waiting=1_200, failures=88, code="http_404", given_up=3),
    ]
    view = channels.of_settings(NOTIFY, {}, {})
    text = " ".join(
        " ".join(printed(channels.channel_table(channels.standings(view, states, NOW)))).split()
    )
    assert "phone ok 0 12,345 0 0" in text.replace("apprise ", "")
    assert "phone: last sent 5 min ago" in text
    assert "88 tries failed (HTTP 404)" in text
    assert "→ the service knows no such address" in text
    printed(channels.rule_table(view.rules))


def test_without_a_channel_the_list_leads_to_the_page() -> None:
    assert "docs/notifications.md" in " ".join(printed(channels.channel_table(())))


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


def test_history_shows_each_message_and_what_became_of_it() -> None:
    messages = (
        message("Decision of main for Fri 2012-06-29"),
        message("t" * 150, status="given_up", tries=12, code="unreachable"),
        message("wide", channel=LONG, status="due", due_at=NOW + timedelta(hours=3)),
    )
    text = " ".join(" ".join(printed(channels.message_table(messages, 1, False))).split())
    for word in ("given up", "waiting", "unreachable", "1 message of a later version"):
        assert word in text, word
    assert "No message is like that" in "".join(printed(channels.message_table((), 0, True)))


def test_a_name_that_can_be_none_of_a_channels_is_refused_with_the_nearest_one() -> None:
    settings = notify.Settings(notify=NOTIFY)
    refused = notify.unknown("Phone!", settings)
    assert (refused.sent, refused.code) == (False, "channel_unknown")
    assert refused.message.endswith("; did you mean phone?")
    long = notify.unknown("x" * 5_000, settings)
    assert len(long.message) <= 400
