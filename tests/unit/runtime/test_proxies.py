"""Which request goes through which proxy, and that every client of the desk keeps to it."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import requests
from pydantic import SecretStr

from libs.channels.apprise import AppriseChannel
from libs.channels.channel import ChannelMessage, ChannelUnusable, MessageLimits, SendOutcome
from libs.channels.webhook import Webhook
from libs.market.yahoo.session import YahooSession
from libs.runtime.outgoing import BoundedClient, NotThroughProxy
from libs.runtime.proxies import ProxyUnusable, proxy_for, set_proxies
from libs.runtime.settings import Settings
from services.cli.operating import surroundings
from services.cli.operating.checks import CheckVerdict
from tests.fakes.notable import notice
from tests.fakes.proxy_server import ProxyServer, proxy_server

VARIABLES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
LOGIN = ":".join(("me", "secret"))
THERE = "https://api.example.org/v1"
PROXY = "http://proxy.example.org:3128"


@pytest.fixture(autouse=True)
def unset(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture
async def proxy() -> AsyncIterator[ProxyServer]:
    async with proxy_server() as running:
        yield running


@pytest.mark.parametrize("variable", ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"])
@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1:8000",
        "localhost:11434",
        "LOCALHOST",
        "me.localhost.",
        "127.1.2.3",
        "127.1",
        "[::1]:80",
        "0.0.0.0:80",
        "[::ffff:127.0.0.1]:80",
        "2130706433",
    ],
)
def test_this_machine_is_never_reached_through_a_proxy(
    monkeypatch: pytest.MonkeyPatch, variable: str, host: str
) -> None:
    monkeypatch.setenv(variable, PROXY)
    assert proxy_for(f"http://{host}/v1") is None


@pytest.mark.parametrize(
    ("environment", "url", "expected"),
    [
        ({}, THERE, None),
        ({"HTTPS_PROXY": PROXY}, THERE, f"HTTPS_PROXY {PROXY}"),
        ({"HTTP_PROXY": PROXY}, THERE, None),
        ({"HTTP_PROXY": PROXY}, "http://example.org", f"HTTP_PROXY {PROXY}"),
        ({"ALL_PROXY": PROXY}, THERE, f"ALL_PROXY {PROXY}"),
        ({"ALL_PROXY": "http://other", "HTTPS_PROXY": PROXY}, THERE, f"HTTPS_PROXY {PROXY}"),
        ({"HTTPS_PROXY": "http://other", "https_proxy": PROXY}, THERE, f"https_proxy {PROXY}"),
        ({"HTTPS_PROXY": PROXY, "https_proxy": ""}, THERE, None),
        ({"HTTPS_PROXY": "proxy.example.org:3128"}, THERE, f"HTTPS_PROXY {PROXY}"),
        ({"ALL_PROXY": "socks://p:1080/"}, THERE, "ALL_PROXY socks5://p:1080"),
        ({"ALL_PROXY": "SOCKS5H://p:1080"}, THERE, "ALL_PROXY socks5h://p:1080"),
        ({"ALL_PROXY": f"http://{LOGIN}@p:1"}, THERE, "ALL_PROXY http://p:1"),
    ],
)
def test_the_variable_of_the_address_counts(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], url: str, expected: str | None
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    proxy = proxy_for(url)
    assert (proxy and str(proxy)) == expected


@pytest.mark.parametrize(
    ("entries", "url", "direct"),
    [
        ("example.org", THERE, True),
        (".example.org", THERE, True),
        ("*.example.org", THERE, True),
        ("other.net, EXAMPLE.org", THERE, True),
        ("other.net example.org", THERE, True),
        ("*", THERE, True),
        ("other.net,*", THERE, True),
        ("api.example.org:443", THERE, True),
        ("api.example.org:8443", THERE, False),
        ("ample.org", THERE, False),
        ("", THERE, False),
        (",,", THERE, False),
        ("10.0.0.0/8", "http://10.1.2.3:8000/v1", True),
        ("10.0.0.1", "http://10.0.0.1/v1", True),
        ("10.0.0.0/8", "http://11.1.2.3/v1", False),
        ("fd00::/8", "http://[fd00::1]:8000/v1", True),
        ("[fd00::1]", "http://[fd00::1]:8000/v1", True),
        ("[fd00::1]:8000", "http://[fd00::1]:8000/v1", True),
        ("[fd00::1]:80", "http://[fd00::1]:8000/v1", False),
    ],
)
@pytest.mark.parametrize("variable", ["no_proxy", "NO_PROXY"])
def test_hosts_that_are_exempt_are_reached_directly(
    monkeypatch: pytest.MonkeyPatch, variable: str, entries: str, url: str, direct: bool
) -> None:
    monkeypatch.setenv("ALL_PROXY", PROXY)
    monkeypatch.setenv(variable, entries)
    assert (proxy_for(url) is None) is direct


@pytest.mark.parametrize(
    "value", ["socks4://p:1080", "ftp://p", "http://", "http://p:port", "quic://p"]
)
def test_a_proxy_that_no_client_can_use_is_refused_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("all_proxy", value)
    with pytest.raises(ProxyUnusable, match=r"all_proxy is not a proxy .* or unset it"):
        proxy_for(THERE)


def test_no_login_of_a_proxy_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", f"http://{LOGIN}@p:1")
    monkeypatch.setenv("ALL_PROXY", f"socks4://{LOGIN}@p:1")
    assert "secret" not in str(set_proxies())
    with pytest.raises(ProxyUnusable) as refused:
        proxy_for("http://example.org")
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("scheme", ["http", "socks5", "socks5h", "socks"])
async def test_the_desk_s_client_goes_through_it(
    monkeypatch: pytest.MonkeyPatch, proxy: ProxyServer, scheme: str
) -> None:
    monkeypatch.setenv("ALL_PROXY", f"{scheme}://{proxy.address}")
    async with BoundedClient(1_000) as client:
        answer = await client.get("http://api.example.org/v1")
    assert answer.json() == {"through": "the proxy"}
    assert "api.example.org" in proxy.heard[0]


async def test_the_desk_s_client_reaches_this_machine_directly(
    monkeypatch: pytest.MonkeyPatch, proxy: ProxyServer
) -> None:
    for name in ("HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    async with BoundedClient(1_000) as client:
        await client.get(f"http://localhost:{proxy.port}/v1")
    assert proxy.heard == ["GET /v1 HTTP/1.1"]


@pytest.mark.parametrize("value", ["http://127.0.0.1:1", "socks5://127.0.0.1:1", "socks4://p:1"])
async def test_an_error_of_the_proxy_names_it(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("HTTPS_PROXY", value)
    async with BoundedClient(1_000) as client:
        with pytest.raises(NotThroughProxy, match="HTTPS_PROXY"):
            await client.get(THERE)


@pytest.mark.parametrize("url", [THERE, "http://api.example.org/v1"])
async def test_a_proxy_that_wants_a_login_is_named(
    monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    async with proxy_server(login=True) as proxy:
        monkeypatch.setenv("ALL_PROXY", f"http://{proxy.address}")
        async with BoundedClient(1_000) as client:
            with pytest.raises(NotThroughProxy, match=f"ALL_PROXY http://{proxy.address}"):
                await client.get(url)
        monkeypatch.setenv("ALL_PROXY", f"http://{LOGIN}@{proxy.address}")
        async with BoundedClient(1_000) as client:
            assert (await client.get("http://api.example.org/v1")).is_success


def _message() -> ChannelMessage:
    return ChannelMessage("A title", "A body", (notice(),))


async def _sent(url: str) -> object:
    channel = AppriseChannel(SecretStr(url), 30.0, MessageLimits(250, 8_000))
    return await channel.send(_message())


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["http", "socks5h", "socks"])
async def test_messages_go_through_it(
    monkeypatch: pytest.MonkeyPatch, proxy: ProxyServer, scheme: str
) -> None:
    monkeypatch.setenv("ALL_PROXY", f"{scheme}://{proxy.address}")
    host = "127.0.0.2" if scheme == "socks" else "hook.example.org"
    if scheme == "socks":  # socks5 looks names up here: an address needs none
        host = "192.0.2.7"
    assert await _sent(f"json://{host}/x") == SendOutcome()
    assert host in proxy.heard[0]


async def test_messages_to_this_machine_go_there_directly(
    monkeypatch: pytest.MonkeyPatch, proxy: ProxyServer
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    assert await _sent(f"json://localhost:{proxy.port}/x") == SendOutcome()
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    assert await _sent("json://hook.example.org/x") == SendOutcome("proxy")
    monkeypatch.setenv("http_proxy", "socks4://127.0.0.1:1")
    assert await _sent("json://hook.example.org/x") == SendOutcome("proxy")


async def test_messages_without_readable_certificates_are_told_so(
    monkeypatch: pytest.MonkeyPatch, proxy: ProxyServer
) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", "/nonexistent/ca.pem")
    assert await _sent(f"jsons://localhost:{proxy.port}/x") == SendOutcome("tls")
    monkeypatch.setenv("SSL_CERT_FILE", "/nonexistent/ca.pem")
    with pytest.raises(ChannelUnusable, match="correct or unset SSL_CERT_FILE"):
        Webhook("ops", SecretStr("https://hook.example.org"), SecretStr("k" * 32), 10.0)


async def test_yahoo_is_asked_through_it(
    monkeypatch: pytest.MonkeyPatch, proxy: ProxyServer
) -> None:
    session = YahooSession()
    for scheme, heard in (("http", "GET http://x.yahoo.com/a"), ("socks", "SOCKS ")):
        if scheme == "socks":
            monkeypatch.setenv("all_proxy", f"socks5h://{proxy.address}")
            monkeypatch.delenv("http_proxy")
        else:
            monkeypatch.setenv("http_proxy", f"http://{proxy.address}")
        answer = await asyncio.to_thread(session.get, "http://x.yahoo.com/a")
        assert answer.status_code == requests.codes.ok
        assert proxy.heard[-1 if scheme == "http" else -2].startswith(heard)


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-none")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("MINIMAX_API_KEY", raising=False)
    (tmp_path / "deskbus.toml").write_text(
        '[providers.ollama]\nmodels = { small = "a", medium = "a", large = "a" }\n'
    )
    return Settings()


def test_the_doctor_names_the_proxy_and_what_goes_through_it(
    monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    assert surroundings.proxies(settings) == []
    monkeypatch.setenv("HTTPS_PROXY", f"http://{LOGIN}@proxy.example.org:3128")
    monkeypatch.setenv("HTTP_PROXY", "http://other.example.org")
    (check,) = surroundings.proxies(settings)
    assert check.said == (
        "HTTP_PROXY http://other.example.org for nothing here; "
        "HTTPS_PROXY http://proxy.example.org:3128 for claude; directly to ollama"
    )


def test_the_doctor_refuses_a_proxy_that_cannot_be_used(
    monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    monkeypatch.setenv("all_proxy", "socks4://127.0.0.1:1")
    (check,) = surroundings.proxies(settings)
    assert check.verdict is CheckVerdict.PROBLEM
    assert "all_proxy is not a proxy that the desk can use" in check.said
