"""What accounts, strategies and sessions came to: the pages show what the API says."""

from decimal import Decimal
from typing import Any

from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import WAIT_MS
from tests.browser.desk import Shown


def got(page: Page, path: str) -> Any:
    """What the API says."""
    answer = page.request.get(f"/api/v1{path}")
    assert answer.ok, answer.text()
    return answer.json()


def rows(table: Locator) -> list[list[str]]:
    """The cells of a table's body."""
    return [each.locator("th, td").all_inner_texts() for each in table.locator("tbody tr").all()]


def test_the_portfolio_shows_the_books(page: Page, shown: Shown) -> None:
    view = got(page, f"/portfolio?account={shown.account}")
    books = view["portfolio"]
    page.goto(f"/portfolio?account={shown.account}")
    equity = f"{Decimal(books['equity']['amount']):,.2f} {books['equity']['currency']}"
    expect(page.locator("#worth .tile").first.locator(".value")).to_have_text(equity)
    held = rows(page.get_by_role("group", name="Positions").locator("table"))
    assert {row[0]: row[1].replace(",", "") for row in held} == {
        each["ticker"]: f"{Decimal(each['quantity']).normalize():f}" for each in books["positions"]
    }
    fills = rows(page.get_by_role("group", name="Last fills").locator("table"))
    assert len(fills) == len(view["fills"])
    decision = page.get_by_role("group", name="Last fills").locator("tbody tr").last
    decision.get_by_role("link").last.click()
    expect(page.locator("h1")).to_contain_text("Decision of")


def test_the_equity_is_drawn_with_cash_and_holding_and_again_in_another_theme(
    page: Page, shown: Shown
) -> None:
    holding = got(page, f"/portfolio/holding?account={shown.account}&points=200")
    page.goto(f"/portfolio?account={shown.account}")
    over_time = page.get_by_role("region", name="Equity")
    for name in ("Equity", "Cash", "Buy-and-hold", "Drawdown"):
        expect(over_time.locator(".u-legend .u-label", has_text=name)).to_be_visible()
    last = float(holding["points"][-1]["worth"])
    note = over_time.locator("[data-note]")
    expect(note).to_contain_text(f": {last:,.0f}.", timeout=WAIT_MS)
    drawn = over_time.locator("canvas").first.evaluate_handle("it => it")
    page.get_by_role("button", name="Switch between dark and light").click()
    assert not drawn.evaluate("it => it.isConnected")
    expect(over_time.locator("canvas")).to_have_count(2)
    page.evaluate("localStorage.clear()")


def test_the_charts_of_a_page_share_one_cursor(page: Page, shown: Shown) -> None:
    page.goto(f"/portfolio?account={shown.account}")
    plots = page.get_by_role("region", name="Equity").locator(".u-over")
    expect(plots).to_have_count(2)
    expect(plots.first).to_be_visible()
    width = int(plots.first.evaluate("it => it.clientWidth"))
    plots.first.hover(position={"x": width // 3, "y": 40})
    sessions = page.get_by_role("region", name="Equity").locator(
        ".u-legend .u-series:first-child .u-value"
    )
    expect(sessions).to_have_count(2)
    days = sessions.all_inner_texts()
    assert days[0] == days[1]
    plots.first.hover(position={"x": width // 8, "y": 40})
    expect(sessions.nth(1)).not_to_have_text(days[0])
    expect(sessions.nth(1)).to_have_text(sessions.first.inner_text())


def test_a_strategy_is_chosen_compared_and_its_report_runs_nothing(
    page: Page, shown: Shown
) -> None:
    page.goto("/strategies")
    for name in (shown.strategy, shown.other):
        page.get_by_role("checkbox", name=f"Compare {name}").check()
    page.get_by_role("button", name="Compare selected").click()
    table = page.get_by_role("group", name="side by side").locator("table")
    expect(table).to_contain_text("out-of-sample accuracy")
    figures = {row[0]: row[1:] for row in rows(table)}
    both = got(page, f"/strategies?names={shown.strategy}&names={shown.other}")["strategies"]
    accuracy = [f"{each['training']['accuracy'] * 100:.1f}%" for each in both]
    shown_of = [text.removeprefix("★ ") for text in figures["out-of-sample accuracy"]]
    assert sorted(shown_of) == sorted(accuracy)
    assert len(figures["return"]) == 2

    page.get_by_role("link", name=shown.strategy, exact=True).click()
    detail = got(page, f"/strategies/{shown.strategy}")
    expect(page.get_by_role("heading", name=shown.strategy)).to_be_visible()
    first, last = detail["loss_curve"][0], detail["loss_curve"][-1]
    training = page.get_by_role("region", name="Training")
    expect(training).to_contain_text(f"from {first:.4f} to {last:.4f}")
    folds = rows(page.get_by_role("group", name="Folds").locator("table"))
    assert len(folds) == len(detail["folds"])
    with page.expect_popup() as opened:
        page.get_by_role("link", name="Full report").click()
    expect(opened.value.get_by_role("heading", name=shown.strategy)).to_be_visible()
    assert opened.value.evaluate("window.origin") == "null", "a sandbox of its own"
    opened.value.close()


def test_a_position_is_checked_from_its_page(page: Page, shown: Shown) -> None:
    view = got(page, f"/exit-signals?account={shown.account}")
    page.goto(f"/exits?account={shown.account}")
    first = view["positions"][0]
    expect(page.get_by_role("row", name=first["ticker"])).to_be_visible()
    page.get_by_role("button", name=f"Check {first['ticker']}").click()
    found = f"{first['ticker']}: {first['assessment']}"
    expect(page.locator(".toast")).to_contain_text(found, timeout=WAIT_MS)


def test_a_report_is_shown_as_text_whatever_stands_in_it(page: Page, shown: Shown) -> None:
    page.goto(f"/reports?account={shown.account}")
    article = page.get_by_role("article")
    expect(article.get_by_role("heading", name="Held at the close")).to_be_visible()
    expect(article.get_by_text("Total", exact=True)).to_be_visible()
