"""Channels against a server over loopback that answers as real ones do, well and badly."""

import asyncio
import hashlib
import hmac
import json
import logging
import resource
import threading
import traceback
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from libs.channels import apprise
from libs.channels.addresses import Addresses
from libs.channels.apprise import AppriseChannel
from libs.channels.channel import Channel, ChannelMessage, ChannelUnusable, SendOutcome
from libs.channels.webhook import Webhook
from libs.keys.certificates import ensure_certificates
from libs.runtime.ports import choose_port
from tests.fakes.channel_server import Answer, ChannelServer, channel_server
from tests.fakes.notable import notice

SECRET = "s3cr3t-in-an-address"
KEY = SecretStr("the key of a webhook")
NOTICE = notice()
MESSAGE = ChannelMessage("A title", "A body", (NOTICE,))
Make = Callable[..., Awaitable[Channel]]


@pytest.fixture
def server() -> Iterator[ChannelServer]:
    with channel_server() as running:
        yield running


async def webhook(url: str, *, timeout_s: float = 10.0, private: bool = False) -> Webhook:
    return Webhook("ops", SecretStr(url), KEY, timeout_s, private=private)


async def by_apprise(url: str, *, timeout_s: float = 30.0) -> AppriseChannel:
    """Apprise's own plugin for JSON over HTTP."""
    address = SecretStr(url.replace("http", "json", 1))
    return await AppriseChannel.opened("ops", address, timeout_s)


BOTH = pytest.mark.parametrize("make", [webhook, by_apprise])


async def outcome(channel: Channel, message: ChannelMessage = MESSAGE) -> SendOutcome:
    return await channel.send(message)


