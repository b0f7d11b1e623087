"""Headlines carry their time; one without is dropped, and an old silence is not taken for one."""

from datetime import UTC, date, datetime

import pytest

from libs.market.errors import NotInSource
from libs.market.yahoo.feed import NEWS_MAX
from libs.market.yahoo.market import YahooMarket
from libs.market.yahoo.shapes import news_of
from tests.fakes.yahoo_live import AS_OF, BEFORE, Live

CLOSE = datetime(2024, 3, 15, 20, tzinfo=UTC)


def story(title: str, at: str | None, **further: object) -> dict[str, object]:
    return {"id": title, "content": {"title": title, "pubDate": at, **further}}


async def test_headlines_are_dated_and_none_is_from_after_the_close(live: Live) -> None:
    found = await live.market.news(AS_OF, ["ALFA"], 50)
    assert found[0].title.endswith("minutes before the close")
    assert all(item.known_at <= CLOSE for item in found)
    assert not any("UNDATED" in item.title for item in found)
    assert found[0].publisher == "Fixture Wire"


async def test_an_older_session_sees_what_reaches_back_to_it(live: Live) -> None:
    assert len(await live.market.news(BEFORE, ["ALFA"], 50)) == 2
    with pytest.raises(NotInSource, match=r"headlines of ALFA back to 2024-01-05.*newest ones"):
        await live.market.news(date(2024, 1, 5), ["ALFA"], 50)


async def test_no_headlines_at_all_are_an_answer_for_the_newest_session_only(live: Live) -> None:
    live.server.market.companies["ALFA"].news = []
    assert await live.market.news(AS_OF, ["ALFA"], 50) == ()
    with pytest.raises(NotInSource):
        await live.market.news(BEFORE, ["ALFA"], 50)


async def test_a_full_page_of_this_evening_hides_the_day_and_says_so(live: Live) -> None:
    live.server.market.companies["ALFA"].news = [
        story(f"n{n}", f"2024-03-15T21:{n:02}:00Z") for n in range(NEWS_MAX)
    ]
    with pytest.raises(NotInSource, match="keeps only the newest"):
        await live.market.news(AS_OF, ["ALFA"], 50)


async def test_news_of_all_are_those_of_the_universe_newest_first(live: Live) -> None:
    few = YahooMarket(live.feed, ["ALFA", "DLTA", "GOLF.DE"])
    found = await few.news(AS_OF, None, 4)
    assert {item.ticker for item in found} == {"ALFA", "DLTA", "GOLF.DE"}
    times = [item.known_at for item in found]
    assert times == sorted(times, reverse=True)


def test_a_headline_counts_from_when_it_was_shown_last() -> None:
    rewritten = story("a", "2024-03-15T10:00:00Z", displayTime="2024-03-15T21:00:00Z")
    (item,), dropped = news_of("A", [rewritten])
    assert (item.known_at, dropped) == (datetime(2024, 3, 15, 21, tzinfo=UTC), 0)


def test_the_older_shape_is_read_too() -> None:
    old = {"title": "t", "publisher": "p", "link": "l", "providerPublishTime": 1_710_000_000}
    (item,), _ = news_of("A", [old])
    assert (item.publisher, item.url, item.known_at.year) == ("p", "l", 2024)


@pytest.mark.parametrize(
    "broken",
    [
        story("a", None),
        story("a", "yesterday"),
        story("a", "2024-03-15T10:00:00"),  # of no zone
        story("", "2024-03-15T10:00:00Z"),
        {"id": "x", "content": None},
        {"id": "x", "content": {"pubDate": "2024-03-15T10:00:00Z", "title": 5}},
    ],
)
def test_a_headline_without_a_time_or_a_title_is_counted_and_dropped(
    broken: dict[str, object],
) -> None:
    assert news_of("A", [broken]) == ([], 1)
