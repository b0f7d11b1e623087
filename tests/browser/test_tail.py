"""The live tail in a browser: it loses nothing, draws little, and waits for who reads."""

import asyncio
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, asynccontextmanager
from datetime import date
from typing import Any
from uuid import UUID, uuid4

import orjson
import pytest
from playwright.sync_api import BrowserContext, Locator, Page, expect

from libs.runtime.http_address import http_address
from libs.runtime.ports import choose_port
from libs.servers.embedded_thread import held_in_thread
from services.console.app import service
from tests.browser.conftest import window
from tests.browser.desk import Shown
from tests.fakes.notable import FILL

DRAWN_MAX = 80
MANY = 3_000
NEW = (
    "insert into state_events (started_on, op_id, seq, cycle_id, type, owner, data)"
    " select $1, $2, number, $2, $5, 'orchestrator', $6 from generate_series($3::int, $4) number"
)
READ_ALL = """async (box) => {
  const found = new Map();
  for (let top = 0; top < box.scrollHeight; top += box.clientHeight / 2) {
    box.scrollTop = top;
    await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
    for (const row of box.querySelectorAll("[data-number]"))
      found.set(Number(row.dataset.number), row.querySelector(".cycle").textContent
        || row.querySelector(".type").textContent);
  }
  return [...found.keys()].sort((a, b) => a - b).map((number) => found.get(number));
}"""


class Writer:
    """Writes events of a cycle of its own into the desk's tables."""

    def __init__(self, shown: Shown) -> None:
        self.cycle_id = uuid4()
        self.count = 0
        self._shown = shown

    def write(self, count: int, kind: str = "state_entered", **data: Any) -> None:
        first = self.count + 1
        self.count += count
        # Playwright has a loop in this thread.
        with ThreadPoolExecutor(1) as pool:
            pool.submit(asyncio.run, self._insert(first, kind, data)).result()

    async def _insert(self, first: int, kind: str, data: Any) -> None:
        told = orjson.dumps(data).decode()
        async with self._shown.desk.postgres() as db:
            await db.execute(NEW, date(2026, 11, 22), self.cycle_id, first, self.count, kind, told)

    def rows(self, *numbers: int) -> list[str]:
        """What stands in the list for these."""
        return [f"{str(self.cycle_id)[:8]} {number}" for number in numbers]


@pytest.fixture
def writer(shown: Shown) -> Writer:
    return Writer(shown)


def newest(page: Page, writer: Writer) -> Locator:
    """The row of the newest event that was written."""
    return page.locator(".tail-row", has_text=re.compile(rf"{writer.rows(writer.count)[0]}\D"))


def listed(page: Page) -> list[str]:
    """Cycle and sequence of every row, in order; the words of a gap."""
    found: list[str] = page.locator("#tail").evaluate(READ_ALL)
    return found


def drawn(page: Page) -> int:
    return page.locator(".tail-row").count()


def test_events_are_listed_as_they_come_and_only_those_in_view_are_drawn(
    page: Page, writer: Writer
) -> None:
    page.goto("/tail")
    expect(page.locator("#state")).to_have_text("live")
    writer.write(1, "order_filled", **FILL)
    expect(newest(page, writer)).to_contain_text("15 AAPL at 243.84 USD")
    writer.write(MANY)
    expect(newest(page, writer)).to_be_in_viewport()
    assert 0 < drawn(page) <= DRAWN_MAX


def test_who_scrolls_up_is_left_to_read_and_told_of_the_new(page: Page, writer: Writer) -> None:
    page.goto("/tail")
    writer.write(200)
    expect(newest(page, writer)).to_be_in_viewport()
    box = page.locator("#tail")
    box.hover()
    page.mouse.wheel(0, -1_500)
    expect(page.locator("#state")).to_have_text("paused")
    page.wait_for_timeout(300)  # the wheel's own movement ends
    top = box.evaluate("(box) => box.scrollTop")
    writer.write(7)
    expect(page.locator("#new")).to_have_text("7 new")
    assert box.evaluate("(box) => box.scrollTop") == top, "nothing moves under the eyes"
    page.locator("#new").click()
    expect(newest(page, writer)).to_be_in_viewport()
    expect(page.locator("#new")).to_be_hidden()
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_role("button", name="Resume")).to_have_attribute("aria-pressed", "true")
    writer.write(2)
    expect(page.locator("#new")).to_have_text("2 new")
    page.get_by_role("button", name="Resume").click()
    expect(newest(page, writer)).to_be_in_viewport()


