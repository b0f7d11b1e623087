"""Studies in the console: their list leads to the report of each."""

from playwright.sync_api import Page, expect

from tests.browser.desk import Shown

SCORED_MS = 120_000
"""Statistics, and the packages for them, on a busy machine."""


def test_the_list_leads_to_a_report_whose_arms_lead_to_their_cells(
    page: Page, shown: Shown
) -> None:
    page.set_default_navigation_timeout(SCORED_MS)
    page.goto("/studies")
    page.get_by_role("link", name=shown.study, exact=True).click()
    arms = page.get_by_role("group", name="Arms", exact=True)
    arms.get_by_role("link", name="rules", exact=True).click()
    expect(page).to_have_url(f"/studies/{shown.study}#decision-rules")


def test_the_canary_lights_up_and_the_rules_do_not(page: Page, shown: Shown) -> None:
    page.set_default_navigation_timeout(SCORED_MS)
    page.goto(f"/studies/{shown.study}")
    rows = page.get_by_role("group", name="Look-ahead").locator("tbody tr")
    expect(rows.filter(has_text="canary")).to_contain_text("looks ahead")
    for arm in ("rules", "rules-masked"):
        row = rows.filter(has=page.get_by_role("link", name=arm, exact=True))
        expect(row).not_to_contain_text("looks ahead")


def test_another_horizon_and_benchmark_stand_in_the_address(page: Page, shown: Shown) -> None:
    page.set_default_navigation_timeout(SCORED_MS)
    page.goto(f"/studies/{shown.study}?horizon=1&benchmark=cash")
    asked = page.get_by_text("close 1 session later")
    expect(asked).to_contain_text("compared with cash")
