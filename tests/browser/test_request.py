"""The form of a cycle: with a script and without one, what is wrong stands at its field, and what
was typed stays."""

import re
from collections.abc import Iterator
from uuid import uuid4

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser import looks
from tests.browser.conftest import window
from tests.browser.desk import Shown
from tests.browser.test_pages import RUN_AXE

ROW = re.compile(r"^Pipeline \d$")
STARTED = re.compile(r"/cycles/[0-9a-f-]{36}$")


@pytest.fixture(params=[True, False], ids=["script", "no script"])
def form(request: pytest.FixtureRequest, browser: Browser, shown: Shown) -> Iterator[Page]:
    """The empty form."""
    with (
        browser.new_context(base_url=shown.url, java_script_enabled=request.param) as context,
        window(context) as seen,
    ):
        seen.page.goto("/cycles/new")
        yield seen.page
    assert seen.errors == []


def start(page: Page) -> None:
    page.get_by_role("button", name="Start cycle").click()


def test_a_closed_day_is_refused_at_its_field_and_the_nearest_session_is_a_click(
    form: Page,
) -> None:
    account = f"a{uuid4().hex[:12]}"
    day = form.get_by_label("As of")
    form.get_by_label("Universe").fill("AAPL")
    form.get_by_label("Account", exact=True).fill(account)
    for closed, nearest in (
        ("2012-06-30", "Fri 2012-06-29"),
        ("2012-12-25", "Mon 2012-12-24"),
        ("2033-01-03", "Fri 2013-03-01"),
    ):
        day.fill(closed)
        start(form)
        expect(form.get_by_role("button", name=f"Use {nearest}")).to_be_visible()
        expect(day).to_have_attribute("aria-invalid", "true")
        expect(day).to_have_accessible_description(re.compile(closed))
        expect(day).to_be_focused()
    expect(form.get_by_label("Universe")).to_have_value("AAPL")
    expect(form.get_by_label("Account", exact=True)).to_have_value(account)
    day.fill("2012-06-30")
    start(form)
    form.get_by_role("button", name="Use Fri 2012-06-29").click()
    expect(day).to_have_value("2012-06-29")
    expect(form.locator("[aria-invalid]")).to_have_count(0)
    start(form)
    expect(form).to_have_url(STARTED)
    expect(form.get_by_role("heading", level=1)).to_have_text("Decision of Fri 2012-06-29")
    listed = form.request.get(f"/api/v1/cycles?account={account}").json()["cycles"]
    assert len(listed) == 1, "the refused ones never were"


def test_pipelines_are_rows_that_are_added_and_removed(form: Page) -> None:
    accounts = [f"a{uuid4().hex[:12]}" for _ in range(2)]
    form.get_by_label("As of").fill("2012-06-29")
    form.get_by_label("Account", exact=True).fill(accounts[0])
    for number in (2, 3):
        form.get_by_role("button", name="Add a pipeline").click()
        row = form.get_by_role("group", name=f"Pipeline {number}")
        expect(row.get_by_label("Provider")).to_be_focused()
    form.get_by_role("group", name="Pipeline 3").get_by_label("Account").fill(accounts[1])
    form.get_by_role("group", name="Pipeline 2").get_by_role("button", name="Remove").click()
    expect(form.get_by_role("group", name=ROW)).to_have_count(2)
    second = form.get_by_role("group", name="Pipeline 2")
    expect(second.get_by_label("Account")).to_have_value(accounts[1])
    form.get_by_label("Account", exact=True).last.press("Enter")
    expect(form).to_have_url(STARTED)
    cycle = form.request.get(f"/api/v1/cycles/{form.url.rpartition('/')[2]}").json()
    assert [each["account"] for each in cycle["pipelines"]] == accounts


def test_each_problem_stands_at_its_field_and_the_first_has_the_focus(form: Page) -> None:
    form.get_by_label("Money for buys").fill("much")
    form.get_by_label("Universe").fill("<AAPL>")
    form.get_by_label("Cost of models, USD").fill("-1")
    start(form)
    for label, words in (
        ("Money for buys", "number"),
        ("Universe", "ticker"),
        ("Cost of models, USD", "least"),
    ):
        expect(form.get_by_label(label)).to_have_accessible_description(re.compile(words))
        expect(form.get_by_label(label)).to_have_attribute("aria-invalid", "true")
    expect(form.get_by_label("Universe")).to_be_focused()
    expect(form.get_by_label("Money for buys")).to_have_value("much")


def test_a_provider_without_a_key_or_that_is_unknown_is_shown_before_anything_is_sent(
    form: Page,
) -> None:
    choice = form.get_by_label("Provider", exact=True)
    minimax = choice.locator("option[value=minimax]")
    expect(minimax).to_have_text("minimax: cannot be used here")
    expect(minimax).to_have_attribute("disabled", "")
    form.get_by_text(re.compile(r"providers? cannot be used here")).last.click()
    expect(form.get_by_text(re.compile("minimax has no key"))).to_be_visible()
    form.goto("/cycles/new?provider=minimax&provider=clade")
    rows = form.get_by_role("group", name=ROW)
    expect(rows.first.get_by_label("Provider")).to_have_accessible_description(
        re.compile("Minimax has no key")
    )
    expect(rows.last.get_by_label("Provider")).to_have_accessible_description(
        re.compile("has no provider clade")
    )


def test_exits_and_reports_ask_only_for_what_they_need(form: Page, shown: Shown) -> None:
    form.get_by_role("link", name="Exit check").click()
    for label in ("Universe", "Provider", "Money for buys", "Tokens for models"):
        expect(form.get_by_label(label, exact=True)).to_have_count(0)
    expect(form.get_by_label("Ask for approval before placing orders")).to_be_visible()
    form.get_by_role("link", name="Daily report", exact=True).click()
    expect(form.locator("#request [name]:not([type=hidden], button)")).to_have_count(2)
    form.get_by_label("Account", exact=True).select_option(shown.account)
    # A session that it has seen: a later one would fill its stops, which other tests look at.
    form.get_by_label("As of").fill("2012-10-31")
    start(form)
    expect(form).to_have_url(STARTED)
    expect(form.get_by_role("heading", level=1)).to_contain_text("Report of")


def test_where_nothing_answers_what_was_typed_stays(browser: Browser, shown: Shown) -> None:
    page = browser.new_page(base_url=shown.url)
    page.goto("/cycles/new")
    page.get_by_label("Universe").fill("AAPL")
    page.route("**/cycles/new", lambda route: route.abort())
    start(page)
    expect(page.locator(".toast")).to_contain_text("what you typed is still here")
    expect(page.get_by_label("Universe")).to_have_value("AAPL")
    page.unroute("**/cycles/new")
    page.get_by_label("As of").fill("2012-06-30")
    start(page)
    expect(page.get_by_role("button", name="Use Fri 2012-06-29")).to_be_visible()
    page.close()


@pytest.mark.parametrize("kind", ["decision", "exit", "report"])
def test_a_form_with_faults_is_clean_in_every_look(kind: str, page: Page) -> None:
    source = looks.axe()
    page.goto(f"/cycles/new?kind={kind}&provider=minimax&account=&provider=clade&account=x")
    page.get_by_label("As of").fill("2012-06-30")
    start(page)
    expect(page.get_by_role("button", name="Use Fri 2012-06-29")).to_be_visible()
    page.evaluate(source)
    for look_name, look in looks.LOOKS.items():
        look.put_on(page)
        assert (look_name, page.evaluate(RUN_AXE, look.axe or {})) == (look_name, [])
        assert not page.evaluate("document.documentElement.scrollWidth > window.innerWidth")
