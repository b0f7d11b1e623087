"""What a person does on the pages to keep a desk going."""

import asyncio
import json
import re
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from uuid import UUID

from playwright.sync_api import Page, expect

from tests.browser.conftest import WAIT_MS
from tests.browser.desk import Shown
from tests.browser.test_results import got


def test_a_dead_letter_is_retried_and_discarded_for_a_reason(page: Page, shown: Shown) -> None:
    page.goto("/letters")
    page.get_by_role("link", name=str(shown.open_letter), exact=True).click()
    payload = page.get_by_role("region", name="Payload").locator("pre")
    body = got(page, f"/dead-letters/{shown.open_letter}")["body"]
    assert json.loads(payload.inner_text()) == json.loads(body)
    assert payload.inner_text().count("\n") > 1, "spread over lines"
    expect(payload).to_contain_text("<img src=x onerror=alert(1)>")

    page.get_by_role("button", name="Retry").click()
    expect(page.locator(".toast")).to_contain_text("was sent to reporter again", timeout=WAIT_MS)
    page.locator("summary", has_text="Discard").click()
    page.get_by_label("Reason, for the record").fill("seen by a test")
    page.get_by_role("button", name="Discard").click()
    page.wait_for_url("**/letters")
    expect(page.get_by_role("link", name=str(shown.letter), exact=True)).to_be_visible()
    expect(page.get_by_role("link", name=str(shown.open_letter), exact=True)).to_have_count(0)
    gone = page.request.get(f"/api/v1/dead-letters/{shown.open_letter}")
    assert gone.status == 404
    cycle = got(page, f"/cycles/{shown.held_back}/events?limit=200")["events"]
    told = {each["type"]: each["data"] for each in cycle}
    assert told["letter_retried"]["by"] == "console"
    assert (told["letter_discarded"]["by"], told["letter_discarded"]["reason"]) == (
        "console",
        "seen by a test",
    )


def test_a_retry_that_can_never_work_is_disabled_with_the_reason(page: Page, shown: Shown) -> None:
    page.goto(f"/letters/{shown.letter}")
    expect(page.get_by_role("button", name="Retry")).to_be_disabled()
    expect(page.locator("#no-retry")).to_contain_text("Fix it at the sender")
    refused = page.request.post(f"/api/v1/dead-letters/{shown.letter}/retry")
    assert (refused.status, refused.json()["code"]) == (409, "not_a_command")


def test_a_job_is_paused_with_a_reason_and_resumed(page: Page) -> None:
    page.goto("/schedule")
    row = page.get_by_role("row", name="closing")
    row.locator("summary", has_text="Pause").click()
    row.get_by_label("Reason, for the record").fill("a holiday")
    row.get_by_role("button", name="Pause").click()
    expect(row).to_contain_text("by console: a holiday", timeout=WAIT_MS)
    row.get_by_role("button", name="Resume").click()
    expect(row).not_to_contain_text("by console", timeout=WAIT_MS)
    assert all(job["paused_at"] is None for job in got(page, "/schedule")["jobs"])


def test_the_bus_shows_that_every_service_answers(page: Page) -> None:
    page.goto("/bus")
    view = got(page, "/bus")
    expect(page.get_by_role("row", name="trader up 1")).to_be_visible()
    expect(page.get_by_role("row", name="COMMANDS")).to_be_visible()
    shown = page.locator(".tile", has_text="Services").locator(".value")
    expect(shown).to_have_text(f"{len(view['services'])} of {len(view['services'])}")


def test_costs_are_told_by_model(page: Page) -> None:
    page.goto("/costs")
    table = page.get_by_role("group", name="By model")
    row = table.get_by_role("row", name="claude: claude-sonnet-5-5")
    expect(row).to_contain_text(re.compile(r"\d+\.\dk"))
    expect(row).to_contain_text(re.compile(r"0\.\d+"))
    assert {each["provider"] for each in got(page, "/costs")["rows"]} == {"claude"}


