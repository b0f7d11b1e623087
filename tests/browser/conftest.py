"""One desk and one browser for all tests of the pages."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page

from tests.browser import looks
from tests.browser.desk import Shown, shown_desk

WAIT_MS = 15_000
OF_THE_TEST = "the server responded with a status of"
"""How Chromium tells of a refusal; tests ask for some."""


@pytest.fixture(scope="session", autouse=True)
def buys_against_exit_rules() -> Iterator[None]:
    """Desks of these tests may buy what their exit rules would sell: many tests buy AAPL on
    2012-06-29, which they would. That rule has tests of its own, with the setting as it is."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("DESKBUS_LIMITS", '{"exits_veto_buys": false}')
        yield


@pytest.fixture(scope="session")
def shown() -> Iterator[Shown]:
    looks.chromium_path()
    with shown_desk() as made:
        yield made


@pytest.fixture(scope="session")
def browser(shown: Shown) -> Iterator[Browser]:
    with looks.chromium() as browser:
        yield browser


@dataclass
class Seen:
    """A window, and what went wrong in it."""

    page: Page
    errors: list[str] = field(default_factory=list)

    def on_console(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"} and OF_THE_TEST not in message.text:
            self.errors.append(message.text)


@contextmanager
def window(context: BrowserContext) -> Iterator[Seen]:
    """A window of its own while the block runs."""
    seen = Seen(context.new_page())
    seen.page.set_default_timeout(WAIT_MS)
    seen.page.on("console", seen.on_console)
    seen.page.on("pageerror", lambda error: seen.errors.append(str(error)))
    try:
        yield seen
    finally:
        seen.page.close()


@pytest.fixture(scope="session")
def context(browser: Browser, shown: Shown) -> Iterator[BrowserContext]:
    with browser.new_context(base_url=shown.url, viewport=looks.DESKTOP) as made:
        yield made


@pytest.fixture
def page(context: BrowserContext) -> Iterator[Page]:
    """A window at the desk; at the test's end nothing has gone wrong in it."""
    with window(context) as seen:
        yield seen.page
    assert seen.errors == []
