"""Candidate sources: those of the desk, one of your own, and what happens when one fails."""

import asyncio
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import pytest

from contracts.cycle import CycleRequest
from contracts.sentiment import BuildDigest
from libs.market.errors import LookAhead, NoHistory, SourceUnavailable
from services.sentiment.handler import SourcesFailed
from services.sentiment.logic import EARNINGS, NEWS, SCREENER, Mention
from services.sentiment.sources import BadCandidateSource, sources_of

KNOWN = datetime(2024, 3, 14, 12, tzinfo=UTC)

PLUGIN = '''
from datetime import UTC, datetime
from services.sentiment.logic import Mention

class Rumours:
    """A source of one's own, as docs/digest.md shows it."""

    name = "rumours"

    def __init__(self, market):
        self.market = market

    async def find(self, as_of, tickers):
        known = datetime.combine(as_of, datetime.min.time(), UTC)
        return (Mention(ticker="FOXT", score=0.9, reason="heard it twice", known_at=known),)

class Named(Rumours):
    name = "Not A Name"

class Again(Rumours):
    name = "news"
'''


class Answers:
    """A source that says, or does, whatever a test wants."""

    name = "odd"

    def __init__(self, what):
        self._what = what

    async def find(self, as_of, tickers):
        return await self._what() if callable(self._what) else self._what


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """The plug-in's module on the path, as an installed package would be."""
    (tmp_path / "rumour_mill.py").write_text(PLUGIN)
    monkeypatch.syspath_prepend(tmp_path)


@pytest.fixture
def odd(fixture_desk, monkeypatch):
    """Builds a digest from the screener and a source that says what the test wants."""

    async def build(what, *others, **fields):
        names = ("odd", *others)
        made = sources_of(",".join(others) or SCREENER, fixture_desk.market)
        monkeypatch.setattr(
            "services.sentiment.app.sources_of", lambda *_: {"odd": Answers(what), **made}
        )
        request = CycleRequest(idempotency_key="test", sources=names, **fields)
        return await fixture_desk.do(BuildDigest, request=request)

    return build


def mention(ticker: str, **fields):
    return Mention(**{"ticker": ticker, "score": 0.5, "known_at": KNOWN, **fields})


def reasons(digest) -> dict[str, str]:
    return {item.ticker: item.reason for item in digest.dropped}


async def test_a_source_of_ones_own_is_named_in_the_settings(fixture_desk, installed, monkeypatch):
    monkeypatch.setenv("DESKBUS_CANDIDATES_SOURCES", "screener, rumour_mill:Rumours")
    digest = await fixture_desk.do(BuildDigest, request=CycleRequest(idempotency_key="test"))
    assert [report.name for report in digest.sources] == ["screener", "rumours"]
    first = digest.candidates[0]
    assert (first.ticker, set(first.sources)) == ("FOXT", {"screener", "rumours"})
    assert first.reasons["rumours"] == "heard it twice"


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ("tarot", "'tarot' is not a source of the desk; use screener, news, earnings or package"),
        ("no_such_module:Rumours", "cannot be made .*no_such_module"),
        ("rumour_mill:Missing", "cannot be made .*Missing"),
        ("rumour_mill:Named", "an invalid name"),
        ("news,rumour_mill:Again", "has the name news, which is there already"),
        (" , ", "names no source"),
    ],
)
def test_a_setting_that_names_no_source_says_what_is_wrong(fixture_desk, installed, rows, says):
    with pytest.raises(BadCandidateSource, match=says):
        sources_of(rows, fixture_desk.market)


def test_the_desks_own_sources_keep_the_order_of_the_setting(fixture_desk):
    assert list(sources_of("news,screener", fixture_desk.market)) == [NEWS, SCREENER]


async def test_candidates_say_why_each_source_named_them(fixture_desk):
    digest = await fixture_desk.do(BuildDigest, request=CycleRequest(idempotency_key="test"))
    found = {item.ticker: item.reasons for item in digest.candidates}
    assert found["ECHO"][EARNINGS] == "reports on 2024-03-22"
    assert found["ECHO"][NEWS] == "headlines in 7 days: 1"
    words = " ".join(item[SCREENER] for item in found.values())
    assert all(word in words for word in ("gainer 1 (+", "loser 1 (-", "most active 1"))


async def raises_value_error():
    raise ValueError("a bug in the plug-in")


async def has_no_history():
    raise NoHistory("ZZZ has no price")


async def hangs():
    await asyncio.Event().wait()


