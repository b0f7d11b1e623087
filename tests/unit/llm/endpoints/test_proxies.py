"""A model behind a proxy, or on this machine while a proxy is set."""

from dataclasses import replace

import pytest
from pydantic import SecretStr

from libs.llm.endpoints.endpoint import PRESETS, PRICES
from libs.llm.endpoints.remote import RemoteProvider
from libs.llm.errors import ProviderNotUsable, ProviderUnavailable
from libs.llm.provider import ModelRequest, UserMessage
from tests.fakes.model_server import KEY, model_server
from tests.fakes.wire_formats import Says

WIRES = pytest.mark.parametrize("wire", ["claude", "openai"])


def _request() -> ModelRequest:
    return ModelRequest(
        agent="a",
        model="m",
        system="s",
        system_sha256="0",
        messages=(UserMessage(text="hello"),),
    )


def _provider(wire: str, url: str) -> RemoteProvider:
    return RemoteProvider(replace(PRESETS[wire], base_url=url), SecretStr(KEY), PRICES)


@WIRES
@pytest.mark.parametrize("variable", ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"])
@pytest.mark.parametrize("scheme", ["http", "socks5"])
async def test_a_model_on_this_machine_is_reached_whatever_proxy_is_set(
    monkeypatch: pytest.MonkeyPatch, wire: str, variable: str, scheme: str
) -> None:
    monkeypatch.setenv(variable, f"{scheme}://127.0.0.1:1")
    async with model_server([Says("hello")]) as server:
        url = server.url if wire == "claude" else f"{server.url}/v1"
        provider = _provider(wire, url)
        assert (await provider.complete(_request())).text == "hello"
        await provider.close()


@WIRES
@pytest.mark.parametrize(
    "value", ["http://127.0.0.1:1", "socks5://127.0.0.1:1", "socks://127.0.0.1:1", "socks4://p:1"]
)
async def test_a_model_that_no_proxy_lets_through_is_told_with_the_variable(
    monkeypatch: pytest.MonkeyPatch, wire: str, value: str
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", value)
    provider = _provider(wire, "https://model.example.org/v1")
    with pytest.raises(ProviderUnavailable, match="HTTPS_PROXY") as lost:
        await provider.complete(_request())
    await provider.close()
    assert lost.value.message.startswith("correct or unset that variable, or add the host to NO_")
    assert not lost.value.may_have_cost


@WIRES
async def test_certificates_that_cannot_be_read_are_told_with_the_variable(
    monkeypatch: pytest.MonkeyPatch, wire: str
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "/nonexistent/ca.pem")
    with pytest.raises(ProviderNotUsable, match="SSL_CERT_FILE /nonexistent"):
        await _provider(wire, "https://model.example.org/v1").complete(_request())
