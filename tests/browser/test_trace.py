"""A cycle's trace: its outcome and its tree over time, and the panel that shows what a step did."""

import re

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser import looks
from tests.browser.desk import Shown
from tests.browser.traced import HOSTILE


@pytest.fixture
def panel(page: Page) -> Locator:
    return page.locator("#panel")


def open_trace(page: Page, cycle_id: str, calls: str = "") -> Locator:
    """The tree of a cycle, its groups of calls folded."""
    page.goto(f"/cycles/{cycle_id}{calls}")
    expect(page.locator("#panel-close")).to_be_attached()
    return page.locator("#tree")


def test_the_outcome_stands_on_top_with_the_ways_on(page: Page, shown: Shown) -> None:
    open_trace(page, shown.traced.modelled)
    top = page.get_by_role("region", name="Pipelines")
    expect(top).to_contain_text("Bought 12 AAPL and 218 MSFT")
    for name in ("portfolio", "why", "evidence"):
        answer = page.request.get(str(top.get_by_role("link", name=name).get_attribute("href")))
        assert answer.ok
    events = page.get_by_role("link", name="Events")
    expect(events).to_have_attribute("href", f"/tail?cycle_id={shown.traced.modelled}")
    expect(page.locator("#replay")).to_have_text(
        f"deskbus cycle replay {shown.traced.modelled[:8]}"
    )


def test_a_strategy_cycle_leads_to_its_strategy(page: Page, shown: Shown) -> None:
    page.goto("/operations?type=design&status=completed")
    page.locator("tbody a[href^='/cycles/'], tbody a[href^='/operations/']").first.click()
    if "/operations/" in page.url:
        page.locator(".crumbs a[href^='/cycles/']").click()
    page.get_by_role("region", name="Pipelines").get_by_role("link").first.click()
    expect(page).to_have_url(re.compile(r"/strategies/"))


def test_attempts_retries_and_claims_are_marked(page: Page, shown: Shown) -> None:
    tree = open_trace(page, shown.traced.modelled)
    rows = tree.locator(".row.step")
    expect(rows.filter(has_text="planning/plan")).to_contain_text("1 retry")
    expect(rows.filter(has_text="deciding/picks")).to_contain_text("epoch 1 was fenced")
    analysts = rows.filter(has_text="analyzing/analyst")
    expect(analysts).to_have_count(2)
    expect(analysts.first).to_contain_text("returned an invalid answer")
    expect(analysts.last).to_contain_text("attempt 2")
    for kind in ("retry", "fence"):
        expect(tree.locator(f"circle.{kind}")).to_have_count(1)


def test_all_rows_lie_under_the_same_time_axis(page: Page, shown: Shown) -> None:
    tree = open_trace(page, shown.traced.modelled)
    axes = tree.locator("svg.time").evaluate_all(
        "all => all.map((each) => each.getBoundingClientRect()).map((it) => [it.left, it.width])"
    )
    assert len(axes) > 8
    assert max(left for left, _ in axes) - min(left for left, _ in axes) < 2
    assert max(width for _, width in axes) - min(width for _, width in axes) < 2


def test_a_wait_of_hours_is_folded_and_the_proposal_is_answered_above(
    page: Page, shown: Shown
) -> None:
    tree = open_trace(page, shown.waiting)
    expect(tree.locator("text.folded")).to_have_text(re.compile(r"2 h \d\d min"))
    widths = tree.locator(".row.step rect.ran").evaluate_all(
        "all => all.map((each) => each.getBoundingClientRect().width)"
    )
    assert max(widths) > 20
    proposal = page.get_by_role("form", name=re.compile("Proposal of rules"))
    expect(proposal.locator("[data-until]")).to_have_text(re.compile(r"\d+ min \d\d s left"))
    expect(proposal.get_by_role("button", name="Approve")).to_be_visible()
    above = proposal.bounding_box()
    below = tree.bounding_box()
    assert above is not None
    assert below is not None
    assert above["y"] < below["y"]


def test_a_failure_is_said_once(page: Page, shown: Shown) -> None:
    open_trace(page, shown.traced.refused)
    text = page.locator("main").inner_text()
    assert text.count("Incorrect API key provided") == 1
    expect(page.get_by_role("region", name="Pipelines")).to_contain_text("Failed in planning/plan")


