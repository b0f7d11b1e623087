"""Channels against a server over loopback that answers as real ones do, well and badly."""

import asyncio
import hashlib
import hmac
import json
import logging
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pydantic import SecretStr

from libs.channels.addresses import Addresses
from libs.channels.apprise import AppriseChannel
from libs.channels.channel import (
    RETRY_AFTER_S_MAX,
    Channel,
    ChannelUnusable,
    Failed,
    Message,
    Outcome,
    Sent,
)
from libs.channels.webhook import Webhook
from libs.keys.certificates import ensure_certificates
from libs.runtime.ports import choose_port
from tests.fakes.channel_server import Answer, ChannelServer, channel_server
from tests.fakes.notable import notice

KEY = SecretStr("the key of a webhook")
NOTICE = notice()
MESSAGE = Message("A title", "A body", (NOTICE,))
Make = Callable[[str], Channel]


@pytest.fixture
def server() -> Iterator[ChannelServer]:
    with channel_server() as running:
        yield running


def webhook(url: str, *, timeout_s: float = 10.0, private: bool = False) -> Webhook:
    return Webhook("ops", SecretStr(url), KEY, timeout_s, private=private)


def by_apprise(url: str, *, timeout_s: float = 10.0) -> AppriseChannel:
    """Apprise's own plugin for JSON over HTTP."""
    return AppriseChannel("ops", SecretStr(url.replace("http", "json", 1)), timeout_s)


BOTH = pytest.mark.parametrize("make", [webhook, by_apprise])


async def outcome(channel: Channel, message: Message = MESSAGE) -> Outcome:
    try:
        return await channel.send(message)
    finally:
        await channel.close()


@BOTH
async def test_a_message_is_taken(make: Make, server: ChannelServer) -> None:
    assert await outcome(make(server.url)) == Sent()
    assert len(server.taken) == 1


@BOTH
@pytest.mark.parametrize(
    ("answer", "failed"),
    [
        (Answer(429), Failed("http_429")),
        (Answer(429, {"Retry-After": "30"}), Failed("http_429", retry_after_s=30.0)),
        (
            Answer(503, {"Retry-After": "999999"}),
            Failed("http_503", retry_after_s=RETRY_AFTER_S_MAX),
        ),
        (Answer(429, {"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"}), Failed("http_429")),
        (Answer(500), Failed("http_500")),
        (Answer(401), Failed("http_401")),
        (Answer(400), Failed("http_400", refused=True)),
        (Answer(413), Failed("http_413", refused=True)),
    ],
)
async def test_what_a_server_says_is_known(
    make: Make, server: ChannelServer, answer: Answer, failed: Failed
) -> None:
    server.answers = [answer]
    assert await outcome(make(server.url)) == failed


@BOTH
async def test_a_redirect_is_not_followed(make: Make, server: ChannelServer) -> None:
    with channel_server("/elsewhere") as other:
        server.answers = [Answer(307, {"Location": other.url})]
        assert await outcome(make(server.url)) == Failed("http_307")
        assert other.heard == []


@BOTH
async def test_nobody_there_is_told_as_that(make: Make) -> None:
    port = choose_port(None, set())
    assert await outcome(make(f"http://127.0.0.1:{port}/x")) == Failed("unreachable")


@pytest.mark.parametrize("make", [webhook, by_apprise])
async def test_a_silent_server_costs_the_time_limit_and_no_more(
    make: Callable[..., Channel], server: ChannelServer
) -> None:
    gate = threading.Event()
    server.answers = [Answer(gate=gate)]
    began = time.monotonic()
    failed = await outcome(make(server.url, timeout_s=0.3))
    gate.set()
    assert failed == Failed("timeout")
    assert time.monotonic() - began < 5


async def test_apprise_is_not_called_again_while_a_call_hangs(server: ChannelServer) -> None:
    gate = threading.Event()
    server.answers = [Answer(gate=gate)]
    channel = by_apprise(server.url, timeout_s=0.3)
    assert await channel.send(MESSAGE) == Failed("timeout")
    assert await channel.send(MESSAGE) == Failed("busy")
    gate.set()
    async with asyncio.timeout(20):
        await asyncio.to_thread(server.wait, lambda heard: len(heard.taken) == 1)
    await channel.close()


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("tls")
    ensure_certificates(folder, {"http": ("127.0.0.1", "localhost")})
    return folder / "http.pem", folder / "http.key"


async def test_a_certificate_that_nobody_vouches_for_is_refused(
    certificates: tuple[Path, Path],
) -> None:
    with channel_server(certificate=certificates) as server:
        assert await outcome(webhook(server.url)) == Failed("tls")
        assert await outcome(by_apprise(server.url)) == Failed("tls")
        assert server.heard == []


# --- webhooks -------------------------------------------------------------------------------------


async def test_a_webhook_is_signed_over_time_and_body(server: ChannelServer) -> None:
    channel = Webhook("ops", SecretStr(server.url), KEY, 10.0, clock=lambda: 1764032400.9)
    assert await outcome(channel) == Sent()
    (heard,) = server.heard
    stamp = heard.headers["deskbus-timestamp"]
    expected = hmac.new(
        KEY.get_secret_value().encode(), stamp.encode() + b"." + heard.body, hashlib.sha256
    ).hexdigest()
    assert stamp == "1764032400"
    assert heard.headers["deskbus-signature"] == f"v1={expected}"
    assert heard.headers["content-type"] == "application/json"
    assert heard.json == {
        "version": 1,
        "channel": "ops",
        "notices": [NOTICE.model_dump(mode="json")],
    }


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("nonsense", "its address is none"),
        ("ftp://example.org/x", "its address is none"),
        ("https://", "its address is none"),
        ("https://example.org:99999/x", "its address is none"),
        ("http://example.org/x", "https://"),
        ("http://8.8.8.8/x", "https://"),
    ],
)
def test_an_address_that_is_none_is_refused_and_not_repeated(url: str, says: str) -> None:
    with pytest.raises(ChannelUnusable, match=says) as refused:
        webhook(url)
    assert "example.org" not in str(refused.value)


