"""The overview: what waits first, then money as the API has it; figures of a desk that is away."""

import re
from decimal import Decimal

from playwright.sync_api import BrowserContext, Page, expect

from tests.browser.desk import Shown
from tests.browser.test_results import got


def test_accounts_stand_with_their_money_and_lead_to_their_books(page: Page, shown: Shown) -> None:
    page.goto("/")
    accounts = page.get_by_role("region", name="Money by account")
    (mine,) = [it for it in got(page, "/accounts")["accounts"] if it["account"] == shown.account]
    row = accounts.get_by_role("row").filter(has_text=shown.account)
    expect(row).to_contain_text(f"{Decimal(mine['equity']):,.2f} USD")
    expect(row).to_contain_text(f"{Decimal(mine['total_gain']):+,.2f}")
    expect(row.locator("svg polyline")).to_have_attribute("points", re.compile(r"^0\.0,"))
    row.get_by_role("link", name=shown.account).click()
    expect(page).to_have_url(re.compile(rf"/portfolio\?account={shown.account}$"))


def test_what_waits_comes_before_money_and_every_tile_leads_somewhere(page: Page) -> None:
    page.goto("/")
    titles = page.locator("main h2").all_inner_texts()
    assert titles.index("Needs you") < titles.index("Accounts") < titles.index("Last decisions")
    assert page.locator("main").get_by_text("Spent today").count() == 1
    for link in page.locator("a.tile").all():
        target = str(link.get_attribute("href"))
        assert target.startswith("#") or page.request.get(target).ok, target
    assert page.locator(".tile").count() == page.locator("a.tile").count()


def test_a_position_near_its_exit_is_named_with_what_would_sell_it(
    page: Page, shown: Shown
) -> None:
    page.goto("/")
    near = page.get_by_role("region", name="Near their exit")
    held = got(page, f"/exit-signals?account={shown.account}")["positions"]
    expect(near).to_contain_text(held[0]["ticker"])
    expect(near.get_by_role("link", name=shown.account).first).to_be_visible()


def test_while_the_desk_is_away_its_figures_are_greyed_with_their_time(
    context: BrowserContext,
) -> None:
    # A window of its own: that nobody answers is told there as an error.
    page = context.new_page()
    page.goto("/")
    region = page.locator("#now")
    expect(region).to_have_css("filter", "none")
    try:
        context.set_offline(True)
        expect(page.locator("#connection")).to_have_text(
            re.compile(r"^The desk does not answer: as of \d\d:\d\d UTC$")
        )
        expect(region).to_have_css("filter", "grayscale(1)")
    finally:
        # The other tests have the same context.
        context.set_offline(False)
    expect(page.locator("#connection")).to_have_text("")
    expect(region).to_have_css("filter", "none")
    page.close()