def test_the_filter_stands_in_the_url_and_a_wrong_one_is_told(page: Page, writer: Writer) -> None:
    writer.write(20)
    writer.write(1, "operation_failed", step="plan", code="late", message="too late")
    page.goto(f"/tail?cycle_id={writer.cycle_id}")
    expect(newest(page, writer)).to_be_visible()
    assert listed(page) == writer.rows(*range(1, 22))
    page.get_by_label("Errors only").check()
    expect(page).to_have_url(re.compile("errors=true"))
    expect(page.locator(".tail-row")).to_have_count(1)
    expect(page.locator(".tail-row")).to_contain_text("failed (late): too late")
    page.get_by_label("Service").select_option("trader")
    expect(page.locator(".tail-row")).to_have_count(0)
    page.get_by_label("Service").select_option("research")
    expect(page.locator(".tail-row")).to_have_count(1)
    page.reload()
    expect(page.locator(".tail-row")).to_have_count(1)
    page.get_by_label("Cycle").fill("no id")
    page.get_by_label("Cycle").press("Enter")
    expect(page.get_by_role("alert")).to_contain_text(
        "is not a cycle id: give at least its first 4 characters"
    )


def test_words_and_times_are_looked_for_and_types_are_counted(page: Page, writer: Writer) -> None:
    writer.write(5)
    writer.write(2, "order_filled", side="buy", quantity="3", asset="NVDA", status="filled")
    page.goto(f"/tail?cycle_id={writer.cycle_id}")
    expect(page.locator("#counted")).to_have_text("7 events of 2 types")
    page.locator(".tail-counts summary").click()
    counted = page.locator("#counts button")
    expect(counted).to_have_text(
        [re.compile(r"^state_entered\s*5$"), re.compile(r"^order_filled\s*2$")]
    )
    page.get_by_label("Text").fill("nvda filled")
    page.get_by_label("Text").press("Enter")
    expect(page.locator("#counted")).to_have_text("2 events of 1 type")
    page.get_by_label("Until (UTC)").fill("2001-01-01T00:00")
    expect(page.locator("#none-back")).to_be_visible()
    page.get_by_label("Until (UTC)").fill("")
    page.get_by_label("From (UTC)").fill("2001-01-01T00:00")
    expect(page.locator("#counted")).to_have_text("2 events of 1 type")
    expect(page).to_have_url(re.compile("text=nvda"))
    page.get_by_label("Text").fill("")
    page.get_by_label("Text").press("Enter")
    page.locator("#counts button", has_text="order_filled").click()
    expect(page).to_have_url(re.compile("type=order_filled"))


def test_a_mistyped_type_is_unknown_and_the_nearest_one_is_named(page: Page) -> None:
    page.goto("/tail?type=ordr_*")
    expect(page.get_by_role("alert")).to_have_text(
        "type: unknown event type 'ordr_*'; did you mean order_*?"
    )
    expect(page.locator("#none")).to_be_hidden()


def test_an_event_is_copied_as_json(page: Page, writer: Writer, context: BrowserContext) -> None:
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(f"/tail?cycle_id={writer.cycle_id}")
    writer.write(1, "order_filled", side="buy", quantity="3", asset="AAPL", status="filled")
    newest(page, writer).click()
    page.get_by_role("button", name="Copy JSON").click()
    expect(page.locator(".toast")).to_contain_text("Copied.")
    copied = orjson.loads(page.evaluate("navigator.clipboard.readText()"))
    assert (copied["type"], copied["cycle_id"]) == ("order_filled", str(writer.cycle_id))