def test_a_position_shows_what_it_was_bought_for_and_is_sold_by_a_button(
    page: Page,
) -> None:
    wish = {
        "as_of": "2012-06-29",
        "universe": ["MSFT"],
        "pipelines": [{"name": "rules", "account": "byhand"}],
    }
    asked = page.request.post("/api/v1/cycles", data=wish)
    assert asked.status == 202, asked.text()
    page.goto(f"/cycles/{asked.json()['cycle_id']}")
    expect(page.locator("#about .under")).to_contain_text("completed", timeout=WAIT_MS)

    page.goto("/portfolio?account=byhand")
    page.locator("summary", has_text="What they were bought for").click()
    told = page.locator("#plans .detail", has_text="MSFT: bought on Mon 2012-07-02 (For: ")
    expect(told).to_contain_text("review by 2012-09-25")

    row = page.locator("tr", has=page.get_by_role("rowheader", name="MSFT", exact=True))
    row.locator("summary", has_text="Sell now").click()
    row.get_by_label("Percent of the position").fill("50")
    row.get_by_role("button", name="Sell MSFT").click()
    expect(page.locator(".toast")).to_contain_text("is sold at the next open", timeout=WAIT_MS)


# --- messages to people ---------------------------------------------------------------------------


def test_the_newest_messages_lead_to_what_they_are_about(page: Page) -> None:
    page.goto("/notifications?channel=phone&status=sent")
    messages = page.get_by_role("region", name="Newest messages")
    rows = messages.get_by_role("row").filter(has_text="Decision of")
    decision = rows.first
    expect(decision).to_be_visible(timeout=WAIT_MS)
    decision.get_by_role("link").click()
    page.wait_for_url("**/cycles/*")


def test_a_channel_shows_what_waits_and_what_to_do_where_it_fails(page: Page) -> None:
    page.goto("/notifications")
    channels = page.get_by_role("region", name="Channels", exact=True)
    pager = channels.get_by_role("row").filter(has=page.get_by_role("rowheader", name="pager"))
    expect(pager).to_contain_text("failing")
    expect(channels).to_contain_text("failed (HTTP 401)")
    expect(channels).to_contain_text("DESKBUS_NOTIFY_MAIL")
    expect(channels.get_by_role("rowheader", name="ops")).to_be_visible()
    rules = page.get_by_role("region", name="Rules", exact=True)
    expect(rules.get_by_role("row", name="evening")).to_contain_text("daily at 18:00")


def test_a_test_message_is_sent_with_a_click_and_a_channel_that_fails_says_why(
    page: Page, shown: Shown
) -> None:
    page.goto("/notifications")
    before = len(shown.phone.taken)
    page.get_by_role("button", name="Send a test message to phone").click()
    expect(page.locator(".toast")).to_contain_text("phone took the message", timeout=WAIT_MS)
    # Other messages may be due at this very moment.
    shown.phone.wait(
        lambda server: any(b"A test of channel phone" in it.body for it in server.taken[before:])
    )

    page.get_by_role("button", name="Send a test message to pager").click()
    expect(page.locator(".toast.bad")).to_contain_text("http_401", timeout=WAIT_MS)


def test_no_address_of_a_channel_is_on_the_page(page: Page, shown: Shown) -> None:
    page.goto("/notifications")
    address = shown.phone.url.partition("://")[2]
    assert address not in page.content()
    assert address not in page.request.get("/api/v1/notifications/channels").text()


SLOT = (
    "insert into schedule_slots (job, slot, session, as_of, accounts, request, outcome, late,"
    " cycle_id) values ('closing', $1, $2, $2, '{timed}', '{}', 'accepted', false, $3)"
)


def test_the_last_runs_of_a_job_stand_as_marks_that_lead_to_their_cycles(
    page: Page, shown: Shown
) -> None:
    cycle_id = shown.decided["cycle_id"]

    async def ran() -> None:
        async with shown.desk.postgres() as db:
            for day in range(1, 23):
                at = datetime(2012, 6, day, 21, tzinfo=UTC)
                await db.execute(SLOT, at, at.date(), UUID(cycle_id))

    # Playwright has a loop in this thread.
    with ThreadPoolExecutor(1) as pool:
        pool.submit(asyncio.run, ran()).result()
    page.goto("/schedule")
    marks = page.get_by_role("row", name="closing").get_by_role("list", name="Last").locator("a")
    expect(marks).to_have_count(20)
    expect(marks.last).to_have_attribute("href", f"/cycles/{cycle_id}")
    expect(marks.last).to_have_attribute("title", "Fri 2012-06-22 17:00: completed")
