"""The search over everything and the keys: by keyboard, on a phone, and as axe sees them."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser import looks
from tests.browser.desk import Shown
from tests.browser.test_pages import RUN_AXE, TOO_WIDE


@pytest.fixture
def front(page: Page) -> Iterator[Page]:
    page.goto("/")
    yield page
    page.evaluate("localStorage.clear()")


def test_ctrl_k_finds_a_page_and_enter_goes_there(front: Page) -> None:
    front.keyboard.press("Control+k")
    field = front.get_by_role("combobox", name="Search the desk")
    expect(field).to_be_focused()
    field.fill("dead")
    expect(front.get_by_role("option", name="Dead letters")).to_have_attribute(
        "aria-selected", "true"
    )
    front.keyboard.press("Enter")
    front.wait_for_url("**/letters")


def test_the_search_finds_a_cycle_by_its_first_digits_and_whatever_has_a_name(
    front: Page, shown: Shown
) -> None:
    front.keyboard.press("/")
    field = front.get_by_role("combobox", name="Search the desk")
    sought = {
        shown.decided["cycle_id"][:8]: f"/cycles/{shown.decided['cycle_id']}",
        shown.operation[:8]: f"/operations/{shown.operation}",
        shown.strategy: f"/strategies/{shown.strategy}",
        shown.account: f"/portfolio?account={shown.account}",
        "decide": "/schedule#decide",
        "fee bps": "/settings#broker.fee_bps",
    }
    for words, page in sought.items():
        field.fill(words)
        expect(front.locator(f"[role=option][href='{page}']")).to_be_visible()
    field.fill("aapl")
    expect(front.get_by_role("option", name=re.compile("AAPL"))).to_have_attribute(
        "href", "/tickers/AAPL"
    )
    field.fill("no such thing at all")
    expect(front.get_by_role("status").filter(has_text="No results for")).to_be_visible()


def test_arrows_choose_among_the_results_and_a_reader_is_told_which(front: Page) -> None:
    front.keyboard.press("Control+k")
    field = front.get_by_role("combobox", name="Search the desk")
    options = front.get_by_role("option")
    expect(options.first).to_have_attribute("aria-selected", "true")
    front.keyboard.press("ArrowDown")
    second = options.nth(1)
    expect(second).to_have_attribute("aria-selected", "true")
    expect(field).to_have_attribute("aria-activedescendant", str(second.get_attribute("id")))
    front.keyboard.press("ArrowUp")
    front.keyboard.press("ArrowUp")
    expect(options.last).to_have_attribute("aria-selected", "true")
    front.keyboard.press("Escape")
    expect(front.get_by_role("dialog")).to_have_count(0)


def test_two_keys_go_to_a_page_and_none_does_while_somebody_types(front: Page) -> None:
    front.keyboard.press("g")
    front.keyboard.press("c")
    front.wait_for_url("**/cycles")
    front.goto("/cycles/new")
    front.locator("input[name=universe]").focus()
    front.keyboard.type("g c ?")
    expect(front.locator("input[name=universe]")).to_have_value("g c ?")
    expect(front.get_by_role("dialog")).to_have_count(0)


def test_the_question_mark_lists_the_keys_and_single_ones_can_be_switched_off(front: Page) -> None:
    front.keyboard.press("?")
    keys = front.get_by_role("dialog", name="Keys")
    titles = keys.get_by_role("heading", level=3).all_inner_texts()
    assert len(titles) == len(set(titles)), titles
    expect(keys.locator("kbd", has_text="Ctrl-K")).to_have_count(1)
    expect(keys).to_contain_text("Go to")
    expect(keys).to_contain_text("Live tail")
    front.get_by_role("checkbox", name="Single-key shortcuts").uncheck()
    front.keyboard.press("Escape")
    front.keyboard.press("?")
    expect(keys).to_have_count(0)
    front.keyboard.press("Control+k")
    expect(front.get_by_role("dialog", name="Search")).to_be_visible()


def test_every_entry_of_the_menu_has_a_key_of_its_own(front: Page) -> None:
    keys = front.locator("#nav a").evaluate_all("all => all.map((each) => each.dataset.key)")
    assert all(keys)
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("look", looks.LOOKS)
def test_the_search_and_the_list_of_keys_are_clean_in_every_look(look: str, front: Page) -> None:
    axe = looks.axe()
    looks.LOOKS[look].put_on(front)
    front.evaluate(axe)
    front.get_by_role("button", name="Search").click()
    expect(front.get_by_role("option").first).to_be_visible()
    options = looks.LOOKS[look].axe or {}
    assert front.evaluate(RUN_AXE, options) == []
    assert not front.evaluate(TOO_WIDE)
    front.keyboard.press("Escape")
    front.keyboard.press("?")
    expect(front.get_by_role("dialog", name="Keys")).to_be_visible()
    assert front.evaluate(RUN_AXE, options) == []
    front.keyboard.press("Escape")
    looks.LOOKS["light"].put_on(front)
