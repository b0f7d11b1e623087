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
    page.get_by_role("link", name="Start a cycle").click()
    page.get_by_label("As of").fill("2012-06-29")
    page.get_by_label("Account", exact=True).fill(account)
    for label, text in fields.items():
        page.get_by_label(label).fill(text)
    return account


def test_a_cycle_is_requested_and_watched_to_its_end(page: Page) -> None:
    account = requested(page)
    page.get_by_role("button", name="Start cycle").click()
    expect(page).to_have_url(re.compile(r"/cycles/[0-9a-f-]{36}$"))
    expect(page.get_by_role("heading", level=1)).to_have_text("Decision of Fri 2012-06-29")
    expect(page.locator("#about .under")).to_contain_text("completed", timeout=ENDED_MS)
    expect(page.get_by_role("region", name="Pipelines")).to_contain_text(account)

    page.get_by_label("Single calls").check()
    expect(page).to_have_url(re.compile(r"calls=true"))
    tree = page.locator("#tree")
    expect(tree.get_by_text("get_stock_price").first).to_be_visible()
    tree.get_by_role("link", name="executing/execute").click()
    expect(page.get_by_role("region", name="Output")).to_contain_text("cash_after")


def test_lists_are_filtered_by_their_address(page: Page) -> None:
    page.goto("/cycles?status=failed")
    # A head and two cycles; tests before this one may have left further ones.
    expect(page.get_by_role("row").nth(2)).to_be_visible()
    expect(page.get_by_text("every candidate source failed").first).to_be_visible()
    page.get_by_label("Status").select_option("expired")
    expect(page).to_have_url(re.compile(r"/cycles\?status=expired$"))
    expect(page.get_by_text("every candidate source failed")).to_have_count(0)
    page.goto("/operations?status=failed")
    expect(page.get_by_role("link", name="scanning/digest").first).to_be_visible()
    answer = page.goto("/cycles?status=lost")
    assert answer is not None
    assert answer.status == 422


def test_a_cycle_that_asks_is_approved_and_its_order_seen(page: Page) -> None:
    account = requested(page)
    page.get_by_label("Ask for approval before placing orders").check()
    page.get_by_role("button", name="Start cycle").click()
    expect(page.get_by_text("Waits for approval")).to_be_visible(timeout=ENDED_MS)

    page.get_by_role("link", name="Approvals").click()
    proposal = page.get_by_role("form", name=f"Proposal of rules for {account}")
    expect(proposal.locator("[data-until]")).to_have_text(re.compile(r"\d+ min \d\d s left"))
    shares = proposal.get_by_label("Shares of MSFT to order")
    whole = shares.input_value()
    field = page.get_by_label("Shares of MSFT to order")
    value = proposal.locator("tr").filter(has=field).locator("[data-value]")
    proposed = value.inner_text()
    shares.fill("1")
    price = float(shares.get_attribute("data-price") or 0)
    expect(value).to_have_text(f"{price:,.2f} USD")
    shares.fill(whole)
    expect(value).to_have_text(proposed)
    shares.fill("5")
    expect(value).to_have_text(f"{5 * price:,.2f} USD")
    expect(proposal.locator(".total")).to_have_text(
        re.compile(r"^Orders of 7,160\.95 USD, of 13,676\.62 proposed\.$")
    )
    expect(proposal.get_by_role("button", name="Approve reduced")).to_be_visible()
    proposal.get_by_label("Reason").fill("less of it")
    proposal.get_by_role("button", name="Approve reduced").click()
    expect(proposal.locator(".total")).to_have_text(
        re.compile(r"7,160\.95 USD, of 13,676\.62 proposed\. Press again to approve\.$")
    )
    proposal.get_by_role("button", name="Confirm the reduced orders").click()
    page.get_by_role("link", name="Approved. The orders are being placed.").click()

    ended = page.locator(".ending")
    expect(ended).to_contain_text("Bought", timeout=ENDED_MS)
    expect(ended).to_contain_text("5 MSFT")
    approval = page.get_by_role("region", name="Approval")
    expect(approval).to_contain_text(f"MSFT 5 of {whole} shares")
    expect(approval).to_contain_text("less of it")
    expect(page.locator("#candles[data-drawn]")).to_be_visible()
    page.get_by_label("Ticker", exact=True).select_option("MSFT")
    expect(page.locator("#candles[data-drawn=MSFT]")).to_be_visible()


def test_a_cycle_that_waits_is_cancelled_after_a_question(page: Page) -> None:
    requested(page)
    page.get_by_label("Ask for approval before placing orders").check()
    page.get_by_role("button", name="Start cycle").click()
    expect(page.get_by_text("Waits for approval")).to_be_visible(timeout=ENDED_MS)
    page.once("dialog", lambda dialog: dialog.dismiss())
    page.get_by_role("button", name="Cancel the cycle").click()
    expect(page.locator("#about .under")).to_contain_text("running")
    page.once("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Cancel the cycle").click()
    expect(page.locator("#about .under")).to_contain_text("cancelled", timeout=ENDED_MS)
    expect(page.get_by_role("button", name="Cancel the cycle")).to_be_hidden()


def test_what_is_more_than_was_proposed_is_refused_and_a_no_orders_nothing(page: Page) -> None:
    account = requested(page)
    page.get_by_label("Ask for approval before placing orders").check()
    page.get_by_role("button", name="Start cycle").click()
    expect(page.get_by_text("Waits for approval")).to_be_visible(timeout=ENDED_MS)
    page.goto("/approvals")
    proposal = page.get_by_role("form", name=f"Proposal of rules for {account}")
    proposal.get_by_label("Shares of MSFT to order").evaluate(
        "(e) => { e.max = ''; e.value = 1e7; }"
    )
    proposal.get_by_role("button", name="Approve").click()
    expect(proposal.get_by_role("alert")).to_contain_text("smaller")
    proposal.get_by_label("Reason").fill("<img src=x onerror=alert(1)> & more")
    proposal.get_by_role("button", name="Reject").click()
    page.get_by_role("link", name="Rejected. Nothing is ordered.").click()
    expect(page.locator(".ending")).to_contain_text("ejected by console", timeout=ENDED_MS)
    # What people and models write is text, whatever it looks like.
    expect(page.locator(".ending")).to_contain_text("<img src=x onerror=alert(1)> & more")
    expect(page.locator("main img")).to_have_count(0)
    expect(page.get_by_role("region", name="Orders", exact=True)).to_contain_text("unchanged")
