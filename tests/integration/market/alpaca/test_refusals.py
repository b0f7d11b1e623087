"""Every question to Alpaca meets every refusal: never an answer, never kept; and the key goes to
nobody else and stands nowhere."""

import logging
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from libs.market.alpaca import calls
from libs.market.asking import call_policy, questions
from libs.market.errors import BadVendorData, KeysMissing, RateLimited, SourceUnavailable
from libs.market.sources import market_of
from libs.runtime.key_pair import KeyPairUnusable
from libs.runtime.settings import Settings
from tests.fakes.alpaca_live import AS_OF, EVENING, KEYS, AlpacaLive, alpaca_source
from tests.fakes.alpaca_server import (
    ACTIONS,
    BARS,
    KEY_ID,
    LIMIT,
    MISTAKES,
    NEWS,
    REFUSALS,
    SECRET,
    WAYS,
)
from tests.fakes.log_lines import log_lines

Ask = Callable[[AlpacaLive], Awaitable[Any]]
QUESTIONS: dict[str, tuple[str, Ask]] = {
    "what the account may read": (f"{BARS}?symbols=SPY", lambda live: live.feed.price_feed()),
    "bars": (f"{BARS}?symbols=ALFA", lambda live: live.market.bars("ALFA", AS_OF, 2)),
    "universe": (f"{BARS}?symbols=ALFA", lambda live: live.market.universe(AS_OF)),
    "splits and dividends": (ACTIONS, lambda live: live.market.bars("ALFA", AS_OF, 2)),
    "next open": (BARS, lambda live: live.fills.next_open("ALFA", AS_OF.replace(day=14))),
    "news": (NEWS, lambda live: live.market.news(AS_OF, ["ALFA"], 5)),
}
LIMITED = {"429 JSON", "429 page"}


def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(questions, "ATTEMPTS_MAX", 1)
    monkeypatch.setattr(call_policy, "FAULTS_MAX", 1)


@pytest.mark.parametrize("refusal", REFUSALS)
@pytest.mark.parametrize("name", QUESTIONS)
async def test_a_refusal_is_no_answer_and_is_not_kept(
    alpaca: AlpacaLive, monkeypatch: pytest.MonkeyPatch, name: str, refusal: str
) -> None:
    impatient(monkeypatch)
    part, ask = QUESTIONS[name]
    fault = alpaca.server.fails(part, refusal)
    with pytest.raises(SourceUnavailable) as refused:
        await ask(alpaca)
    assert isinstance(refused.value, RateLimited) == (refusal in LIMITED)
    assert alpaca.feed.resting_s() is not None, "the breaker counted it"
    fault.times = 0
    alpaca.clock[0] += 900
    found = await ask(alpaca)
    assert found is not None
    assert len(found) != 0 if hasattr(found, "__len__") else True
    assert alpaca.feed.resting_s() is None


@pytest.mark.parametrize("mistake", MISTAKES)
@pytest.mark.parametrize("name", QUESTIONS)
async def test_a_question_that_is_not_taken_is_told_and_not_asked_again(
    alpaca: AlpacaLive, name: str, mistake: str
) -> None:
    part, ask = QUESTIONS[name]
    alpaca.server.fails(part, mistake)
    for _ in range(2):
        with pytest.raises(BadVendorData, match="refuses the request"):
            await ask(alpaca)
    assert alpaca.server.count(part) == 1


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("name", QUESTIONS)
async def test_an_answer_that_does_not_come_to_its_end_is_none(
    alpaca: AlpacaLive, monkeypatch: pytest.MonkeyPatch, name: str, how: str
) -> None:
    impatient(monkeypatch)
    monkeypatch.setattr(calls, "WHOLE_S", 0.4)
    part, ask = QUESTIONS[name]
    alpaca.server.slow[part] = how
    started = time.monotonic()
    with pytest.raises((SourceUnavailable, BadVendorData)) as refused:
        await ask(alpaca)
    assert time.monotonic() - started < 20
    assert SECRET not in str(refused.value)
    alpaca.server.slow.clear()
    monkeypatch.setattr(calls, "WHOLE_S", 20)
    alpaca.clock[0] += 900
    if isinstance(refused.value, SourceUnavailable):
        assert await ask(alpaca) is not None


async def test_a_page_beyond_the_bound_is_refused_before_it_is_read(
    alpaca: AlpacaLive, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "PAGE_BYTES_MAX", 1_000)
    with pytest.raises(BadVendorData, match="more than 1,000 bytes"):
        await alpaca.market.bars("ALFA", AS_OF, 2)


async def test_a_rate_limit_is_kept_until_the_time_that_the_header_names(
    alpaca: AlpacaLive,
) -> None:
    reset = str(int(EVENING.timestamp()) + 37)
    fault = alpaca.server.fails(NEWS, "429 JSON", headers={"X-RateLimit-Reset": reset})
    with pytest.raises(RateLimited):
        await alpaca.market.news(AS_OF, ["ALFA"], 5)
    assert alpaca.feed.resting_s() == 37
    with pytest.raises(RateLimited, match="next try in 37 s"):
        await alpaca.market.bars("ALFA", AS_OF, 2)
    assert len(alpaca.server.asked) == 1
    fault.times = 0
    alpaca.clock[0] += 37
    assert await alpaca.market.news(AS_OF, ["ALFA"], 5)


