"""Sources that hang, drip or never end: each read has a limit for the whole of it, in time and in
bytes; what is asked for has no answer, and other sources and other questions have theirs."""

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from libs.market.asking import questions
from libs.market.edgar import calls as edgar_calls
from libs.market.errors import BadVendorData, SourceUnavailable
from libs.market.yahoo import session as yahoo_session
from tests.fakes import edgar_live, edgar_server
from tests.fakes.edgar_live import EdgarLive, apple, edgar_serving
from tests.fakes.slow_answers import SLOW, SlowAnswer
from tests.fakes.yahoo_live import AS_OF, Live

LIMIT_S = 0.5
PATIENCE_S = 20.0
"""Far more than a limit, on any machine; a server here waits 20 s, or for ever."""


@pytest.fixture
def edgar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[EdgarLive]:
    monkeypatch.setattr(edgar_calls, "WHOLE_S", LIMIT_S)
    monkeypatch.setattr(questions, "ATTEMPTS_MAX", 1)
    with edgar_serving(tmp_path, apple()) as live:
        yield live


@pytest.fixture
def yahoo(live: Live, monkeypatch: pytest.MonkeyPatch) -> Live:
    monkeypatch.setattr(yahoo_session, "QUESTION_S", LIMIT_S)
    monkeypatch.setattr(questions, "ATTEMPTS_MAX", 1)
    return live


@pytest.mark.parametrize("how", SLOW)
async def test_edgar_has_no_answer_where_one_takes_too_long(
    edgar: EdgarLive, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    edgar.server.slow.append(SlowAnswer("/submissions/", how))
    started = time.monotonic()
    with pytest.raises(SourceUnavailable) as caught:
        await edgar.feed.filings("AAPL", edgar_live.AS_OF)
    assert time.monotonic() - started < PATIENCE_S
    assert edgar_live.CONTACT not in str(caught.value)
    edgar.server.slow.clear()
    monkeypatch.setattr(edgar_calls, "WHOLE_S", PATIENCE_S)
    assert await edgar.feed.filings("AAPL", edgar_live.AS_OF), "it is asked again"


@pytest.mark.parametrize("how", SLOW)
async def test_yahoo_has_no_answer_where_one_takes_too_long(
    yahoo: Live, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    yahoo.server.slow.append(SlowAnswer("/v8/finance/chart/ALFA", how))
    started = time.monotonic()
    with pytest.raises(SourceUnavailable):
        await yahoo.market.bars("ALFA", AS_OF, 1)
    assert time.monotonic() - started < PATIENCE_S
    # A sound answer may take longer than the short limit on a machine that others use.
    monkeypatch.setattr(yahoo_session, "QUESTION_S", PATIENCE_S)
    assert (await yahoo.market.bars("BRVO", AS_OF, 1)).height == 1, "another question is answered"
    yahoo.server.slow.clear()
    assert (await yahoo.market.bars("ALFA", AS_OF, 1)).height == 1


@pytest.mark.parametrize("how", SLOW)
async def test_a_cookie_that_never_comes_costs_no_prices(live: Live, how: str) -> None:
    live.server.slow.append(SlowAnswer("fc.yahoo.com", how))
    monkey = pytest.MonkeyPatch()
    with monkey.context() as patch:
        patch.setattr(yahoo_session, "REQUEST_S", LIMIT_S)
        assert (await live.market.bars("ALFA", AS_OF, 1)).height == 1


async def test_threads_that_hang_are_free_again_when_the_limit_is_over(
    yahoo: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(questions, "ANSWER_S_MAX", PATIENCE_S)
    yahoo.server.slow.append(SlowAnswer("/v8/finance/chart/", "hangs"))
    tickers = ["ALFA", "BRVO", *(f"T{n}" for n in range(questions.THREADS))]
    answers = await asyncio.gather(
        *(yahoo.market.bars(ticker, AS_OF, 1) for ticker in tickers), return_exceptions=True
    )
    assert {type(answer) for answer in answers} == {SourceUnavailable}
    yahoo.server.slow.clear()
    monkeypatch.setattr(yahoo_session, "QUESTION_S", PATIENCE_S)
    yahoo.clock[0] += 60
    assert (await yahoo.market.bars("ALFA", AS_OF, 1)).height == 1


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_out_of_yahoo_is_not_followed_and_names_the_host(
    live: Live, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    monkeypatch.setattr(questions, "ATTEMPTS_MAX", 1)
    live.server.fails(
        "/v8/finance/chart/", status=status, body="https://yahoo.com.example.org/v8/finance/chart/A"
    )
    with pytest.raises(SourceUnavailable, match=r"to yahoo\.com\.example\.org is not"):
        await live.market.bars("ALFA", AS_OF, 1)


async def test_a_redirect_within_yahoo_is_followed(live: Live) -> None:
    live.server.fails("fc.yahoo.com", status=302, body="https://query1.finance.yahoo.com/away")
    assert (await live.market.bars("ALFA", AS_OF, 1)).height == 1
    assert live.server.count("/away") >= 1


async def test_a_redirect_of_edgar_is_not_followed_and_names_the_host(edgar: EdgarLive) -> None:
    edgar.server.fails("/submissions/", "301")
    with pytest.raises(SourceUnavailable, match=r"redirect to 127.0.0.1 \(HTTP 301\) is not foll"):
        await edgar.feed.filings("AAPL", edgar_live.AS_OF)
    assert edgar.server.count("/elsewhere") == 0


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"[" * 100_000, "HTTP 200"),
        (b'{"filings": [' + b"[]," * 900_000 + b"[]]}", "more values than any page has"),
        (b"x" * 20_000_000, "more than 16,777,216 bytes"),
    ],
)
async def test_a_page_of_edgar_is_bounded_unpacked_and_in_what_it_becomes(
    edgar: EdgarLive, monkeypatch: pytest.MonkeyPatch, body: bytes, why: str
) -> None:
    monkeypatch.setattr(edgar_calls, "WHOLE_S", PATIENCE_S)
    edgar.server.faults.append(
        edgar_server.Fault("/submissions/", (200, edgar_server.JSON, body.decode()))
    )
    with pytest.raises((SourceUnavailable, BadVendorData), match=why):
        await edgar.feed.filings("AAPL", edgar_live.AS_OF)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("[" * 100_000, "without chart.result"),
        ("x" * 5_000_000, "more than 4,000,000 bytes"),
        ("<a>" * 100_000, "more than 60,000 tags"),
    ],
)
async def test_a_page_of_yahoo_is_bounded_unpacked_and_in_what_it_becomes(
    live: Live, monkeypatch: pytest.MonkeyPatch, body: str, why: str
) -> None:
    monkeypatch.setattr(questions, "ATTEMPTS_MAX", 1)
    live.server.fails("/v8/finance/chart/", body=body)
    with pytest.raises(SourceUnavailable, match=why):
        await live.market.bars("ALFA", AS_OF, 1)
