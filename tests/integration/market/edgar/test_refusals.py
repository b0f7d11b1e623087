"""Every question to EDGAR meets every refusal: never an answer, never kept; and the contact is
said to nobody but EDGAR."""

import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from libs.market.asking import call_policy, questions
from libs.market.edgar import calls
from libs.market.edgar.feed import LIMITED_S
from libs.market.errors import BadVendorData, NotInSource, RateLimited, SourceUnavailable
from tests.fakes.edgar_live import AS_OF, CONTACT, EdgarLive, edgar_source
from tests.fakes.edgar_server import REFUSALS
from tests.fakes.log_lines import log_lines

ADDRESSES = {
    "/files/company_tickers.json": lambda live: live.feed.filings("AAPL", AS_OF),
    "/submissions/CIK0000320193.json": lambda live: live.feed.filings("AAPL", AS_OF),
    "/submissions/CIK0000320193-submissions-001.json": (
        lambda live: live.feed.filings("AAPL", AS_OF)
    ),
    "/api/xbrl/companyfacts/": lambda live: live.feed.reported("AAPL", AS_OF),
}
LIMITED = {"403 undeclared", "200 undeclared", "403 threshold", "429 threshold", "429 empty"}


@pytest.mark.parametrize("address", ADDRESSES)
@pytest.mark.parametrize("refusal", REFUSALS)
async def test_a_refusal_is_no_answer_and_is_not_kept(
    edgar: EdgarLive, monkeypatch: pytest.MonkeyPatch, refusal: str, address: str
) -> None:
    ask: Callable[[EdgarLive], Awaitable[Any]] = ADDRESSES[address]
    monkeypatch.setattr(questions, "ATTEMPTS_MAX", 1)
    monkeypatch.setattr(call_policy, "FAULTS_MAX", 1)
    fault = edgar.server.fails(address, refusal)
    with pytest.raises(SourceUnavailable) as refused:
        await ask(edgar)
    assert isinstance(refused.value, RateLimited) == (refusal in LIMITED)
    assert CONTACT not in str(refused.value)
    fault.times = 0
    edgar.clock[0] += LIMITED_S
    assert edgar.feed.resting_s() is None
    assert await ask(edgar), "it is asked again, and nothing of the refusal is left"


async def test_too_many_requests_are_not_tried_again_for_ten_minutes_by_any_process(
    edgar: EdgarLive, tmp_path: Any
) -> None:
    fault = edgar.server.fails("/submissions/", "429 threshold")
    other = edgar_source(edgar.server, tmp_path, clock=edgar.clock)
    edgar.others.append(other)
    with pytest.raises(RateLimited):
        await edgar.feed.filings("AAPL", AS_OF)
    assert edgar.server.count("/submissions/") == 1
    for live in (edgar, other):
        with pytest.raises(RateLimited, match="next try in"):
            await live.feed.filings("GOOG", AS_OF)
    assert edgar.server.count("/submissions/") == 1
    fault.times = 0
    edgar.clock[0] += LIMITED_S
    assert await edgar.feed.filings("GOOG", AS_OF)


async def test_a_contact_that_edgar_refuses_is_told_with_the_setting_also_while_it_rests(
    edgar: EdgarLive,
) -> None:
    edgar.server.fails("/submissions/", "403 undeclared")
    for _ in range(2):
        with pytest.raises(RateLimited, match="set DESKBUS_EDGAR_CONTACT") as refused:
            await edgar.feed.filings("AAPL", AS_OF)
        assert CONTACT not in str(refused.value)
    assert edgar.server.count("/submissions/") == 1


async def test_what_fails_now_and_then_is_asked_again_with_pauses(edgar: EdgarLive) -> None:
    edgar.server.fails("/submissions/", "500 page", times=2)
    assert await edgar.feed.filings("AAPL", AS_OF)
    assert edgar.server.asked.count("/submissions/CIK0000320193.json") == 3


async def test_an_unknown_company_is_none_and_no_fault(edgar: EdgarLive) -> None:
    edgar.server.companies[1].facts = None
    with pytest.raises(NotInSource):
        await edgar.feed.reported("GOOG", AS_OF)
    assert edgar.feed.resting_s() is None


async def test_an_answer_beyond_the_bound_is_refused_unread(
    edgar: EdgarLive, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "PAGE_BYTES_MAX", 100)
    with pytest.raises(BadVendorData, match="more than 100 bytes"):
        await edgar.feed.filings("AAPL", AS_OF)


async def test_no_connection_is_unavailable(edgar: EdgarLive) -> None:
    edgar.calls._data_url = "http://127.0.0.1:1"
    with pytest.raises(SourceUnavailable) as refused:
        await edgar.feed.filings("AAPL", AS_OF)
    assert CONTACT not in str(refused.value)


async def test_a_redirect_is_not_followed_with_the_contact(edgar: EdgarLive) -> None:
    edgar.server.fails("/submissions/", "301")
    with pytest.raises(SourceUnavailable, match="HTTP 301"):
        await edgar.feed.filings("AAPL", AS_OF)
    assert edgar.server.count("/elsewhere") == 0


async def test_the_contact_goes_to_edgar_and_into_no_log(
    edgar: EdgarLive, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    edgar.server.fails("/submissions/", "503 empty", times=1)
    with log_lines() as logs:
        await edgar.feed.reported("AAPL", AS_OF)
    assert all(agent.startswith("Deskbus/") for agent in edgar.server.agents)
    assert all(agent.endswith(f" {CONTACT}") for agent in edgar.server.agents)
    assert logs
    everything = f"{logs} {caplog.text} {capfd.readouterr()} {edgar.feed!r} {vars(edgar.calls)!r}"
    assert CONTACT not in everything