@pytest.mark.parametrize(
    ("reset", "rest_s"), [("0", 1), ("99999999999", 900), ("soon", 60), ("-5", 60)]
)
async def test_a_header_that_is_out_of_its_mind_is_bounded(
    alpaca: AlpacaLive, reset: str, rest_s: float
) -> None:
    alpaca.server.fails(NEWS, "429 page", headers={"X-RateLimit-Reset": reset})
    with pytest.raises(RateLimited):
        await alpaca.market.news(AS_OF, ["ALFA"], 5)
    assert alpaca.feed.resting_s() == rest_s


async def test_an_answer_that_used_the_rate_up_has_everybody_wait(alpaca: AlpacaLive) -> None:
    await alpaca.feed.price_feed()
    alpaca.at(EVENING + timedelta(seconds=20))
    alpaca.server.remaining = 2
    await alpaca.market.bars("ALFA", AS_OF, 2)  # its bars, and the last request: its actions
    alpaca.server.remaining = LIMIT
    await alpaca.market.news(AS_OF, ["ALFA"], 5)
    assert 39 <= alpaca.slept[-1] <= 40.1


async def test_a_wrong_key_says_what_to_do(alpaca: AlpacaLive, tmp_path: Path) -> None:
    wrong = type(KEYS)(KEYS.secret, KEYS.key_id)
    other = alpaca_source(alpaca.server, tmp_path / "wrong", keys=wrong)
    alpaca.others.append(other)
    with pytest.raises(SourceUnavailable, match="reset loses its keys") as refused:
        await other.market.news(AS_OF, ["ALFA"], 5)
    assert KEY_ID not in str(refused.value)
    assert SECRET not in str(refused.value)


async def test_without_a_key_nobody_is_asked(alpaca: AlpacaLive, tmp_path: Path) -> None:
    url = alpaca.server.url
    for file in (None, tmp_path / "missing", tmp_path / "bad"):
        (tmp_path / "bad").write_text(f"{KEY_ID}\n")
        settings = Settings(
            market={"source": "alpaca"},
            alpaca={"data_key_file": file, "data_url": url},
            data_dir=tmp_path / "desk",
        )
        market = market_of(settings)
        with pytest.raises(KeysMissing, match="DESKBUS_ALPACA_DATA_KEY_FILE"):
            await market.news(AS_OF, ["ALFA"], 5)
        with pytest.raises(KeysMissing) as missing:
            await market.bars("ALFA", AS_OF, 5)
        assert KEY_ID not in str(missing.value)
    assert not alpaca.server.asked


async def test_no_redirect_is_followed_with_the_key(alpaca: AlpacaLive) -> None:
    alpaca.server.fails(NEWS, "301")
    with pytest.raises(SourceUnavailable, match="HTTP 301"):
        await alpaca.market.news(AS_OF, ["ALFA"], 5)
    assert alpaca.server.count("/elsewhere") == 0


async def test_no_proxy_and_no_netrc_of_the_environment_is_used(
    alpaca: AlpacaLive, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login someone password else")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    for name in (
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
        "http_proxy",
        "https_proxy",
        "all_proxy",
    ):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    assert await alpaca.market.news(AS_OF, ["ALFA"], 5)
    assert not any("authorization" in headers for headers in alpaca.server.heard)


@pytest.mark.parametrize(
    "url",
    [
        "http://data.alpaca.markets",
        "https://data.alpaca.markets.example.org",
        "https://paper-api.alpaca.markets",
        "https://127.0.0.1.example.org",
        "http://someone@127.0.0.1:80",
        "https://10.0.0.1",
        "ftp://127.0.0.1",
    ],
)
def test_the_key_goes_to_one_host_or_to_this_machine(url: str) -> None:
    with pytest.raises(KeyPairUnusable, match=r"only sent to https://data\.alpaca\.markets"):
        calls.AlpacaCalls(lambda: KEYS, url)
    with pytest.raises(ValueError, match="data_url"):
        Settings(alpaca={"data_url": url})


async def test_the_key_is_in_no_log_error_or_repr(
    alpaca: AlpacaLive, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    said = f'{{"message": "key {KEY_ID} with {SECRET} is not right"}}'
    alpaca.server.fails(NEWS, "503 empty", times=1)
    alpaca.server.faults[0].answer = (400, "application/json", said)
    with log_lines() as logs:
        with pytest.raises(BadVendorData) as refused:
            await alpaca.market.news(AS_OF, ["ALFA"], 5)
        await alpaca.market.bars("ALFA", AS_OF, 2)
    assert "key *** with *** is not right" in str(refused.value)
    everything = f"{refused.value} {logs} {caplog.text} {capfd.readouterr()} {alpaca.told}"
    everything += f"{alpaca.feed!r} {vars(alpaca.calls)!r} {KEYS!r} {vars(alpaca.market)!r}"
    assert KEY_ID not in everything
    assert SECRET not in everything
    assert {headers["apca-api-key-id"] for headers in alpaca.server.heard} == {KEY_ID}
    assert not any(KEY_ID in path or SECRET in path for path in alpaca.server.asked)
