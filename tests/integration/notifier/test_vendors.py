"""Telegram, Slack, Discord and ntfy through Apprise's own plugins, over TLS and under the services'
own names, against stand-ins that answer as the services do."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pydantic import SecretStr

from libs.channels import apprise_child
from libs.channels.apprise import AppriseChannel
from libs.channels.channel import ChannelMessage, ChannelUnusable, SendOutcome
from libs.report.notify.messages import JOINER, Style, compose
from tests.fakes.channel_server import Answer, ChannelServer, channel_server
from tests.fakes.internet import Authority, authority, names_lead_to
from tests.fakes.notable import AT, notice
from tests.fakes.vendor_servers import Discord, Slack, Telegram, Vendors

TOKEN = Telegram().token
TELEGRAM = f"tgram://{TOKEN}/12345678"
SLACK = "slack://" + Slack().hook.removeprefix("/services/")
SLACK_BOT = f"slack://{Slack().bot_token}/#general"
DISCORD = f"discord://{Discord().number}/{Discord().token}"
NTFY = "ntfy://my-topic"
ALL = [TELEGRAM, SLACK, SLACK_BOT, DISCORD, NTFY]
EACH = pytest.mark.parametrize("address", ALL)


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return authority(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def server(ours: Authority, monkeypatch: pytest.MonkeyPatch) -> Iterator[ChannelServer]:
    with channel_server(certificate=ours.certificate) as running:
        names_lead_to(monkeypatch, https=running.port)
        ours.is_trusted(monkeypatch)
        yield running


@pytest.fixture
def vendors(server: ChannelServer) -> Vendors:
    server.judge = vendors = Vendors()
    return vendors


@pytest.fixture(autouse=True)
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Apprise is called in a thread: a child process would not see the names of these tests."""

    async def call(request: dict[str, str], _: float) -> dict[str, Any]:
        return await asyncio.to_thread(apprise_child.answer, request)

    monkeypatch.setattr("libs.channels.apprise._call", call)


async def opened(address: str) -> AppriseChannel:
    return await AppriseChannel.opened("phone", SecretStr(address), 20.0)


async def sent(address: str, *texts: str, title: str = "A title") -> SendOutcome:
    """One notice, composed as the notifier does."""
    channel = await opened(address)
    limits = channel.limits
    style = Style(
        limits.title_chars_max, limits.body_chars_max, limits.markup, "https://desk.example.org"
    )
    told = notice(title, lines=texts or ("A line",), page="/cycles/7")
    text = compose([told], AT, style)
    return await channel.send(ChannelMessage(text.title, text.body, (told,)))


def shown(vendors: Vendors) -> list[str]:
    """What readers see, wherever it went; end of line and invisible characters as they are here."""
    every = (vendors.telegram, vendors.slack, vendors.discord, vendors.ntfy)
    return [
        text.replace("\r\n", "\n").replace(JOINER, "") for vendor in every for text in vendor.shown
    ]


@EACH
async def test_a_message_reaches_its_readers(address: str, vendors: Vendors) -> None:
    assert await sent(address) == SendOutcome()
    (text,) = shown(vendors)
    assert text.split("\n") == ["A title", "A line", "https://desk.example.org/cycles/7"]


# --- what is wrong --------------------------------------------------------------------------------


def is_known(vendors: Vendors) -> None:
    pass


def archives(vendors: Vendors) -> None:
    vendors.slack.is_archived = True


@pytest.mark.parametrize(
    ("address", "happens", "code"),
    [
        (f"tgram://{TOKEN}/99999999", is_known, "http_400"),
        (f"tgram://{TOKEN}/87654321", is_known, "http_403"),
        (f"tgram://987654321:{'b' * 35}/12345678", is_known, "http_401"),
        (SLACK.replace("A1BRTD4JD", "B1BRTD4JD"), is_known, "http_404"),
        (SLACK[:-4] + "XXXX", is_known, "http_403"),
        (SLACK, archives, "http_410"),
        (SLACK_BOT.replace("general", "elsewhere"), is_known, "not_taken"),
        (SLACK_BOT.replace("abc124", "abc125"), is_known, "not_taken"),
        (SLACK_BOT, archives, "not_taken"),
        (DISCORD.replace("/417", "/418"), is_known, "http_404"),
        (DISCORD + "-of-another", is_known, "http_401"),
        (DISCORD + "?thread=12345", is_known, "http_400"),
        ("ntfy://not-yours", is_known, "http_403"),
    ],
)
async def test_a_wrong_address_fails_with_the_services_status(
    address: str, happens: Callable[[Vendors], None], code: str, vendors: Vendors
) -> None:
    happens(vendors)
    assert await sent(address) == SendOutcome(code)
    assert shown(vendors) == []


