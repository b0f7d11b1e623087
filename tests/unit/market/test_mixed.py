"""One market of several sources: each kind of question goes to whoever was chosen for it."""

from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path

import pytest

from libs.market.choice import CAN, DataKind, PartName, SourceName, chosen
from libs.market.errors import LookAhead, NoHistory, NotInSource, UnknownSource, UnknownTicker
from libs.market.filings.reported import Filing
from libs.market.kinds import answered_by, label_of
from libs.market.mixed import MixedMarket, Parts, SearchingMixedMarket
from libs.market.replay.market import ReplayMarket
from libs.market.replay.versioned import VersionedMarket
from libs.market.source import (
    EarningsReport,
    Fundamentals,
    Listing,
    ListingSearch,
    NewsItem,
    SourceLabel,
)
from libs.market.sources import market_of
from libs.market.tools.toolbox import MARKET_TOOL_NAMES, MarketTools
from libs.runtime.settings import Settings

AS_OF = date(2024, 3, 15)
FIXTURE = Path(__file__).parents[2] / "data" / "fixture_market"


@dataclass
class Elsewhere:
    """A source of all that is no price, which knows ALFA alone."""

    market: ReplayMarket
    label: SourceLabel = SourceLabel("elsewhere", "")
    late: bool = False

    async def fundamentals(self, ticker: str, as_of: date) -> Fundamentals | None:
        if ticker != "ALFA":
            raise UnknownTicker(ticker, self.label.name)
        found = await self.market.fundamentals(ticker, as_of)
        assert found is not None
        known_at = self.market.calendar.close(date(2024, 3, 18)) if self.late else found.known_at
        return replace(found, eps_ttm=77.0, known_at=known_at)

    async def filings(self, ticker: str, as_of: date) -> tuple[Filing, ...]:
        known_at = self.market.calendar.close(AS_OF)
        return (Filing(ticker, "0000000000-24-000001", "8-K", AS_OF, known_at, items=("2.02",)),)

    async def news(self, *_: object) -> tuple[NewsItem, ...]:
        raise NoHistory("the recording ends before it")

    async def earnings(self, *_: object) -> tuple[EarningsReport, ...]:
        return ()


@pytest.fixture
def elsewhere(fixture: ReplayMarket) -> Elsewhere:
    return Elsewhere(fixture)


def mixed(fixture: ReplayMarket, other: Elsewhere) -> MixedMarket:
    return MixedMarket(
        fixture, Parts(figures=other, events=other, headlines=other, calendar=fixture)
    )


async def test_each_question_goes_to_its_source_and_the_answer_says_which(
    fixture: ReplayMarket, elsewhere: Elsewhere
) -> None:
    tools = MarketTools(mixed(fixture, elsewhere), AS_OF, MARKET_TOOL_NAMES)
    figures = await tools.call("get_fundamentals", {"ticker": "ALFA"})
    assert figures["figures"]["eps_ttm"] == 77.0
    assert figures["source"] == "elsewhere (fundamentals), fixture (synthetic) (prices)"
    filings = await tools.call("get_filings", {"ticker": "ALFA"})
    assert (filings["source"], len(filings["items"])) == ("elsewhere", 1)
    price = await tools.call("get_stock_price", {"ticker": "ALFA"})
    dates = await tools.call("get_earnings", {"ticker": "ALFA"})
    assert price["source"] == dates["source"] == "fixture (synthetic)"
    assert dates["last_reported"] is not None


async def test_what_only_the_prices_source_knows_the_other_one_has_nothing_of(
    fixture: ReplayMarket, elsewhere: Elsewhere
) -> None:
    market = mixed(fixture, elsewhere)
    with pytest.raises(NotInSource, match=r"source elsewhere has no fundamentals.*BRVO is not in"):
        await market.fundamentals("BRVO", AS_OF)
    with pytest.raises(NotInSource, match="the recording ends before it"):
        await market.news(AS_OF, ("ALFA",), 5)
    with pytest.raises(UnknownTicker):
        await market.bars("NOPE", AS_OF, 5)
    with pytest.raises(UnknownTicker):
        await market.earnings(AS_OF, ("NOPE",))


async def test_a_source_that_looks_ahead_is_found_out_in_a_mixed_market_too(
    fixture: ReplayMarket, elsewhere: Elsewhere
) -> None:
    elsewhere.late = True
    tools = MarketTools(mixed(fixture, elsewhere), AS_OF, MARKET_TOOL_NAMES)
    with pytest.raises(LookAhead, match="get_fundamentals"):
        await tools.call("get_fundamentals", {"ticker": "ALFA"})


def test_a_mixed_market_searches_where_its_prices_source_does(
    fixture: ReplayMarket, elsewhere: Elsewhere
) -> None:
    class Search:
        async def search(self, as_of: date, query: str) -> tuple[Listing, ...]:
            return ()

    parts = Parts(figures=elsewhere, events=elsewhere, headlines=elsewhere, calendar=elsewhere)
    assert not isinstance(MixedMarket(fixture, parts), ListingSearch)
    assert isinstance(SearchingMixedMarket(fixture, parts, Search()), ListingSearch)


def test_a_market_of_one_source_answers_everything_under_its_label(fixture: ReplayMarket) -> None:
    assert {label_of(fixture, kind) for kind in DataKind} == {fixture.label}
    assert answered_by(fixture, (DataKind.FUNDAMENTALS, DataKind.PRICES)) == "fixture (synthetic)"


def test_without_a_choice_of_its_own_each_kind_comes_from_the_market() -> None:
    for name in SourceName:
        settings = Settings(market={"source": name})
        assert {chosen(settings, kind) for kind in DataKind} == {name}
    assert isinstance(market_of(Settings(market={"replay_dir": FIXTURE})), VersionedMarket)


def test_each_kind_takes_the_sources_that_can_answer_it_and_no_other() -> None:
    for kind in DataKind:
        setting = "source" if kind is DataKind.PRICES else kind.value
        for name in (*SourceName, *PartName):
            if kind in CAN[name]:
                settings = Settings.model_validate({"market": {setting: name}})
                assert chosen(settings, kind) is name
            else:
                with pytest.raises(ValueError, match=setting):
                    Settings.model_validate({"market": {setting: name}})


def test_a_source_that_there_is_not_is_refused_by_the_name_of_its_setting() -> None:
    settings = Settings().changed(market={"headlines": "bloomberg"})
    says = "DESKBUS_MARKET_HEADLINES is 'bloomberg', which is not a source of headlines; set it to"
    with pytest.raises(UnknownSource, match=says) as refused:
        market_of(settings)
    assert refused.value.field == "market.headlines"


def test_prices_of_one_source_and_headlines_of_another_are_mixed() -> None:
    market = market_of(
        Settings(
            market={"replay_dir": FIXTURE, "headlines": "yahoo"},
        )
    )
    assert label_of(market, DataKind.HEADLINES).name == "yahoo"
    assert {label_of(market, kind).name for kind in (DataKind.PRICES, DataKind.CALENDAR)} == {
        "fixture"
    }
