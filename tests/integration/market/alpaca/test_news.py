"""Headlines from Alpaca: known at their newest edit, page by page, and nothing of later."""

from datetime import date, datetime, timedelta

import pytest

from libs.market.alpaca import feed as feeds
from libs.market.errors import BadVendorData, NothingTraded, NotInSource
from tests.fakes.alpaca_live import AS_OF, CLOSE, NEXT, AlpacaLive
from tests.fakes.alpaca_server import NEWS, Story


async def titles(live: AlpacaLive, tickers: list[str] | None, as_of: date = AS_OF) -> list[str]:
    return [item.title for item in await live.market.news(as_of, tickers, 50)]


async def test_a_headline_counts_from_its_newest_edit(alpaca: AlpacaLive) -> None:
    items = await alpaca.market.news(AS_OF, ["DLTA"], 5)
    assert [(item.title, item.known_at) for item in items] == [
        ("DLTA edited", datetime.fromisoformat("2024-03-13T13:00:00+00:00"))
    ]
    assert items[0].publisher == "madeupwire"
    assert items[0].url == "https://news.example.org/4"


async def test_what_was_edited_after_the_close_is_not_shown_in_any_wording(
    alpaca: AlpacaLive,
) -> None:
    """The evening has lost the first wording, and must not show the later one."""
    assert await titles(alpaca, ["ALFA"]) == ["ALFA opens a plant", "DLTA edited"]
    assert await titles(alpaca, ["BRVO"]) == []
    alpaca.at(CLOSE + timedelta(days=3, hours=1))
    assert "ALFA buys BRVO" in await titles(alpaca, ["ALFA"], NEXT)


async def test_a_source_that_sends_later_wordings_is_not_believed(
    alpaca: AlpacaLive, monkeypatch: pytest.MonkeyPatch
) -> None:
    later = CLOSE + timedelta(minutes=1)
    alpaca.world.stories = [Story(9, ("ALFA",), CLOSE - timedelta(days=1), [(later, "leak")])]
    # As if the real host did not filter by the edit.
    monkeypatch.setattr(
        "tests.fakes.alpaca_server.moment",
        lambda text: (
            CLOSE + timedelta(days=9) if text > "2024-03-15" else CLOSE - timedelta(days=99)
        ),
    )
    assert await titles(alpaca, ["ALFA"]) == []
    assert alpaca.server.count(NEWS) == 1


async def test_one_question_asks_for_many_tickers_and_no_content(alpaca: AlpacaLive) -> None:
    found = await alpaca.market.news(AS_OF, ["ALFA", "BRVO", "DLTA"], 50)
    assert {(item.ticker, item.title) for item in found} == {
        ("ALFA", "ALFA opens a plant"),
        ("ALFA", "DLTA edited"),
        ("DLTA", "DLTA edited"),
    }
    (asked,) = alpaca.server.parameters(NEWS)
    assert asked["include_content"] == "false"
    assert asked["symbols"] == "ALFA,BRVO,DLTA"
    assert asked["end"] == "2024-03-15T20:00:00Z"
    assert (asked["sort"], asked["limit"]) == ("desc", "50")


async def test_of_all_tickers_means_those_of_the_settings_or_else_all(alpaca: AlpacaLive) -> None:
    alpaca.world.stories.append(
        Story(7, ("XTRA", "BTC/USD"), CLOSE - timedelta(hours=1), [(CLOSE, "XTRA")])
    )
    assert "XTRA" not in await titles(alpaca, None)
    everything = await alpaca.fresh(tickers=()).market.news(AS_OF, None, 50)
    assert [item.ticker for item in everything if item.title == "XTRA"] == ["XTRA"]


async def test_pages_are_read_until_there_are_enough(alpaca: AlpacaLive) -> None:
    alpaca.world.stories = [
        Story(n, ("ALFA",), CLOSE - timedelta(minutes=n), [(CLOSE - timedelta(minutes=n), f"n{n}")])
        for n in range(1, 181)
    ]
    found = await alpaca.market.news(AS_OF, ["ALFA"], 120)
    assert [item.title for item in found] == [f"n{n}" for n in range(1, 121)]
    assert alpaca.server.count(NEWS) == 3
    assert len(await alpaca.market.news(AS_OF, ["ALFA"], 10)) == 10
    assert alpaca.server.count(NEWS) == 3, "what is known already is not asked for again"


async def test_a_page_that_names_itself_as_the_next_one_ends_with_what_is_wrong(
    alpaca: AlpacaLive,
) -> None:
    alpaca.server.repeats = True
    with pytest.raises(BadVendorData, match="came before"):
        await alpaca.market.news(AS_OF, ["ALFA"], 500)
    assert alpaca.server.count(NEWS) == 2


async def test_no_more_pages_are_read_than_the_bound(alpaca: AlpacaLive) -> None:
    alpaca.server.endless = True
    await alpaca.market.news(AS_OF, ["ALFA"], 10_000)
    assert alpaca.server.count(NEWS) == feeds.NEWS_PAGES_MAX


async def test_nothing_there_not_asked_and_no_session_yet_are_three_things(
    alpaca: AlpacaLive,
) -> None:
    assert await titles(alpaca, ["CHLI"]) == []
    with pytest.raises(NotInSource, match="US listings only"):
        await titles(alpaca, ["SAP.DE"])
    with pytest.raises(NotInSource, match="begin on 2015-01-01"):
        await titles(alpaca, ["ALFA"], date(2014, 6, 2))
    with pytest.raises(NothingTraded, match="before 2024-03-18T20:16"):
        await titles(alpaca, ["ALFA"], NEXT)
    assert alpaca.server.count(NEWS) == 1


async def test_the_evenings_headlines_are_kept_and_a_later_process_lacks_what_was_edited(
    alpaca: AlpacaLive,
) -> None:
    first = await titles(alpaca, ["ALFA"])
    edit = CLOSE + timedelta(hours=10)
    alpaca.world.stories[0].wordings.append((edit, "ALFA closes a plant"))
    alpaca.at(CLOSE + timedelta(hours=14))
    assert await titles(alpaca, ["ALFA"]) == first
    assert await titles(alpaca.fresh(), ["ALFA"]) == ["DLTA edited"]


async def test_a_whole_answer_about_many_answers_for_each_of_them(alpaca: AlpacaLive) -> None:
    many = await alpaca.market.news(AS_OF, ["ALFA", "BRVO", "DLTA"], 50)
    assert alpaca.server.count(NEWS) == 1
    for ticker in ("ALFA", "BRVO", "DLTA"):
        own = await alpaca.market.news(AS_OF, [ticker], 50)
        assert list(own) == [item for item in many if item.ticker == ticker]
    assert alpaca.server.count(NEWS) == 1
    alpaca.server.page_rows_max = 1
    other = alpaca.fresh()
    await other.market.news(AS_OF, ["ALFA", "DLTA"], 50)  # one page of more
    await other.market.news(AS_OF, ["ALFA"], 50)
    assert alpaca.server.count(NEWS) == 3, "a part of an answer answers for nobody"
