"""Every question to Yahoo meets every refusal: never an answer, never kept, counted."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest

from libs.market.asking import call_policy, questions
from libs.market.errors import NotInSource, RateLimited, SourceUnavailable, UnknownTicker
from libs.market.yahoo.market import YahooMarket
from tests.fakes.yahoo_live import AS_OF, Live
from tests.fakes.yahoo_server import REFUSALS, envelope

CLOSE = datetime(2024, 3, 15, 20, tzinfo=UTC)
LIMITED = {"429 page", "429 JSON", "999 page"}


@dataclass(frozen=True)
class Question:
    """One question: how it is asked, whose address is refused, what its true answer is like."""

    ask: Callable[[Live], Awaitable[Any]]
    part: str
    is_true: Callable[[Any], bool]


QUESTIONS = {
    "prices": Question(
        lambda live: live.market.bars("ALFA", AS_OF, 1),
        "/v8/finance/chart/",
        lambda bars: bars.height == 1,
    ),
    "rates": Question(
        lambda live: live.feed.rates("EUR", "USD", CLOSE), "/v8/finance/chart/EURUSD", bool
    ),
    "names and sectors": Question(
        lambda live: live.market.universe(AS_OF, ["ALFA"]),
        "/v1/finance/search",
        lambda found: found[0].sector == "Information Technology",
    ),
    "headlines": Question(
        lambda live: live.market.news(AS_OF, ["ALFA"], 5), "/xhr/ncp", lambda found: len(found) == 3
    ),
    "earnings of a ticker": Question(
        lambda live: live.market.earnings(AS_OF, ["ALFA"]), "/calendar/earnings", bool
    ),
    "earnings calendar": Question(
        lambda live: live.market.earnings(AS_OF, None),
        "/v1/finance/visualization",
        lambda due: {row.ticker for row in due} == {"DLTA", "ECHO", "BRVO"},
    ),
    "screens": Question(
        lambda live: live.feed.screen("day_gainers", AS_OF, 10), "/v1/finance/screener", bool
    ),
    "figures, summary": Question(
        lambda live: live.market.fundamentals("ALFA", AS_OF),
        "/v10/finance/quoteSummary",
        lambda found: found.eps_ttm == 3.3,
    ),
    "figures, quote": Question(
        lambda live: live.market.fundamentals("ALFA", AS_OF),
        "/v7/finance/quote",
        lambda found: found.eps_ttm == 3.3,
    ),
}


@pytest.mark.parametrize("refusal", REFUSALS)
@pytest.mark.parametrize("name", QUESTIONS)
async def test_a_refusal_is_no_answer_is_counted_and_not_kept(
    live: Live, name: str, refusal: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(questions, "ATTEMPTS_MAX", 1)
    monkeypatch.setattr(call_policy, "FAULTS_MAX", 1)
    question = QUESTIONS[name]
    status, body = REFUSALS[refusal]
    live.server.fails(question.part, status=status, body=body)
    with pytest.raises(SourceUnavailable) as caught:
        await question.ask(live)
    assert isinstance(caught.value, RateLimited) is (refusal in LIMITED)
    assert live.feed.resting_s() is not None  # the breaker counted it
    live.server.faults.clear()
    live.clock[0] += call_policy.LIMITED_S
    assert question.is_true(await question.ask(live))
    assert live.feed.resting_s() is None


async def test_what_yahoo_has_not_is_told_apart_from_what_it_refuses(live: Live) -> None:
    with pytest.raises(UnknownTicker, match="NOPE is not in source yahoo"):
        await live.market.bars("NOPE", AS_OF, 1)
    with pytest.raises(NotInSource, match="a fund or a young listing has none"):
        await live.market.earnings(AS_OF, ["INDI"])
    live.server.market.companies["ALFA"].news = []
    assert await live.market.news(AS_OF, ["ALFA"], 5) == ()
    assert live.feed.resting_s() is None


async def test_no_figures_in_yahoos_own_words_are_no_outage(live: Live) -> None:
    said = envelope("quoteSummary", "Not Found", "No fundamentals data found for symbol: ALFA")
    live.server.fails("/v10/finance/quoteSummary", status=404, body=said)
    with pytest.raises(UnknownTicker):
        await live.market.fundamentals("ALFA", AS_OF)
    assert live.feed.resting_s() is None


async def test_an_outage_empties_no_universe(live: Live) -> None:
    status, body = REFUSALS["401 Invalid Crumb"]
    live.server.fails("/v8/finance/chart/", status=status, body=body)
    with pytest.raises(SourceUnavailable, match="Invalid Crumb"):
        await YahooMarket(live.feed).universe(AS_OF, ["ALFA"])
    live.server.faults.clear()
    (found,) = await live.market.universe(AS_OF, ["ALFA"])
    assert found.ticker == "ALFA"
