"""The main flow as a person goes through it: ask for a cycle, watch it."""

import re
from uuid import uuid4

from playwright.sync_api import Page, expect

ENDED_MS = 60_000
"""A cycle takes seconds; a busy machine makes minutes of them."""


def requested(page: Page, **fields: str) -> str:
    """Ask for a cycle of June 2012 by the form; its account."""
    account = f"a{uuid4().hex[:12]}"
    page.goto("/cycles")
    page.get_by_role("link", name="Request a cycle").click()
    page.get_by_label("As of").fill("2012-06-29")
    page.get_by_label("Pipelines").fill(f"rules@{account}")
    for label, text in fields.items():
        page.get_by_label(label).fill(text)
    return account


def test_a_cycle_is_requested_and_watched_to_its_end(page: Page) -> None:
    account = requested(page)
    page.get_by_role("button", name="Request it").click()
    expect(page).to_have_url(re.compile(r"/cycles/[0-9a-f-]{36}$"))
    expect(page.get_by_role("heading", level=1)).to_have_text("Decision of Fri 2012-06-29")
    expect(page.locator("#about .under")).to_contain_text("completed", timeout=ENDED_MS)
    expect(page.get_by_role("region", name="Pipelines")).to_contain_text(account)

    page.get_by_label("Single calls").check()
    expect(page).to_have_url(re.compile(r"calls=true"))
    tree = page.get_by_role("table")
    expect(tree.get_by_text("get_stock_price").first).to_be_visible()
    tree.get_by_role("link", name="executing/execute").click()
    expect(page.get_by_role("region", name="What came out")).to_contain_text("cash after")


def test_a_request_that_is_refused_says_why_and_can_be_mended(page: Page) -> None:
    requested(page)
    page.get_by_label("Time limit, seconds").fill("1")
    page.get_by_label("Money for buys").fill("much")
    page.get_by_role("button", name="Request it").click()
    expect(page.get_by_role("alert")).to_contain_text("budgets.money")
    page.get_by_label("Money for buys").fill("1,000")
    page.get_by_label("Time limit, seconds").fill("600")
    page.get_by_role("button", name="Request it").click()
    expect(page).to_have_url(re.compile(r"/cycles/[0-9a-f-]{36}$"))


def test_lists_are_filtered_by_their_address(page: Page) -> None:
    page.goto("/cycles?status=failed")
    expect(page.get_by_role("row")).to_have_count(2)
    expect(page.get_by_text("unknown_ticker").first).to_be_visible()
    page.get_by_label("Status").select_option("expired")
    expect(page).to_have_url(re.compile(r"/cycles\?status=expired$"))
    expect(page.get_by_text("No cycle is like that.")).to_be_visible()
    page.goto("/operations?status=failed")
    expect(page.get_by_role("link", name="scanning/digest")).to_be_visible()
    answer = page.goto("/cycles?status=lost")
    assert answer is not None
    assert answer.status == 422
