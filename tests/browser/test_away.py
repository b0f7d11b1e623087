"""While the desk or its database is away a page keeps its figures, greyed, with the time they are
of; once it is back they are as before, without a reload."""

import re
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import psutil
import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from libs.runtime.http_address import http_address
from libs.runtime.ports import choose_port
from libs.runtime.settings import Settings
from libs.servers import supervisor
from libs.servers.embedded_thread import held_in_thread
from libs.servers.server_record import ServerRecord
from services.console.app import service
from tests.browser import looks
from tests.browser.conftest import WAIT_MS
from tests.browser.test_pages import RUN_AXE
from tests.integration.desk.conftest import Desk, desk_in
from tests.open_folder import open_folder

AWAY_MS = 60_000
"""A page is read again every few seconds, and given ten to answer."""
PILL = re.compile(r"^The desk does not answer: as of ([01]\d|2[0-3]):[0-5]\d UTC$")


@pytest.fixture(scope="module")
def desk() -> Iterator[Desk]:
    """A desk of its own: what it depends on is taken from it."""
    looks.chromium_path()
    with (
        pytest.MonkeyPatch.context() as patch,
        open_folder() as folder,
        desk_in(folder, lambda _: nullcontext({}), http_enabled=True, http_port=0) as made,
    ):
        patch.setattr(supervisor, "RESTART_DELAY_FIRST_S", 0.01)
        patch.setattr(supervisor, "UNREADY_DELAY_MAX_S", 0.5)
        yield made


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    with browser.new_context(viewport=looks.DESKTOP) as made:
        made.set_default_timeout(WAIT_MS)
        yield made


@contextmanager
def console_on(settings: Settings, port: int) -> Iterator[str]:
    """A console beside the desk's own, on this port."""
    made = settings.changed(http={"port": port})
    address = http_address(made)
    assert address is not None
    with held_in_thread(lambda: service(made)):
        yield address.url


@contextmanager
def without_database(desk: Desk) -> Iterator[None]:
    """Postgres is killed, and cannot start before the block has ended."""
    cluster: Path = desk.settings.data_dir / "servers" / "postgres" / "cluster"
    away = cluster.rename(cluster.with_name("away"))
    psutil.Process(ServerRecord.load(desk.settings.data_dir).processes["postgres"].pid).kill()
    try:
        yield
    finally:
        away.rename(cluster)


def is_grey(page: Page) -> None:
    """The figures are there, greyed, with the time they are of, and all of it can be read."""
    pill = page.locator("#connection")
    expect(pill).to_have_text(PILL, timeout=AWAY_MS)
    shown = page.locator("[data-live], main[data-live-s='0'] .card").first
    expect(shown).to_have_css("filter", "grayscale(1)")
    page.evaluate(looks.axe())
    for look in looks.LOOKS.values():
        look.put_on(page)
        assert page.evaluate(RUN_AXE, {}) == []
        assert not page.evaluate("document.documentElement.scrollWidth > window.innerWidth")
    looks.LOOKS["light"].put_on(page)


def is_back(page: Page) -> None:
    expect(page.locator("#connection")).to_have_text("", timeout=AWAY_MS)
    shown = page.locator("[data-live], main[data-live-s='0'] .card").first
    expect(shown).to_have_css("filter", "none")
    assert page.evaluate("window.isTheSame"), "it was read again, not loaded again"


def opened(context: BrowserContext, url: str) -> Page:
    page = context.new_page()
    page.goto(url)
    page.evaluate("window.isTheSame = true")
    return page


@pytest.mark.parametrize("path", ["/", "/costs", "/leaderboard"])
def test_while_its_console_is_away_a_page_keeps_its_figures_greyed(
    path: str, context: BrowserContext, desk: Desk
) -> None:
    port = choose_port(None, set())
    with console_on(desk.settings, port) as url:
        page = opened(context, f"{url}{path}")
        before = page.locator("main").inner_text()
    is_grey(page)
    assert page.locator("main").inner_text() == before
    with console_on(desk.settings, port):
        is_back(page)


def test_while_the_database_is_away_pages_keep_their_figures_greyed(
    context: BrowserContext, desk: Desk
) -> None:
    address = http_address(desk.settings)
    assert address is not None
    live, still = (opened(context, f"{address.url}{path}") for path in ("/", "/leaderboard"))
    before = [page.locator("main h1").inner_text() for page in (live, still)]
    with without_database(desk):
        for page in (live, still):
            is_grey(page)
        assert [page.locator("main h1").inner_text() for page in (live, still)] == before
        fresh = opened(context, f"{address.url}/portfolio")
        expect(fresh.get_by_role("heading", level=1)).not_to_have_text("Portfolio")
    for page in (live, still):
        is_back(page)
    expect(fresh.get_by_role("heading", level=1)).to_have_text("Portfolio", timeout=AWAY_MS)