def test_a_click_opens_the_step_beside_the_tree_and_a_call_from_there(
    page: Page, panel: Locator, shown: Shown
) -> None:
    tree = open_trace(page, shown.traced.modelled)
    tree.locator(".row.step", has_text="deciding/picks").click()
    expect(panel.get_by_role("heading", name="deciding/picks")).to_be_visible()
    expect(panel.get_by_role("heading", name="Text with sources")).to_be_visible()
    expect(panel).to_contain_text("get_stock_price(AAPL) = 584.00 USD")
    panel.get_by_role("link", name="get_stock_price(AAPL) = 584.00 USD").click()
    expect(panel.locator("#call-title")).to_have_text("get_stock_price(AAPL) = 584.00 USD")
    expect(panel.locator(".values").last).to_contain_text("584.0")
    address = page.url
    assert re.search(r"#/operations/[0-9a-f-]{36}/calls/\d+$", address)
    expect(panel.get_by_role("link", name="Open as a page")).to_have_attribute(
        "href", address.partition("#")[2]
    )
    page.go_back()
    expect(panel.get_by_role("heading", name="deciding/picks")).to_be_visible()
    page.goto("about:blank")
    page.goto(address)
    expect(panel.locator("#call-title")).to_have_text("get_stock_price(AAPL) = 584.00 USD")
    page.keyboard.press("Escape")
    expect(panel).to_be_hidden()
    assert "#" not in page.url


def test_the_tree_is_walked_by_keys(page: Page, panel: Locator, shown: Shown) -> None:
    tree = open_trace(page, shown.traced.modelled)
    for key in ("j", "j", "k"):
        page.keyboard.press(key)
    first = tree.locator("a.opens").first
    expect(first).to_be_focused()
    page.keyboard.press("Enter")
    expect(panel).to_be_focused()
    expect(panel.locator("#part-title")).to_have_text("scanning/digest")
    page.keyboard.press("j")
    expect(panel.locator("#part-title")).to_have_text("scanning/sentiment")
    expect(tree.locator("[aria-current]")).to_contain_text("scanning/sentiment")
    page.keyboard.press("Escape")
    expect(panel).to_be_hidden()
    expect(tree.locator("a.opens").nth(1)).to_be_focused()


def test_a_question_mark_lists_the_keys(page: Page, panel: Locator, shown: Shown) -> None:
    open_trace(page, shown.traced.modelled)
    page.keyboard.press("?")
    keys = page.get_by_role("dialog", name="Keys")
    for words in ("Next step", "Step before", "Open the step beside the tree", "This list"):
        expect(keys.get_by_text(words, exact=True)).to_be_visible()
    page.keyboard.press("j")
    page.keyboard.press("Escape")
    expect(keys).to_be_hidden()
    expect(panel).to_be_hidden()
    expect(page.locator("#tree [aria-current]")).to_have_count(0)


def test_a_key_in_a_field_is_only_typed(page: Page, panel: Locator, shown: Shown) -> None:
    open_trace(page, shown.waiting)
    page.get_by_label("Reason").fill("")
    page.get_by_label("Reason").press_sequentially("jk")
    expect(page.get_by_label("Reason")).to_have_value("jk")
    expect(page.locator("#tree [aria-current]")).to_have_count(0)
    page.get_by_label("Reason").fill("")


def test_a_models_call_is_a_chat_and_what_it_wrote_is_text(
    page: Page, panel: Locator, shown: Shown
) -> None:
    hosts: set[str] = set()
    page.on("request", lambda request: hosts.add(request.url.split("/")[2]))
    page.goto(f"/cycles/{shown.traced.modelled}#/operations/{shown.traced.analyst}/calls/0")
    turns = panel.locator(".chat .turn")
    expect(turns.locator(".role").first).to_contain_text("system")
    assistant = panel.locator(".turn.assistant").last
    expect(assistant).to_contain_text(HOSTILE)
    expect(assistant).to_contain_text("get_stock_price(AAPL) = 584.00 USD")
    expect(panel.locator("img, iframe, script, a[href*='evil']")).to_have_count(0)
    expect(panel.locator(".figures-line")).to_contain_text("cache read")
    expect(panel.locator(".figures-line")).to_contain_text(re.compile(r"Cache hit\s*[\d.]+%"))
    # The task is JSON on a line: a tree to fold.
    expect(panel.locator(".turn.user details summary").first).to_contain_text("JSON")
    panel.get_by_role("link", name="get_stock_price(AAPL) = 584.00 USD").first.click()
    expect(panel.locator("#call-title")).to_have_text("get_stock_price(AAPL) = 584.00 USD")
    assert hosts == {shown.url.split("/")[2]}


