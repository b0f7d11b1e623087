"""Lists: filtered without a reload and without a script, rows that lead somewhere, selections."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser import looks
from tests.browser.conftest import window
from tests.browser.desk import Shown
from tests.browser.test_results import got

LISTS = ("/cycles", "/operations")


@pytest.fixture
def still(browser: Browser, shown: Shown) -> Iterator[Page]:
    """A window whose pages run no script."""
    with (
        browser.new_context(
            base_url=shown.url, viewport=looks.DESKTOP, java_script_enabled=False
        ) as context,
        window(context) as seen,
    ):
        yield seen.page


def test_each_cycle_says_what_came_of_it_as_the_api_does(page: Page) -> None:
    page.goto("/cycles")
    for cycle in got(page, "/cycles?limit=10")["cycles"]:
        row = page.get_by_role("row").filter(has_text=cycle["cycle_id"][:8])
        expect(row).to_contain_text(cycle["outcome"])
        assert cycle["outcome"]


def test_what_is_typed_and_chosen_filters_in_place_and_stands_in_the_address(
    page: Page, shown: Shown
) -> None:
    page.goto("/cycles")
    page.evaluate("window.isSamePage = true")
    search = page.get_by_label("Search", exact=True)
    search.press_sequentially("bought")
    expect(page).to_have_url(re.compile(r"/cycles\?text=bought$"))
    row = page.get_by_role("row").filter(has_text=shown.decided["cycle_id"][:8])
    expect(row).to_be_visible()
    expect(page.get_by_text("every candidate source failed")).to_have_count(0)
    expect(search).to_be_focused()
    page.get_by_label("Account").select_option(shown.account)
    expect(page).to_have_url(re.compile(rf"text=bought&account={shown.account}$"))
    page.get_by_label("Kind").select_option("exit")
    expect(page.get_by_text("No such cycle.")).to_be_visible()
    assert page.evaluate("window.isSamePage")
    expect(page.get_by_role("button", name="Filter")).to_be_hidden()
    page.go_back()
    expect(row).to_be_visible()
    page.get_by_role("link", name="Clear filters").click()
    expect(page).to_have_url(re.compile(r"/cycles$"))


def test_a_filter_that_cannot_be_is_told_in_place_and_the_next_one_works(page: Page) -> None:
    page.goto("/cycles")
    page.get_by_label("From session").fill("2012-07-01")
    page.get_by_label("To session").fill("2012-06-01")
    expect(page.get_by_role("alert")).to_contain_text("2012-07-01 is after until")
    # The desk is there: it has said what is wrong.
    expect(page.locator("#connection")).to_have_text("")
    page.get_by_label("From session").fill("2012-05-01")
    expect(page.get_by_role("alert")).to_have_count(0)


def test_without_a_script_the_filters_work_and_a_click_on_a_head_sorts(
    still: Page, shown: Shown
) -> None:
    still.goto("/cycles")
    still.get_by_label("Status").select_option("completed")
    still.get_by_label("Account").select_option(shown.account)
    still.get_by_role("button", name="Filter").click()
    expect(still).to_have_url(re.compile(rf"status=completed.*account={shown.account}"))
    rows = still.locator("tbody tr")
    assert rows.count() > 1
    still.get_by_role("link", name="Took").click()
    expect(still.get_by_role("columnheader", name="Took")).to_have_attribute(
        "aria-sort", "descending"
    )
    asked = f"/cycles?status=completed&account={shown.account}&sort=took&limit=50"
    wanted = [cycle["cycle_id"][:8] for cycle in got(still, asked)["cycles"]]
    assert [row.get_by_role("link").first.inner_text() for row in rows.all()] == wanted
    expect(still.get_by_role("button", name="Cancel those that run")).to_be_hidden()
    boxes = still.get_by_role("checkbox")
    boxes.nth(0).check()
    boxes.nth(1).check()
    still.get_by_role("button", name="Compare selected").click()
    expect(still.get_by_role("heading", name="Cycles compared")).to_be_visible()


@pytest.mark.parametrize("path", LISTS)
def test_a_whole_row_leads_where_its_link_leads(path: str, page: Page) -> None:
    page.goto(f"{path}?status=completed")
    row = page.locator("tr.row").first
    href = row.get_by_role("link").first.get_attribute("href")
    assert href is not None
    row.locator("td.figure").first.click()
    page.wait_for_url(f"**{href}")


def test_a_long_failure_is_one_line_until_it_is_unfolded(page: Page, shown: Shown) -> None:
    page.goto(f"/cycles?status=failed&text={shown.failed[:8]}")
    row = page.get_by_role("row").filter(has_text=shown.failed[:8])
    text = row.locator("details summary")
    low = text.bounding_box()
    text.click()
    high = text.bounding_box()
    assert low is not None
    assert high is not None
    assert high["height"] > low["height"]
    # It unfolds, and goes nowhere.
    expect(page).to_have_url(re.compile("/cycles"))


def test_selected_cycles_are_compared_side_by_side(page: Page, shown: Shown) -> None:
    page.goto("/cycles?status=completed")
    compare = page.get_by_role("button", name="Compare selected")
    expect(compare).to_be_disabled()
    first, second = shown.decided["cycle_id"][:8], shown.sold[:8]
    page.get_by_label(f"Select {first}").check()
    expect(compare).to_be_disabled()
    page.get_by_label(f"Select {second}").check()
    expect(page.get_by_text("2 selected.")).to_be_visible()
    compare.click()
    table = page.get_by_role("group", name="Cycles side by side")
    for cycle_id in (first, second):
        expect(table.get_by_role("link", name=cycle_id)).to_be_visible()
        outcome = got(page, f"/cycles/{cycle_id}")["outcome"]
        expect(table).to_contain_text(outcome)


def test_of_the_selected_cycles_those_that_run_are_cancelled_after_a_question(
    page: Page, shown: Shown
) -> None:
    body = {"as_of": "2012-06-29", "universe": ["MSFT"], "approval_required": True}
    lane = {"name": "rules", "provider": "rules", "account": "to-be-cancelled"}
    asked = page.request.post("/api/v1/cycles", data={**body, "pipelines": [lane]})
    cycle_id = asked.json()["cycle_id"][:8]
    page.goto("/cycles?account=to-be-cancelled")
    row = page.get_by_role("row").filter(has_text=cycle_id)
    expect(row).to_contain_text("waits for approval")
    cancel = page.get_by_role("button", name="Cancel those that run")
    expect(cancel).to_be_disabled()
    page.get_by_label(f"Select {cycle_id}").check()
    page.once("dialog", lambda dialog: dialog.accept())
    cancel.click()
    expect(page.get_by_text("1 cycle is cancelled.")).to_be_visible()
    expect(row).to_contain_text("cancelled in the console")
