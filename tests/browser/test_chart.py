"""The chart of a ticker: it shows what the ledger has, and each trade leads to its decision."""

import random
import re
from itertools import pairwise
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, Route, expect

from tests.browser.desk import Shown
from tests.browser.test_results import got

DRAWN = "#candles[data-drawn=AAPL]"


def opened(page: Page, shown: Shown) -> None:
    """AAPL as the shown account has seen it."""
    page.goto(f"/tickers/AAPL?account={shown.account}")
    expect(page.locator(DRAWN)).to_be_visible()


def test_a_tickers_name_leads_to_its_chart(page: Page, shown: Shown) -> None:
    page.goto(f"/portfolio?account={shown.account}")
    page.get_by_role("group", name="Positions").get_by_role("link", name="AAPL").click()
    expect(page).to_have_url(re.compile(rf"/tickers/AAPL\?account={shown.account}$"))
    expect(page.locator(DRAWN)).to_be_visible()
    page.goto(f"/decisions/{shown.decided['cycle_id']}/rules")
    page.get_by_role("group", name="Tickers").get_by_role("link", name="MSFT").click()
    expect(page.locator("#candles[data-drawn=MSFT]")).to_be_visible()
    expect(page.locator("[data-ticker-chart]")).to_have_attribute("data-as-of", "2012-06-29")
    expect(page.locator("[data-legend]")).to_contain_text("2012-06-29")


def test_the_table_has_the_trades_of_the_chart_and_each_leads_to_its_decision(
    page: Page, shown: Shown
) -> None:
    opened(page, shown)
    days = got(page, f"/market/chart?ticker=AAPL&account={shown.account}")["days"]
    assert days
    trades = page.get_by_role("region", name="Trades in AAPL")
    expect(trades.locator("[data-show]")).to_have_count(len(days))
    trades.locator("[data-show]").last.click()
    beside = page.locator("[data-day]")
    expect(beside).to_contain_text(f"{days[0]['session']}")
    first = days[0]["fills"][0]
    beside.get_by_role("link", name="why").first.click()
    expect(page).to_have_url(re.compile(rf"/decisions/{first['cycle_id']}/rules$"))


def test_the_legend_tells_the_bar_under_the_pointer_and_averages_come_and_go(
    page: Page, shown: Shown
) -> None:
    opened(page, shown)
    chart = got(page, f"/market/chart?ticker=AAPL&account={shown.account}")
    legend = page.locator("[data-legend]")
    expect(legend).to_contain_text(chart["as_of"])
    expect(legend).to_contain_text(f"{chart['close'][-1]:,.2f}")
    expect(legend).to_contain_text("Cost")
    box = page.locator("#candles").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 3, box["y"] + box["height"] / 2)
    expect(legend).not_to_contain_text(chart["as_of"])
    ema = page.get_by_role("button", name="EMA 26")
    ema.click()
    expect(ema).to_have_attribute("aria-pressed", "true")
    page.reload()
    expect(ema).to_have_attribute("aria-pressed", "true")
    page.evaluate("localStorage.clear()")


def test_all_history_is_there_and_nothing_is_asked_of_another_host(
    page: Page, shown: Shown
) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    opened(page, shown)
    whole = page.get_by_role("button", name="All", exact=True)
    whole.click()
    expect(whole).to_have_attribute("aria-pressed", "true")
    assert {urlsplit(url).netloc for url in asked} == {urlsplit(shown.url).netloc}


GROUPED = """async ([url, days, px]) => {
  const { groups } = await import(url);
  const found = groups(days.map((at) => ({ at })), px);
  return found.map(({ at, last, days }) => [at, last, days.length]);
}"""


@pytest.mark.parametrize("px", [0.3, 1.0, 4.1, 20.0])
def test_marks_of_many_days_never_touch_and_none_is_lost(
    page: Page, shown: Shown, px: float
) -> None:
    opened(page, shown)
    script = str(page.locator("script[src*='candles.js']").get_attribute("src"))
    days = sorted(random.Random(1).sample(range(3_000), 400))
    url = script.replace("candles.js", "chart/marks.js")
    groups = page.evaluate(GROUPED, [url, days, px])
    assert sum(count for _, _, count in groups) == len(days)
    assert {at for at, _, _ in groups} <= set(days)
    for (at, last, _), (following, _, _) in pairwise(groups):
        assert (following - at) * px >= 15
        assert at <= last < following
    assert px < 15 or len(groups) == len(days)


def test_what_is_traded_meanwhile_comes_into_the_chart(page: Page, shown: Shown) -> None:
    opened(page, shown)
    legend = page.locator("[data-legend]")
    expect(legend).to_contain_text("Cost")

    def newer(route: Route) -> None:
        body = route.fetch().json()
        body["close"][-1] = 1234.5
        route.fulfill(json=body)

    page.route("**/market/chart?*", newer)
    page.evaluate("document.dispatchEvent(new Event('deskbus:refreshed'))")
    expect(legend).to_contain_text("1,234.50")
    expect(page.locator(DRAWN)).to_be_visible()


def test_without_an_account_it_is_shown_as_the_first_one_has_seen_it(page: Page) -> None:
    first = got(page, "/accounts")["accounts"][0]["account"]
    page.goto("/tickers/aapl")
    expect(page.locator(DRAWN)).to_be_visible()
    expect(page.locator("[data-ticker-chart]")).to_have_attribute("data-account", first)


def test_a_ticker_that_the_source_does_not_have_says_so(page: Page, shown: Shown) -> None:
    page.goto(f"/tickers/NOPE?account={shown.account}")
    expect(page.locator("#candles")).to_contain_text("NOPE")
    expect(page.get_by_text(f"Account {shown.account} never traded NOPE.")).to_be_visible()