@pytest.mark.parametrize(
    ("what", "code"),
    [
        (raises_value_error, "source_failed"),
        (has_no_history, "no_history"),
        (hangs, "source_timeout"),
        (("not a mention",), "source_failed"),
    ],
)
async def test_a_source_that_fails_is_told_and_the_digest_goes_on(
    odd, fixture_desk, monkeypatch, what, code
):
    if what is hangs:
        # The first digest of a process takes longer than others, perhaps longer than the limit.
        request = CycleRequest(idempotency_key="first", sources=(SCREENER,))
        await replace(fixture_desk, journals={}).do(BuildDigest, request=request)
        monkeypatch.setenv("DESKBUS_CANDIDATES_TIMEOUT_S", "1")
    digest = await odd(what, SCREENER)
    told = {report.name: report for report in digest.sources}
    assert not told["odd"].ok
    assert told["odd"].error.code == code
    assert told[SCREENER].ok
    assert digest.candidates


async def test_when_every_source_fails_the_digest_fails_with_all_reasons(odd):
    with pytest.raises(SourcesFailed, match="source odd: ValueError: a bug in the plug-in"):
        await odd(raises_value_error)


async def is_silent():
    raise SourceUnavailable("screens", "HTTP 500")


@pytest.mark.parametrize("silent", [is_silent, hangs])
async def test_where_no_source_is_heard_of_the_digest_waits_and_nothing_is_on_record(
    odd, fixture_desk, monkeypatch, silent
):
    monkeypatch.setenv("DESKBUS_CANDIDATES_TIMEOUT_S", "1")
    with pytest.raises(SourceUnavailable):
        await odd(silent)
    assert fixture_desk.journals["builddigest"] == []


async def test_a_source_that_is_silent_while_another_answers_is_told(odd):
    digest = await odd(is_silent, SCREENER)
    told = {report.name: report for report in digest.sources}
    assert told["odd"].error.code == "source_unavailable"
    assert told[SCREENER].ok


async def test_a_source_that_answers_nothing_has_not_failed(odd):
    digest = await odd((), SCREENER)
    assert all(report.ok for report in digest.sources)


async def test_what_a_source_names_in_vain_is_dropped_with_the_reason(odd):
    found = (
        mention("ALFA", known_at=None),
        mention("ZZZZ"),
        mention("BTC-USD"),
        mention("HTEL"),
        mention("GOLF.DE"),
        mention("BRVO"),
    )
    digest = await odd(found, universe=("ALFA", "BRVO", "HTEL"))
    told = reasons(digest)
    assert [item.ticker for item in digest.candidates] == ["BRVO"]
    assert told["ALFA"].startswith("surfaced by odd; undated")
    assert "outside the universe" in told["ZZZZ"]
    assert "outside the universe" in told["GOLF.DE"]
    assert told["HTEL"].startswith("no_history")


async def test_unknown_tickers_of_a_source_are_dropped_without_a_universe_too(odd):
    digest = await odd((mention("ZZZZ"), mention("BTC-USD"), mention("HTEL"), mention("ALFA")))
    told = reasons(digest)
    assert [item.ticker for item in digest.candidates] == ["ALFA"]
    assert "unknown_ticker" in told["ZZZZ"]
    assert "crypto_not_supported" in told["BTC-USD"]
    assert "no_history" in told["HTEL"]


async def test_a_ticker_that_another_source_names_well_is_not_dropped(odd):
    digest = await odd((mention("ALFA", known_at=None),), SCREENER)
    assert "ALFA" in [item.ticker for item in digest.candidates]
    assert "ALFA" not in reasons(digest)


async def test_a_mention_from_after_the_close_is_a_leak_that_ends_the_operation(odd, fixture_desk):
    close = fixture_desk.market.calendar.close(date(2024, 3, 15))
    with pytest.raises(LookAhead, match="candidate source odd"):
        await odd((mention("ALFA", known_at=close + timedelta(seconds=1)),), SCREENER)


async def test_a_mention_at_the_close_itself_is_known(odd, fixture_desk):
    close = fixture_desk.market.calendar.close(date(2024, 3, 15))
    digest = await odd((mention("ALFA", known_at=close),))
    assert [item.ticker for item in digest.candidates] == ["ALFA"]


@pytest.mark.parametrize("score", [-0.1, 1.1, float("nan")])
def test_no_source_can_speak_louder_than_one(score):
    with pytest.raises(ValueError, match="score"):
        mention("ALFA", score=score)


async def test_headlines_come_with_the_candidates_whoever_named_them(odd):
    digest = await odd((mention("ALFA"),))
    assert len(digest.candidates[0].headlines) >= 1


async def test_a_market_without_news_is_told_when_nobody_asked_for_news(desk):
    request = CycleRequest(idempotency_key="test", sources=(SCREENER,))
    digest = await desk.do(BuildDigest, request=request)
    told = {report.name: report for report in digest.sources}
    assert told["headlines"].error.code == "not_in_source"
