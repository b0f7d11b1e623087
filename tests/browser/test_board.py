"""The leaderboard: rows with curves, beside what they are compared with, to be chosen."""

from playwright.sync_api import Page, expect

from tests.browser.test_results import got, rows


def test_each_row_is_a_pipeline_on_an_account_with_links_to_what_the_account_did(
    page: Page,
) -> None:
    board = got(page, "/leaderboard")
    page.goto("/leaderboard")
    table = page.get_by_role("group", name="Leaderboard").locator("table")
    expect(table.locator("tbody tr")).to_have_count(len(board["rows"]))
    own = [each for each in board["rows"] if each["kind"] == "pipeline"]
    for each in own:
        row = table.locator(
            "tr", has=page.get_by_label(f"Compare {each['name']}@{each['account']}")
        )
        for name, path in (
            (each["account"], "performance"),
            ("Decisions", "decisions"),
            ("Cycles", "cycles"),
        ):
            link = row.get_by_role("link", name=name, exact=True)
            expect(link).to_have_attribute("href", f"/{path}?account={each['account']}")


def test_columns_that_no_row_has_a_figure_for_are_left_out(page: Page) -> None:
    page.goto("/leaderboard?everything=true")
    table = page.get_by_role("group", name="Leaderboard").locator("table")
    heads = table.locator("thead th").all_inner_texts()
    for place, head in enumerate(heads):
        if head not in {"Compare", "Rank", "Equity"}:
            assert any(row[place] not in {"", "\N{EN DASH}"} for row in rows(table)), head


def test_rows_without_trades_are_shown_when_asked_for(page: Page) -> None:
    board = got(page, "/leaderboard")
    assert board["hidden"] > 0, "nothing is hidden, so nothing is shown"
    page.goto("/leaderboard")
    page.get_by_role("link", name="Also show").click()
    table = page.get_by_role("group", name="Leaderboard").locator("table")
    whole = got(page, "/leaderboard?everything=true")
    assert len(whole["rows"]) == len(board["rows"]) + board["hidden"]
    expect(table.locator("tbody tr")).to_have_count(len(whole["rows"]))
    page.get_by_role("link", name="Without throw-away accounts").click()
    expect(table.locator("tbody tr")).to_have_count(len(board["rows"]))


def test_chosen_rows_are_compared_on_one_chart(page: Page) -> None:
    page.goto("/leaderboard?everything=true")
    boxes = page.get_by_role("checkbox")
    key = boxes.first.get_attribute("value")
    boxes.first.check()
    page.get_by_role("button", name="Compare selected").click()
    table = page.get_by_role("group", name="Leaderboard").locator("table")
    expect(table.get_by_role("checkbox")).to_have_count(1)
    expect(page.get_by_label(f"Compare {key}")).to_be_checked()
    curves = page.get_by_role("region", name="Equity")
    expect(curves.locator(".u-legend .u-label", has_text=str(key))).to_be_visible()
    page.get_by_role("link", name="All rows").click()
    expect(page).to_have_url("/leaderboard")