def test_a_second_try_and_a_repair_are_named_in_the_chat(
    page: Page, panel: Locator, shown: Shown
) -> None:
    tree = open_trace(page, shown.traced.modelled, "?calls=true")
    folded = tree.get_by_role("button", name="Show each")
    while folded.count():
        folded.first.click()
    row = tree.locator(".row.call", has_text="try 2")
    row.click()
    expect(panel).to_contain_text("no reply: provider_unavailable")
    expect(panel.locator(".under").first).to_contain_text("try 2")
    tree.locator(".row.call", has_text="not valid").first.click()
    expect(panel.locator(".error")).to_be_visible()
    panel.get_by_role("link", name="Next call").click()
    expect(panel.locator(".turn.user").last).to_contain_text("That answer is not valid")


def test_calls_of_one_name_are_a_group_until_they_are_asked_for(page: Page, shown: Shown) -> None:
    tree = open_trace(page, shown.traced.modelled, "?calls=true")
    group = tree.locator(".row.group", has_text="get_stock_price").first
    each = tree.get_by_role("link", name="get_stock_price(AAPL) = 584.00 USD")
    expect(group).to_contain_text("get_stock_price \N{MULTIPLICATION SIGN}5")
    alone = each.count()
    group.get_by_role("button", name="Show each").click()
    expect(each).to_have_count(alone + 1)
    group.get_by_role("button", name="Fold").click()
    expect(each).to_have_count(alone)


def test_trees_unfold_at_once_and_texts_are_copied(
    page: Page, panel: Locator, shown: Shown
) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(f"/cycles/{shown.traced.modelled}#/operations/{shown.traced.trader}")
    output = panel.get_by_role("region", name="Output")
    output.get_by_role("button", name="Expand all").click()
    expect(output.locator(".values details:not([open])")).to_have_count(0)
    output.get_by_role("button", name="Fold all").click()
    expect(output.locator(".values details[open]")).to_have_count(0)
    output.get_by_role("button", name="Copy Output").click()
    expect(page.locator(".toast")).to_contain_text("Copied")
    assert '"picks"' in page.evaluate("navigator.clipboard.readText()")


def test_without_a_script_a_step_and_a_call_are_pages(browser: Browser, shown: Shown) -> None:
    context = browser.new_context(java_script_enabled=False, base_url=shown.url)
    page = context.new_page()
    page.goto(f"/cycles/{shown.traced.modelled}?calls=true")
    expect(page.locator("#panel")).to_be_hidden()
    page.get_by_role("link", name="get_stock_price(AAPL) = 584.00 USD").first.click()
    expect(page.locator("#call-title")).to_have_text("get_stock_price(AAPL) = 584.00 USD")
    page.locator(".under").get_by_role("link").click()
    expect(page.locator("h1")).to_contain_text("/")
    expect(page.get_by_role("region", name="Input")).to_be_visible()
    context.close()


def test_on_a_phone_the_panel_is_a_sheet_over_everything(
    page: Page, panel: Locator, shown: Shown
) -> None:
    looks.LOOKS["phone"].put_on(page)
    tree = open_trace(page, shown.traced.modelled)
    tree.locator(".row.step", has_text="deciding/picks").click()
    expect(panel.get_by_role("heading", name="deciding/picks")).to_be_visible()
    box = panel.bounding_box()
    assert box is not None
    assert (box["x"], box["y"], box["width"]) == (0, 0, 390)
    assert page.locator(".top").evaluate("it => it.inert")
    assert not page.evaluate("document.documentElement.scrollWidth > window.innerWidth")
    page.get_by_role("button", name="Close", exact=True).click()
    expect(panel).to_be_hidden()
    assert not page.locator(".top").evaluate("it => it.inert")
    looks.LOOKS["light"].put_on(page)
