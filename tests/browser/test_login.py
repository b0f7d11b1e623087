"""With a token set, a browser gives it once: then it is let in until it logs out."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from libs.servers.embedded_thread import held_in_thread
from tests.browser import looks
from tests.browser.conftest import window
from tests.browser.desk import TOKEN, Shown, guarded_console
from tests.browser.test_pages import RUN_AXE


@pytest.fixture(scope="module")
def guarded(shown: Shown) -> Iterator[str]:
    with held_in_thread(lambda: guarded_console(shown.desk.settings)) as url:
        yield url


@pytest.fixture
def page(browser: Browser, guarded: str) -> Iterator[Page]:
    """A browser that nobody has given the token."""
    with browser.new_context(base_url=guarded) as context, window(context) as seen:
        yield seen.page
        assert seen.errors == []


def test_the_token_is_asked_for_once_and_leads_to_where_one_wanted_to_go(page: Page) -> None:
    page.goto("/cycles?status=failed")
    expect(page).to_have_url(re.compile(r"/login\?next="))
    page.get_by_label("Token").fill("not the token at all")
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("alert")).to_contain_text("this is not the token")
    page.get_by_label("Token").fill(TOKEN)
    page.get_by_role("button", name="Log in").click()
    expect(page).to_have_url(re.compile(r"/cycles\?status=failed$"))
    assert page.evaluate("document.cookie") == ""
    page.goto("/approvals")
    expect(page.get_by_role("heading", level=1)).to_have_text("Approvals")

    page.get_by_role("button", name="Log out").click()
    expect(page).to_have_url(re.compile(r"/login$"))
    page.goto("/")
    expect(page).to_have_url(re.compile(r"/login\?next=%2F$"))


def test_after_the_login_nobody_is_led_elsewhere(page: Page, guarded: str) -> None:
    page.goto("/login?next=//elsewhere.example/")
    page.get_by_label("Token").fill(TOKEN)
    page.get_by_role("button", name="Log in").click()
    expect(page).to_have_url(f"{guarded}/")


def test_the_login_is_clean_in_every_look(page: Page) -> None:
    page.goto("/login")
    page.evaluate(looks.axe())
    for look in looks.LOOKS.values():
        look.put_on(page)
        assert page.evaluate(RUN_AXE, look.axe or {}) == []