@pytest.mark.parametrize(
    ("address", "message"),
    [
        (TELEGRAM, ChannelMessage("", "x" * 4_097, ())),
        (TELEGRAM, ChannelMessage("", "<img src='x'/>&lt;", ())),
        (DISCORD, ChannelMessage("", "x" * 2_001, ())),
        (NTFY, ChannelMessage("", "x" * 4_097, ())),
    ],
)
async def test_a_text_that_the_service_does_not_take_is_refused(
    address: str, message: ChannelMessage, vendors: Vendors, server: ChannelServer
) -> None:
    channel = await opened(address)
    if "img" in message.body:  # Apprise takes such tags out: the answer is what counts here
        server.answers = [vendors.telegram._no(400, "Bad Request: can't parse entities: x")]
    assert await channel.send(message) == SendOutcome("http_400")


@EACH
async def test_a_server_that_fails_is_tried_again(address: str, server: ChannelServer) -> None:
    server.answers = [Answer(502, body=b"<html>Bad Gateway</html>")]
    assert await sent(address) == SendOutcome("http_502")


@EACH
async def test_whoever_has_a_service_s_name_but_no_certificate_for_it_hears_nothing(
    address: str, ours: Authority, server: ChannelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("REQUESTS_CA_BUNDLE")
    assert await sent(address) == SendOutcome("tls")
    assert server.heard == []


async def test_a_service_whose_name_nobody_knows_is_unreachable(
    server: ChannelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    names_lead_to(monkeypatch)
    assert await sent(TELEGRAM) == SendOutcome("unreachable")


# --- what is written ------------------------------------------------------------------------------

HOSTILE = [
    "A_B*C~D`E|F>G#H[I](J)<K>&@L",
    "BRK.B_*bold*_ ||spoiler|| ~~gone~~ `code` ```",
    "# heading",
    "> quoted",
    "- listed",
    "@everyone @here <@123456789012345678> <@&1> <#2> <!channel> <!here|x> @channel",
    "[text](http:/evil) <b>bold</b> &lt; &amp;amp; %2A \\* \\\\",
    "taken at 21:30:15 :skull: 2001:db8:100::1",
    "🚀 up 3% 👍🏽 🇩🇪 é",
    "שלום AAPL مرحبا",
    "a line that is long " * 14,
]


@EACH
@pytest.mark.parametrize("text", HOSTILE)
async def test_what_looks_like_markup_is_shown_as_it_stands(
    address: str, text: str, vendors: Vendors
) -> None:
    assert await sent(address, text, title=f"of {text[:100]}") == SendOutcome()
    (seen,) = shown(vendors)
    first, second, link = seen.split("\n")
    assert " ".join(first.split()) == " ".join(f"of {text[:100]}".split())
    assert " ".join(second.split()) == " ".join(text.split())
    assert link == "https://desk.example.org/cycles/7"


@EACH
async def test_a_ticker_that_is_also_a_host_s_name_is_no_link(
    address: str, vendors: Vendors
) -> None:
    """Many a client makes a link of SAP.DE by itself."""
    assert await sent(address, "buy 3 SAP.DE") == SendOutcome()
    (raw,) = [
        text
        for vendor in (vendors.telegram, vendors.slack, vendors.discord, vendors.ntfy)
        for text in vendor.shown
    ]
    assert "SAP.DE" not in raw
    assert f"SAP.{JOINER}DE" in raw


@EACH
async def test_a_message_as_long_as_the_channel_lets_it_be_is_taken(
    address: str, vendors: Vendors
) -> None:
    channel = await opened(address)
    limits = channel.limits
    style = Style(limits.title_chars_max, limits.body_chars_max, limits.markup)
    due = [notice("buy & sell <A_B>", lines=("<_>&" * 70,) * 10) for _ in range(50)]
    text = compose(due, AT, style)
    assert await channel.send(ChannelMessage(text.title, text.body, due)) == SendOutcome()
    assert len(shown(vendors)) == 1, "as one message"


@EACH
async def test_no_picture_and_no_link_but_the_desk_s_is_in_a_message(
    address: str, vendors: Vendors, server: ChannelServer
) -> None:
    assert await sent(address) == SendOutcome()
    (heard,) = server.heard
    names = ("user-agent", "x-icon", "x-click")
    parts = [heard.body.decode(), *(heard.headers.get(name, "") for name in names)]
    links = "".join(parts).replace("https:\\/\\/", "https://").count("://")
    assert links == 1, parts


# --- addresses ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "address",
    [
        f"{TELEGRAM}/87654321",
        f"{SLACK_BOT}/#random",
        "ntfys://ntfy.example.org/one/two",
        "mailtos://desk:p@example.org?to=you@example.org,me@example.org",
        "mailtos://desk:p@example.org?to=you@example.org&cc=me@example.org",
        "mailtos://desk:p@example.org?to=you@example.org&bcc=me@example.org",
    ],
)
async def test_an_address_of_several_recipients_is_refused(address: str) -> None:
    """Where one of them fails, the others would be told again and again."""
    with pytest.raises(ChannelUnusable, match="several recipients") as refused:
        await opened(address)
    assert "example" not in str(refused.value)


async def test_a_bot_without_a_chat_is_refused_lest_it_tell_whoever_wrote_to_it_first(
    server: ChannelServer,
) -> None:
    with pytest.raises(ChannelUnusable, match="names no chat"):
        await opened(f"tgram://{TOKEN}")
    assert server.heard == []
