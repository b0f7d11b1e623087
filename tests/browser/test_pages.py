"""Every page in every look: no error, nothing that axe finds, nothing wider than the window."""

import re
import time

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser import looks
from tests.browser.desk import Shown

RUN_AXE = """(options) => axe.run(document, {resultTypes: ["violations"], ...options}).then((f) =>
  f.violations.map((each) => `${each.id}: ${each.nodes.map((n) => n.html).join(" | ")}`))"""
SETTLED_S = 5.0
HIDDEN = """() => [...document.querySelectorAll(".scroll")].filter((box) =>
  box.scrollWidth > box.clientWidth).map((box) => box.ariaLabel)"""
BROKEN_DATES = r"""() => {
  const texts = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
  const broken = [];
  while (texts.nextNode()) {
    for (const date of texts.currentNode.textContent.matchAll(/\d{4}-\d{2}-\d{2}/g)) {
      const range = new Range();
      range.setStart(texts.currentNode, date.index);
      range.setEnd(texts.currentNode, date.index + date[0].length);
      const tops = [...range.getClientRects()].filter((each) => each.width).map((each) => each.top);
      if (new Set(tops.map(Math.round)).size > 1) broken.push(texts.currentNode.textContent.trim());
    }
  }
  return broken;
}"""
TOO_WIDE = "document.documentElement.scrollWidth > window.innerWidth"


@pytest.fixture(scope="module")
def axe() -> str:
    return looks.axe()


@pytest.mark.parametrize("name", looks.PAGES)
def test_a_page_is_clean_in_every_look(name: str, axe: str, shown: Shown, page: Page) -> None:
    answer = page.goto(looks.path_of(name, shown))
    assert answer is not None
    assert answer.status == looks.STATUSES.get(name, 200)
    assert "default-src 'self'" in answer.headers["content-security-policy"]
    expect(page.locator("h1").first).to_be_visible()
    page.evaluate(axe)
    for look_name, look in looks.LOOKS.items():
        look.put_on(page)
        if look.axe is not None:
            assert (look_name, page.evaluate(RUN_AXE, look.axe)) == (look_name, [])
        assert not page.evaluate(TOO_WIDE), look_name


def test_the_theme_that_is_chosen_stays(page: Page) -> None:
    page.goto("/")
    page.get_by_role("button", name="Switch between dark and light").click()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.reload()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.evaluate("localStorage.clear()")


def test_the_overview_follows_the_desk_without_a_reload(page: Page) -> None:
    page.goto("/")
    waits = page.get_by_role("region", name="Needs you")
    expect(waits.get_by_text("by cli: a drill")).to_be_visible()
    failed = page.get_by_role("region", name="Failed in the last 24 hours")
    before = failed.get_by_role("listitem").count()
    page.evaluate("window.isTheSame = true")
    page.request.post("/api/v1/cycles", data={"as_of": "2012-06-29", "sources": ["earnings"]})
    expect(failed.get_by_role("listitem")).to_have_count(before + 1)
    expect(failed).to_contain_text("has no earnings dates")
    assert page.evaluate("window.isTheSame")


def test_an_exit_stands_among_the_decisions_and_says_what_was_checked_and_what_was_sold(
    page: Page, shown: Shown
) -> None:
    page.goto("/decisions")
    why = page.locator(f"a[href='/decisions/{shown.sold}/rules']")
    expect(page.get_by_role("row").filter(has=why)).to_contain_text("exit")
    why.click()
    checked = page.get_by_role("region", name="Positions checked")
    expect(checked).to_contain_text("STRONG EXIT")
    expect(checked.get_by_role("link", name="(open step)")).to_have_count(1)
    expect(page.locator(".ending")).to_contain_text("Sold 12 AAPL for 7,175.04 USD")
    expect(page.locator("#candles[data-drawn=AAPL]")).to_be_visible()


def test_each_figure_of_a_decision_says_where_it_is_from_and_how_many_do_is_counted(
    page: Page, shown: Shown
) -> None:
    page.goto(f"/decisions/{shown.decided['cycle_id']}/rules")
    evidence = page.get_by_role("region", name="Evidence and reports")
    expect(evidence).to_contain_text(re.compile(r"[1-9]\d* sourced, 0 unsourced"))
    figure = evidence.locator("details[open] .cited").first
    expect(figure).to_have_attribute("title", re.compile(r"^AAPL\.\w+.*; .*, 2012-06-29"))


def test_each_column_of_a_decision_names_who_judged_or_computed_it(
    page: Page, shown: Shown
) -> None:
    page.goto(f"/decisions/{shown.decided['cycle_id']}/rules")
    heads = page.get_by_role("group", name="Tickers").locator("thead th").all_text_contents()
    names = set(", ".join(page.locator("#who-says dt").all_text_contents()).split(", "))
    assert {head.strip().removesuffix(" USD") for head in heads} - {"Ticker"} <= names


