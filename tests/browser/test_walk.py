"""A visitor's walk through `deskbus demo`: to its worst trade, why it was bought, what it named and
which rule cut it, and to a proposal, its answer and its order. Clicks are counted."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser import looks
from tests.browser.conftest import window

SESSIONS = 60
PATIENCE_MS = 60_000
CLICKS_MAX = 6
P_AND_L = 7
DECIDED_IN = 10


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder: Path = tmp_path_factory.mktemp("walk") / "demo"
    command = [sys.executable, "-m", "services.cli", "demo", "--dir", str(folder), "--no-browser"]
    process = subprocess.Popen(
        [*command, "--port", "0", "--sessions", str(SESSIONS)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert process.stdout is not None
        address = ""
        for line in process.stdout:
            if found := re.search(r"(http://\S+)/leaderboard", line):
                address = found[1]
                break
        assert address, "the demo ended before it was filled"
        yield address
    finally:
        process.terminate()
        process.communicate(timeout=60)


@pytest.fixture
def page(browser: Browser, url: str) -> Iterator[Page]:
    hosts: set[str] = set()
    with browser.new_context(base_url=url, viewport=looks.DESKTOP) as context:
        context.on("request", lambda request: hosts.add(request.url.split("/")[2]))
        with window(context) as seen:
            yield seen.page
    assert seen.errors == []
    assert hosts == {url.removeprefix("http://")}, "a page asked another host"


def test_the_worst_trade_is_explained_and_the_waiting_one_approved(page: Page) -> None:
    clicks = 0

    def click(target: Locator) -> None:
        nonlocal clicks
        clicks += 1
        target.click()

    page.goto("/")
    expect(page.get_by_role("note")).to_contain_text("no model was asked")
    menu = page.get_by_role("navigation", name="Pages")

    click(menu.get_by_role("link", name="Performance"))
    trips = page.get_by_role("group", name="Round trips").locator("tbody tr")
    closed = [trip for trip in trips.all() if "open" not in trip.locator("td").nth(1).inner_text()]
    worst = min(closed, key=lambda trip: gain(trip.locator("td").nth(P_AND_L - 1)))
    ticker = worst.locator("th").inner_text()
    click(worst.locator("td").nth(DECIDED_IN - 1).get_by_role("link"))

    expect(page.get_by_role("heading", level=1)).to_contain_text("Decision of")
    reasons = page.locator("#evidence-title").locator("xpath=..")
    expect(reasons.get_by_text(re.compile("For: ")).first).to_be_visible()
    rules = page.locator("#rules-title").locator("xpath=..")
    expect(rules.get_by_role("row").filter(has_text=ticker).first).to_be_visible()
    expect(rules.get_by_role("cell", name="cut", exact=True).first).to_be_visible()

    click(menu.get_by_role("link", name="Approvals"))
    proposal = page.locator("form.proposal").first
    bought = proposal.locator("tbody .ticker").first.inner_text()
    decision = proposal.get_by_role("link", name="why").get_attribute("href")
    click(proposal.get_by_role("button", name="Approve"))
    expect(page.locator("form.proposal")).to_have_count(0, timeout=PATIENCE_MS)

    assert decision is not None
    click(menu.get_by_role("link", name="Decisions"))
    click(page.locator(f"a[href='{decision}']").first)
    orders = page.locator("#orders-title").locator("xpath=..")
    expect(orders.get_by_role("row").filter(has_text=bought).first).to_be_visible(
        timeout=PATIENCE_MS
    )
    assert clicks <= CLICKS_MAX


def gain(cell: Locator) -> float:
    """A trade's gain in money."""
    return float(cell.inner_text().split()[0].replace(",", ""))
