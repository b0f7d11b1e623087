"""Notices as text: escaped for the channel, within its limits, in order."""

from datetime import timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as some

from contracts.notice import LINE_CHARS_MAX, LINES_MAX, TITLE_CHARS_MAX, Severity
from libs.report.notify.messages import ESCAPES, JOINER, Style, compose
from tests.fakes.notable import AT, notice

WIDE = Style(title_chars_max=250, body_chars_max=8_000)
MARKUP = "A_B*C[x](y)<b>&`~|#\\"


def test_one_notice_is_its_title_and_its_lines() -> None:
    text = compose([notice("main: sold 3 AAPL", lines=("fee 1.00",))], AT, WIDE)
    assert (text.title, text.body) == ("main: sold 3 AAPL", "fee 1.00")


def test_a_notice_without_lines_has_its_title_as_body() -> None:
    assert compose([notice("main: sold 3 AAPL")], AT, WIDE).body == "main: sold 3 AAPL"


def test_how_serious_it_is_stands_first() -> None:
    assert compose([notice("x", severity=Severity.ALARM)], AT, WIDE).title == "Alarm: x"


def test_several_go_in_one_message_in_order() -> None:
    text = compose([notice("first"), notice("second", lines=("more",))], AT, WIDE)
    assert text.title == "2 messages of your desk"
    assert text.body == "• first\n• second\nmore"


def test_where_a_channel_has_no_titles_the_body_begins_with_it() -> None:
    text = compose([notice("main: sold", lines=("fee",))], AT, Style(0, 200))
    assert (text.title, text.body) == ("", "main: sold\nfee")


@pytest.mark.parametrize(
    ("markup", "written"),
    [
        ("text", MARKUP),
        ("html", "A_B*C[x](y)&lt;b&gt;&amp;`~|#\\"),
        *(
            (markup, "A\\_B\\*C\\[x\\]\\(y\\)\\<b\\>&\\`\\~\\|\\#\\\\")
            for markup in ("markdown", "chat", "discord")
        ),
    ],
)
def test_markup_in_a_value_is_text_to_every_channel(markup: str, written: str) -> None:
    style = Style(0, 2_000, markup)
    assert compose([notice(MARKUP)], AT, style).body.startswith(written)


@pytest.mark.parametrize("markup", ["markdown", "chat", "discord"])
def test_nobody_is_called_and_no_list_begun(markup: str) -> None:
    style = Style(0, 2_000, markup)
    body = compose([notice("@everyone", lines=("- 3%", "-3%"))], AT, style).body
    assert body.split() == [f"@{JOINER}everyone", "\\-", "3%", "-3%"]


def test_in_discord_a_time_holds_no_emoji_and_a_link_has_no_preview() -> None:
    style = Style(0, 2_000, "discord", "https://desk_a.example.org")
    body = compose([notice("at 21:30:15", page="/cycles/7")], AT, style).body
    assert body == "at 21\\:30:15\n<https://desk_a.example.org/cycles/7>"


@pytest.mark.parametrize("markup", sorted(ESCAPES))
def test_a_ticker_is_no_host_s_name_to_a_client_and_a_link_stays_one(markup: str) -> None:
    """Telegram, mail and phones make links of such names, which lead to strangers."""
    style = Style(0, 2_000, markup, "https://desk.example.org")
    told = notice("sold 3 SAP.DE at 243.84", lines=("BRK.B",), page="/cycles/7")
    body = compose([told], AT, style).body
    assert f"sold 3 SAP.{JOINER}DE at 243.84" in body
    assert "BRK.B" in body
    assert "https://desk.example.org/cycles/7" in body


def test_links_lead_to_the_configured_address_and_without_one_there_are_none() -> None:
    told = notice("x", page="/cycles/7")
    linked = Style(250, 8_000, base_url="https://desk.example.org")
    assert compose([told], AT, linked).body == "https://desk.example.org/cycles/7"
    assert "://" not in compose([told], AT, WIDE).body


def test_a_proposal_says_how_much_time_is_left_when_it_is_sent() -> None:
    asked = notice("x", expires_at=AT + timedelta(minutes=60))
    berlin = Style(250, 8_000, zone=ZoneInfo("Europe/Berlin"))
    later = AT + timedelta(minutes=8)
    assert compose([asked], later, berlin).body == (
        "answer within 52 min 00 s, until 23:30 CEST: in the console, or by `deskbus approvals`"
    )
    too_late = compose([asked], AT + timedelta(hours=2), berlin)
    assert too_late.body == "its time to answer has passed"


def test_what_does_not_fit_is_counted_in_the_last_line() -> None:
    due = [notice("x" * 40) for _ in range(10)]
    text = compose(due, AT, Style(250, 100))
    assert text.title == "10 messages of your desk"
    assert text.body.splitlines() == [f"• {'x' * 40}", "9 more are in the console"]


def test_a_link_is_whole_or_not_there() -> None:
    told = notice("title", lines=("y" * 60,), page="/cycles/7")
    text = compose([told], AT, Style(250, 70, base_url="https://desk.example.org"))
    assert text.body == "y" * 60


@given(
    titles=some.lists(some.text("ab. &<_*@:-", max_size=TITLE_CHARS_MAX), min_size=1, max_size=12),
    lines=some.lists(some.text("xy. &<_*@:-", max_size=LINE_CHARS_MAX), max_size=LINES_MAX),
    markup=some.sampled_from(sorted(ESCAPES)),
    title_chars=some.sampled_from([0, 40, 250]),
    body_chars=some.integers(20, 3_000),
)
def test_no_message_is_over_its_channels_limits(
    titles: list[str], lines: list[str], markup: str, title_chars: int, body_chars: int
) -> None:
    due = [notice(title, lines=tuple(lines)) for title in titles]
    text = compose(due, AT, Style(title_chars, body_chars, markup))
    assert len(text.title) <= title_chars
    assert len(text.body) <= body_chars