def test_a_click_on_a_figure_opens_the_result_that_it_is_from_without_a_script(
    browser: Browser, shown: Shown
) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{shown.url}/decisions/{shown.decided['cycle_id']}/rules")
    figure = page.locator("a.cited[href*='call=']", has_text="584.00 USD").first
    named = re.compile(r"\((E\d+)\)$").search(figure.get_attribute("title") or "")
    assert named is not None
    figure.click()
    expect(page.locator(f"#{named[1]}")).to_be_in_viewport()
    expect(page.locator(".sought .values").last).to_contain_text("584.0")
    expect(
        page.get_by_role("region", name="Text with sources").locator("a.cited").first
    ).to_be_visible()
    context.close()


def test_every_figure_of_a_decision_leads_to_a_place_that_there_is(
    page: Page, shown: Shown
) -> None:
    page.goto(f"/decisions/{shown.decided['cycle_id']}/rules")
    links = {str(each.get_attribute("href")) for each in page.locator("a.cited").all()}
    assert len(links) > 5
    for link in links:
        answer = page.request.get(link)
        place = link.partition("#")[2]
        assert (answer.status, f'id="{place}"' in answer.text()) == (200, True), link


def test_on_a_phone_the_menu_opens_and_closes(page: Page) -> None:
    looks.LOOKS["phone"].put_on(page)
    page.goto("/")
    menu = page.get_by_role("button", name="Menu")
    cycles = page.get_by_role("link", name="Cycles", exact=True)
    expect(cycles).to_be_hidden()
    menu.click()
    expect(cycles).to_be_visible()
    page.keyboard.press("Escape")
    expect(cycles).to_be_hidden()
    expect(menu).to_be_focused()


def test_beside_the_menu_of_a_small_screen_every_table_fits_its_card(
    page: Page, shown: Shown
) -> None:
    looks.LOOKS["light"].put_on(page)
    for name in (
        "cycles",
        "operations",
        "decisions",
        "performance",
        "leaderboard",
        "strategies",
        "schedule",
        "portfolio",
        "notifications",
        "costs",
    ):
        page.goto(looks.path_of(name, shown))
        # A table that is too wide becomes blocks once the page's script has measured it.
        until = time.monotonic() + SETTLED_S
        while (hidden := page.evaluate(HIDDEN)) and time.monotonic() < until:
            page.wait_for_timeout(50)
        assert hidden == [], name


def test_on_a_phone_no_date_is_broken_at_its_hyphens(page: Page, shown: Shown) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    for name in (
        "overview",
        "decisions",
        "decision",
        "exit",
        "approvals",
        "portfolio",
        "performance",
        "ticker",
        "reports",
        "costs",
        "schedule",
        "cycles",
    ):
        page.goto(looks.path_of(name, shown))
        assert page.evaluate(BROKEN_DATES) == [], name


def test_on_a_phone_no_table_is_wider_than_its_card_and_cells_are_named(page: Page) -> None:
    page.goto("/decisions")
    cells = page.get_by_role("table").locator("tbody tr").first.locator("td")
    expect(cells.nth(1)).not_to_have_attribute("data-column", "Kind")
    looks.LOOKS["phone"].put_on(page)
    expect(cells.nth(1)).to_have_attribute("data-column", "Kind")
    for path in (
        "/decisions",
        "/cycles",
        "/operations",
        "/bus",
        "/leaderboard",
        "/notifications",
    ):
        page.goto(path)
        assert page.evaluate(HIDDEN) == [], path
    page.goto("/cycles")
    expect(page.locator("[data-column=Started]").first).to_be_visible()  # without its arrow
    looks.LOOKS["light"].put_on(page)
    expect(page.locator(".blocks")).to_have_count(0)


@pytest.mark.parametrize("look", ["phone", "light"])
def test_a_long_name_cuts_no_table_off(page: Page, shown: Shown, look: str) -> None:
    """A rule of the user's own, ten tickers with one reason, an address in a reason."""
    looks.LOOKS["light"].put_on(page)
    page.goto(looks.path_of("decision", shown))
    why = page.get_by_role("region", name="Why not")
    own = {0: " ".join(["VOLV-B.ST"] * 10), 1: "my_rules:no_more_than_it_had", 2: "x" * 200}
    why.evaluate(
        """(of, own) => Object.entries(own).forEach(([place, text]) => {
        of.querySelector("tbody tr").children[place].textContent = text; })""",
        own,
    )
    looks.LOOKS[look].put_on(page)
    expect(why.locator(".blocks")).to_have_count(int(look == "phone"))
    assert not why.locator(".scroll").evaluate("of => of.scrollWidth > of.clientWidth")


def test_with_the_keyboard_the_first_stop_leads_to_the_content(page: Page) -> None:
    page.goto("/")
    page.keyboard.press("Tab")
    expect(page.locator(":focus")).to_have_text("Skip to the content")
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
