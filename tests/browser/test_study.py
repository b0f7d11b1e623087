"""A study in the console: what it shows, and the way from a figure to its cycles."""

from playwright.sync_api import Page, expect

from tests.browser.desk import Shown

SCORED_MS = 120_000
"""Statistics, and the packages for them, on a busy machine."""


def test_a_figure_of_a_study_leads_to_its_cells_and_they_to_their_cycles(
    page: Page, shown: Shown
) -> None:
    page.goto("/studies")
    page.get_by_role("link", name=shown.study, exact=True).click()
    arms = page.get_by_role("group", name="Arms", exact=True)
    expect(arms).to_be_visible(timeout=SCORED_MS)
    arms.get_by_role("link", name="24", exact=True).first.click()
    cells = page.get_by_role("group", name="Cells").locator("tbody tr")
    expect(cells).to_have_count(24)
    cells.first.get_by_role("link").click()
    expect(page.locator("h1")).to_contain_text("2006")


def test_the_canary_lights_up_and_the_rules_do_not(page: Page, shown: Shown) -> None:
    page.goto(f"/studies/{shown.study}")
    rows = page.get_by_role("group", name="Look-ahead").locator("tbody tr")
    expect(rows.filter(has_text="canary")).to_contain_text("looks ahead", timeout=SCORED_MS)
    for arm in ("rules", "rules-masked"):
        row = rows.filter(has=page.get_by_role("link", name=arm, exact=True))
        expect(row).not_to_contain_text("looks ahead")


def test_another_horizon_and_benchmark_are_asked_for_on_the_page(page: Page, shown: Shown) -> None:
    page.goto(f"/studies/{shown.study}")
    page.get_by_label("Sessions").fill("1", timeout=SCORED_MS)
    page.get_by_label("Benchmark").fill("cash")
    page.get_by_role("button", name="Score").click()
    said = page.get_by_text("close 1 session later")
    expect(said).to_be_visible(timeout=SCORED_MS)
    expect(said).to_contain_text("compared with cash")