def test_with_the_keyboard_an_event_is_opened_and_its_text_is_only_text(
    page: Page, writer: Writer
) -> None:
    page.goto(f"/tail?cycle_id={writer.cycle_id}")
    hostile = "<img src=x onerror=document.title='bad'>"
    writer.write(2)
    writer.write(1, "operation_failed", step="plan", code="x", message=hostile)
    expect(newest(page, writer)).to_contain_text(hostile)
    page.locator("#tail").focus()
    page.keyboard.press("ArrowUp")
    expect(page.locator("#tail [aria-selected=true]")).to_contain_text("operation_failed")
    page.keyboard.press("Enter")
    detail = page.get_by_role("region", name="operation_failed")
    expect(detail.locator("pre")).to_contain_text(hostile)
    expect(detail.get_by_role("link", name="Cycle", exact=True)).to_have_attribute(
        "href", f"/cycles/{writer.cycle_id}"
    )
    expect(detail.get_by_role("link", name="Operation")).to_be_visible()
    expect(detail.get_by_role("link", name="Decision")).to_have_count(0)
    page.keyboard.press("Escape")
    expect(detail).to_be_hidden()
    page.keyboard.press("Space")
    expect(page.locator("#state")).to_have_text("live")
    assert page.title().startswith("Live tail")


def test_with_the_keyboard_one_goes_from_an_event_to_its_decision(page: Page, shown: Shown) -> None:
    cycle_id = shown.decided["cycle_id"]
    page.goto(f"/tail?cycle_id={cycle_id}&type=decision")
    expect(page.locator(".tail-row")).to_have_count(1)
    page.locator("#tail").focus()
    for key in ("ArrowUp", "Enter"):
        page.keyboard.press(key)
    detail = page.get_by_role("region", name="decision")
    links = [each.get_attribute("href") for each in detail.get_by_role("link").all()]
    assert links[0] == f"/decisions/{cycle_id}/rules"
    assert str(links[1]).startswith("/operations/")
    assert links[2] == f"/cycles/{cycle_id}"
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(f"/decisions/{cycle_id}/rules$"))


@pytest.fixture(scope="module")
def console(shown: Shown) -> Callable[[], AbstractContextManager[str]]:
    """Starts a second console of the desk, always at the same address."""
    settings = shown.desk.settings.changed(http={"port": choose_port(None, set())})

    @asynccontextmanager
    async def running():  # type: ignore[no-untyped-def]
        address = http_address(settings)
        assert address is not None
        async with service(settings):
            yield address.url

    return lambda: held_in_thread(running)


@pytest.fixture
def elsewhere(context: BrowserContext) -> Iterator[Page]:
    """A window in which lost connections are no errors."""
    with window(context) as seen:
        yield seen.page


def test_the_page_goes_on_without_gap_or_repeat_when_its_server_was_restarted(
    elsewhere: Page, writer: Writer, console: Callable[[], AbstractContextManager[str]]
) -> None:
    with console() as url:
        elsewhere.goto(f"{url}/tail?cycle_id={writer.cycle_id}")
        expect(elsewhere.locator("#state")).to_have_text("live")
        writer.write(30)
        expect(newest(elsewhere, writer)).to_be_visible()
    expect(elsewhere.locator("#state")).to_have_text("connecting again")
    writer.write(40)
    with console():
        expect(elsewhere.locator("#state")).to_have_text("live")
        writer.write(10)
        expect(newest(elsewhere, writer)).to_be_visible()
        assert listed(elsewhere) == writer.rows(*range(1, 81))


def test_a_past_that_is_gone_is_a_row_of_its_own(
    elsewhere: Page, writer: Writer, console: Callable[[], AbstractContextManager[str]]
) -> None:
    with console() as url:
        elsewhere.goto(f"{url}/tail?cycle_id={writer.cycle_id}")
        writer.write(3)
        expect(newest(elsewhere, writer)).to_be_visible()
    expect(elsewhere.locator("#state")).to_have_text("connecting again")
    last, writer.count = writer.cycle_id, 0
    with ThreadPoolExecutor(1) as pool:
        pool.submit(asyncio.run, _forget(writer, last)).result()
    writer.write(2, "order_placed")
    with console():
        expect(elsewhere.locator(".tail-row.gap")).to_contain_text("restored or recreated")
        expect(elsewhere.locator(".tail-row.good")).to_have_count(2)
        assert listed(elsewhere) == [*writer.rows(1, 2, 3), "gap", *writer.rows(1, 2)]


async def _forget(writer: Writer, cycle_id: UUID) -> None:
    """As if these were other tables: the events that the page has had are not on record."""
    async with writer._shown.desk.postgres() as db:
        await db.execute("delete from state_events where cycle_id = $1", cycle_id)