async def test_apprises_process_has_no_key_of_anybody(
    server: ChannelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ANTHROPIC_API_KEY", "PGPASSWORD", "DESKBUS_NOTIFY_OTHER", "LAB_KEY"):
        monkeypatch.setenv(name, "secret")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    kept = apprise._environment()
    assert "secret" not in kept.values()
    assert kept["LC_ALL"] == "C.UTF-8"
    assert await outcome(await by_apprise(server.url)) == SendOutcome()


async def test_a_machine_without_room_for_a_process_fails_the_message_alone(
    server: ChannelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    channel = await by_apprise(server.url)

    async def no_room(*_words: str, **_options: object) -> None:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(asyncio, "create_subprocess_exec", no_room)
    assert await outcome(channel) == SendOutcome("plugin_failed")


@BOTH
async def test_a_message_is_taken(make: Make, server: ChannelServer) -> None:
    assert await outcome(await make(server.url)) == SendOutcome()
    assert len(server.taken) == 1


@BOTH
@pytest.mark.parametrize("status", [400, 401, 429, 500])
async def test_the_status_of_a_server_is_the_code(
    make: Make, server: ChannelServer, status: int
) -> None:
    server.answers = [Answer(status, {"Retry-After": "1"})]
    assert await outcome(await make(server.url)) == SendOutcome(f"http_{status}")


@BOTH
async def test_a_redirect_is_not_followed(make: Make, server: ChannelServer) -> None:
    with channel_server("/elsewhere") as other:
        server.answers = [Answer(307, {"Location": other.url})]
        assert await outcome(await make(server.url)) == SendOutcome("http_307")
        assert other.heard == []


@BOTH
async def test_nobody_there_is_told_as_that(make: Make) -> None:
    port = choose_port(None, set())
    assert await outcome(await make(f"http://127.0.0.1:{port}/x")) == SendOutcome("unreachable")


@pytest.mark.parametrize("make", [webhook, by_apprise])
async def test_a_silent_server_costs_the_time_limit_and_no_more(
    make: Make, server: ChannelServer
) -> None:
    gate = threading.Event()
    server.answers = [Answer(gate=gate)]
    channel = await make(server.url, timeout_s=3)
    failed = await outcome(channel)
    gate.set()
    assert failed == SendOutcome("timeout")


async def test_an_answer_without_end_costs_the_time_limit_and_no_memory_of_the_desk(
    server: ChannelServer,
) -> None:
    server.answers = [Answer(503, body=b"x" * 50_000_000)]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert await outcome(await webhook(server.url)) == SendOutcome("http_503")
    server.answers = [Answer(503, body=b"x" * 50_000_000)]
    assert (await outcome(await by_apprise(server.url))).code in {"http_503", "plugin_failed"}
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 150_000


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("tls")
    ensure_certificates(folder, {"http": ("127.0.0.1", "localhost")})
    return folder / "http.pem", folder / "http.key"


async def test_a_certificate_that_nobody_vouches_for_is_refused(
    certificates: tuple[Path, Path],
) -> None:
    with channel_server(certificate=certificates) as server:
        assert await outcome(await webhook(server.url)) == SendOutcome("tls")
        assert await outcome(await by_apprise(server.url)) == SendOutcome("tls")
        assert server.heard == []


# --- webhooks -------------------------------------------------------------------------------------


async def test_a_webhook_is_signed_over_time_and_body(server: ChannelServer) -> None:
    channel = Webhook("ops", SecretStr(server.url), KEY, 10.0, clock=lambda: 1764032400.9)
    assert await outcome(channel) == SendOutcome()
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
async def test_an_address_that_is_none_is_refused_and_not_repeated(url: str, says: str) -> None:
    with pytest.raises(ChannelUnusable, match=says) as refused:
        await webhook(url)
    assert "example.org" not in str(refused.value)


async def test_a_name_that_leads_to_a_private_address_is_not_spoken_to(
    server: ChannelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever answers for the name sends the desk to its own network."""
    _name_leads_home(monkeypatch)
    port = server.url.rpartition(":")[2]
    channel = await webhook(f"https://hooks.example.org:{port}")
    assert await outcome(channel) == SendOutcome("private_address")
    assert server.heard == []


async def test_where_the_operator_says_so_a_name_may_lead_to_a_private_address(
    server: ChannelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    _name_leads_home(monkeypatch)
    port = server.url.rpartition(":")[2]
    assert (
        await outcome(await webhook(f"http://hooks.example.org:{port}", private=True))
        == SendOutcome()
    )
    assert server.heard[0].headers["host"].startswith("hooks.example.org:")


def _name_leads_home(monkeypatch: pytest.MonkeyPatch) -> None:
    async def home(*_: object, **__: object) -> list[object]:
        return [(2, 1, 6, "", ("127.0.0.1", 0))]

    monkeypatch.setattr("asyncio.base_events.BaseEventLoop.getaddrinfo", home)


# --- Apprise --------------------------------------------------------------------------------------


async def test_apprise_sends_title_and_body_as_plain_text(server: ChannelServer) -> None:
    assert (
        await outcome(await by_apprise(server.url), ChannelMessage("<b>T</b>", "*b* & _c_", ()))
        == SendOutcome()
    )
    assert server.heard[0].json["title"] == "<b>T</b>"
    assert server.heard[0].json["message"] == "*b* & _c_"


async def test_apprise_speaks_to_ntfy(server: ChannelServer) -> None:
    url = server.url.replace("http://", "ntfy://").removesuffix("/hook") + "/my-topic"
    channel = await AppriseChannel.opened("phone", SecretStr(url), 30.0)
    assert await outcome(channel) == SendOutcome()
    assert "A body" in server.heard[0].body.decode()


@pytest.mark.parametrize("url", ["nonsense://x", "secret words", "python://x"])
async def test_what_apprise_does_not_know_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(ChannelUnusable) as refused:
        await AppriseChannel.opened("phone", SecretStr(url), 10.0)
    assert "secret" not in str(refused.value)


async def test_apprise_s_process_sees_no_secret_of_the_desk(
    server: ChannelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DESKBUS_NOTIFY_OTHER", SECRET)
    seen: dict[str, str] = {}
    spawn = asyncio.create_subprocess_exec

    async def watched(*command: str, **options: Any) -> asyncio.subprocess.Process:
        seen.update(options["env"])
        assert not any(server.url.partition("//")[2] in part for part in command)
        return await spawn(*command, **options)

    monkeypatch.setattr("asyncio.create_subprocess_exec", watched)
    assert await outcome(await by_apprise(server.url)) == SendOutcome()
    assert seen
    assert not any(name.startswith("DESKBUS_") for name in seen)


# --- secrets --------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [200, 403])
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
    channel = await make(f"{server.url}/{SECRET}?token={SECRET}")
    said = await outcome(channel)
    with pytest.raises(ChannelUnusable) as refused:
        await webhook(f"http://example.org/{SECRET}")
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