async def test_a_name_that_leads_to_a_private_address_is_not_spoken_to(
    server: ChannelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever answers for the name sends the desk to its own network."""
    _name_leads_home(monkeypatch)
    port = server.url.rpartition(":")[2]
    channel = webhook(f"https://hooks.example.org:{port}")
    assert await outcome(channel) == Failed("private_address")
    assert server.heard == []


async def test_where_the_operator_says_so_a_name_may_lead_to_a_private_address(
    server: ChannelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    _name_leads_home(monkeypatch)
    port = server.url.rpartition(":")[2]
    assert await outcome(webhook(f"http://hooks.example.org:{port}", private=True)) == Sent()
    assert server.heard[0].headers["host"].startswith("hooks.example.org:")


def _name_leads_home(monkeypatch: pytest.MonkeyPatch) -> None:
    async def home(*_: object, **__: object) -> list[object]:
        return [(2, 1, 6, "", ("127.0.0.1", 0))]

    monkeypatch.setattr("asyncio.base_events.BaseEventLoop.getaddrinfo", home)


# --- Apprise --------------------------------------------------------------------------------------


async def test_apprise_sends_title_and_body_as_plain_text(server: ChannelServer) -> None:
    assert await outcome(by_apprise(server.url), Message("<b>T</b>", "*b* & _c_", ())) == Sent()
    assert server.heard[0].json["title"] == "<b>T</b>"
    assert server.heard[0].json["message"] == "*b* & _c_"


async def test_apprise_speaks_to_ntfy(server: ChannelServer) -> None:
    url = server.url.replace("http://", "ntfy://").removesuffix("/hook") + "/my-topic"
    channel = AppriseChannel("phone", SecretStr(url), 10.0)
    assert await outcome(channel) == Sent()
    assert "A body" in server.heard[0].body.decode()


@pytest.mark.parametrize("url", ["nonsense://x", "secret words", "python://x"])
def test_what_apprise_does_not_know_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(ChannelUnusable) as refused:
        AppriseChannel("phone", SecretStr(url), 10.0)
    assert "secret" not in str(refused.value)


def test_apprise_loads_its_own_plugins_only() -> None:
    channel = AppriseChannel("phone", SecretStr("json://127.0.0.1/x"), 10.0)
    asset = channel._plugin.asset
    assert not asset.plugin_paths
    assert not asset.http_redirects
    assert channel._plugin.retry == 0


# --- secrets --------------------------------------------------------------------------------------

SECRET = "s3cr3t-in-an-address"


@pytest.mark.parametrize("status", [200, 400, 403, 429, 500])
@BOTH
async def test_no_log_error_or_text_of_a_channel_holds_its_address(
    make: Make,
    status: int,
    server: ChannelServer,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level(logging.DEBUG)
    server.answers = [Answer(status)]
    channel = make(f"{server.url}/{SECRET}?token={SECRET}")
    said = await outcome(channel)
    with pytest.raises(ChannelUnusable) as refused:
        webhook(f"http://example.org/{SECRET}")
    trace = "".join(traceback.format_exception(refused.value))
    shown = [repr(channel), str(channel), repr(said), trace, caplog.text, *capfd.readouterr()]
    assert not any(SECRET in text for text in shown)
    assert any(SECRET in heard.path for heard in server.heard), "it was in use"


def test_addresses_come_from_the_environment_or_from_files_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "notify_my-phone.url").write_text("ntfy://of-the-file\n")
    (tmp_path / "notify_ops.key").write_text("k" * 20)
    by_file = Addresses({}, tmp_path)
    assert by_file.address("my-phone").get_secret_value() == "ntfy://of-the-file"
    assert by_file.key("ops").get_secret_value() == "k" * 20
    by_variable = Addresses({"DESKBUS_NOTIFY_MY_PHONE": "ntfy://of-the-variable"}, tmp_path)
    assert by_variable.address("my-phone").get_secret_value() == "ntfy://of-the-variable"


@pytest.mark.parametrize(
    ("environment", "says"),
    [
        ({}, "neither DESKBUS_NOTIFY_OPS is set, nor is there a file"),
        ({"DESKBUS_NOTIFY_OPS": f"https://x/{SECRET}\nhttps://y"}, "no single line"),
        ({"DESKBUS_NOTIFY_OPS": SECRET * 1_000}, "no single line"),
    ],
)
def test_an_address_that_is_not_set_or_spoiled_is_told_without_it(
    environment: dict[str, str], says: str, tmp_path: Path
) -> None:
    with pytest.raises(ChannelUnusable, match=says) as refused:
        Addresses(environment, tmp_path).address("ops")
    assert SECRET not in str(refused.value)


def test_a_key_that_is_too_short_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ChannelUnusable, match="16 characters"):
        Addresses({"DESKBUS_NOTIFY_OPS_KEY": "short"}, tmp_path).key("ops")


def test_a_body_is_json_that_holds_no_key() -> None:
    assert "the key" not in json.dumps(NOTICE.model_dump(mode="json"))
