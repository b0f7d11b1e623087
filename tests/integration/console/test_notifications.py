"""Messages to people, from their rows to the answers over the bus and over HTTP."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import httpx2
import pytest

from contracts.notice import (
    ChannelsQuery,
    ChannelsView,
    ChannelTested,
    NotificationsPage,
    NotificationsQuery,
    TestChannel,
)
from contracts.subjects.notices import CHANNELS, NOTIFICATIONS, NOTIFIER, TEST_CHANNEL
from libs.bus.client import Client, QuestionRefused, open_client
from libs.bus.connection import connect
from libs.bus.server import Server
from libs.bus.service import ServiceRunner
from libs.postgres.pool import CONSOLE_ROLE, PoolConnection, PostgresError, open_pool
from libs.report.notify import channels
from libs.runtime.notify_settings import Notify
from libs.runtime.settings import Settings
from libs.servers.embedded import Servers
from services.console.app import service
from services.console.views import notifications
from tests.fakes.notices import NOW, Kept, notice
from tests.integration.console.over_http import serving

NOTIFY = Notify.model_validate(
    {
        "channels": {"phone": {}, "ops": {"service": "webhook"}},
        "rules": {"trades": {"events": ["decision", "fill"], "to": ["phone"], "digest": "30m"}},
    }
)


@pytest.fixture
async def kept(db: PoolConnection) -> AsyncIterator[Kept]:
    """Writes messages; at the end none is left."""
    yield Kept(db)
    await db.execute("delete from notifications")


@pytest.fixture
def notifying(settings: Settings) -> Settings:
    return settings.changed(notify=NOTIFY)


@pytest.fixture
async def asked(servers: Servers, notifying: Settings) -> AsyncIterator[Client]:
    """The CLI's side of a console with channels in its settings."""
    async with AsyncExitStack() as stack:
        routes = await stack.enter_async_context(service(notifying))
        runner = ServiceRunner(routes, servers.nats_url, notifying)
        await runner.start()
        stack.push_async_callback(runner.stop)
        yield await stack.enter_async_context(open_client(servers.nats_url, servers.secrets_dir))


@pytest.fixture
async def http(notifying: Settings) -> AsyncIterator[httpx2.AsyncClient]:
    async with (
        serving(notifying) as url,
        httpx2.AsyncClient(base_url=f"{url}/api/v1", timeout=30) as client,
    ):
        yield client


@pytest.fixture
async def notifier(servers: Servers) -> AsyncIterator[list[str]]:
    """A notifier whose `phone` takes messages and whose `ops` does not; what it was asked to test.
    Which channels there are it knows better than the console's settings."""
    tested: list[str] = []

    async def test(caller: str, wish: TestChannel) -> ChannelTested:
        tested.append(f"{caller} {wish.channel}")
        if wish.channel == "phone":
            return ChannelTested(sent=True, message="phone took the message")
        if wish.channel == "ops":
            return ChannelTested(sent=False, code="http_500", message="ops did not accept it")
        if wish.channel == "bare":
            return ChannelTested(
                sent=False, code="not_set", message="DESKBUS_NOTIFY_BARE is missing"
            )
        return ChannelTested(sent=False, code="channel_unknown", message="did you mean phone?")

    async def shown(_: str, __: ChannelsQuery) -> ChannelsView:
        return channels.of_settings(NOTIFY, {"ops": "its key is missing"}, {})

    connection = await connect(servers.nats_url, NOTIFIER, servers.secrets_dir)
    server = Server(connection, NOTIFIER)
    await server.serve(TEST_CHANNEL, test)
    await server.serve(CHANNELS, shown)
    await connection.flush()
    yield tested
    await server.stop()
    await connection.close()


async def ask(client: Client, **query: Any) -> NotificationsPage:
    return await client.ask(NOTIFICATIONS, NotificationsQuery(**query))


def titles(page: NotificationsPage) -> Sequence[str]:
    return [each.notice.title for each in page.notifications]


async def three(kept: Kept) -> None:
    """Two messages to the phone, of which one waits, and one to ops that was given up."""
    await kept.message("phone", notice("first"), ended_at=NOW)
    await kept.message("ops", notice("second"), "given_up", tries=4, error_code="http_500")
    failing = {"tries": 3, "error_code": "timeout", "tried_at": NOW}
    await kept.message("phone", notice("third", at=NOW - timedelta(minutes=9)), "due", **failing)


# --- over the bus ---------------------------------------------------------------------------------


async def test_what_was_told_is_answered_newest_first_with_what_became_of_it(
    asked: Client, kept: Kept
) -> None:
    await three(kept)

    page = await ask(asked)

    assert titles(page) == ["third", "second", "first"]
    assert [each.status for each in page.notifications] == ["due", "given_up", "sent"]
    given_up = page.notifications[1]
    assert (given_up.channel, given_up.tries, given_up.code) == ("ops", 4, "http_500")
    assert not page.more


async def test_each_channel_is_answered_with_what_waits_since_when_and_how_it_fails(
    asked: Client, kept: Kept
) -> None:
    await three(kept)

    ops, phone = (await ask(asked, limit=1)).channels

    assert (phone.channel, phone.waiting, phone.sent, phone.sent_at) == ("phone", 1, 1, NOW)
    assert phone.oldest_at == phone.first_at == NOW - timedelta(minutes=9)
    assert (phone.failures, phone.code, phone.failing_since) == (3, "timeout", NOW)
    assert (ops.channel, ops.failures, ops.code, ops.given_up) == ("ops", 0, "", 1)
    assert ops.oldest_at is None


async def test_messages_are_filtered_by_channel_status_and_event(asked: Client, kept: Kept) -> None:
    await three(kept)
    event = await kept.message("phone", both := notice("fourth"))
    await kept.message("ops", both, "due")

    assert titles(await ask(asked, channel="ops")) == ["fourth", "second"]
    assert titles(await ask(asked, status="sent")) == ["fourth", "first"]
    assert titles(await ask(asked, channel="phone", status="due")) == ["third"]
    of_event = (await ask(asked, event_id=event)).notifications
    assert [(each.channel, each.status) for each in of_event] == [("ops", "due"), ("phone", "sent")]
    assert titles(await ask(asked, event_id=uuid4())) == []


async def test_pages_follow_each_other_without_a_gap_and_without_a_repeat(
    asked: Client, kept: Kept
) -> None:
    for number in range(7):
        await kept.message("phone", notice(f"message {number}"))

    seen: list[str] = []
    before: int | None = None
    while True:
        page = await ask(asked, limit=3, before=before)
        seen += titles(page)
        before = page.notifications[-1].number
        if not page.more:
            break

    assert seen == [f"message {number}" for number in reversed(range(7))]


async def test_a_channel_that_never_was_is_refused_with_the_nearest_one(
    asked: Client, kept: Kept
) -> None:
    await kept.message("mailbox", notice("old"))

    with pytest.raises(QuestionRefused, match="did you mean phone"):
        await ask(asked, channel="fone")
    assert titles(await ask(asked, channel="mailbox")) == ["old"], "it was set once"
    assert titles(await ask(asked, channel="ops")) == [], "it is set and was sent nothing yet"


async def test_a_message_that_a_later_version_wrote_is_numbered_beside_the_others(
    asked: Client, http: httpx2.AsyncClient, kept: Kept, db: PoolConnection
) -> None:
    await three(kept)
    newest = (await ask(asked)).notifications[0].number
    await db.execute(
        """update notifications set notice = '{"of": "later"}' where number = $1""", newest
    )

    page = await ask(asked)
    where = http.base_url.copy_with(path="/notifications")
    shown = await http.get(where, headers={"Accept": "text/html"})

    assert (titles(page), page.unreadable) == (["second", "first"], (newest,))
    assert "1 message of a later version cannot be read" in shown.text


async def test_a_message_too_large_for_any_answer_stands_alone_and_hides_none_behind_it(
    asked: Client, kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    await three(kept)
    fitting = notifications.fitting
    monkeypatch.setattr(notifications, "fitting", lambda views: fitting(views, 10))

    page = await ask(asked)
    behind = await ask(asked, before=page.notifications[-1].number)

    assert (titles(page), page.more, titles(behind)) == (["third"], True, ["second"])


async def test_as_many_of_the_largest_messages_as_fit_are_answered_and_the_rest_is_there_to_ask_for(
    asked: Client, kept: Kept
) -> None:
    for number in range(200):
        large = notice(f"message {number}", lines=("ü" * 300,) * 10)
        await kept.message("phone", large)

    sizes: list[int] = []
    before: int | None = None
    while len(sizes) < 10:
        page = await ask(asked, limit=200, before=before)
        sizes.append(len(page.notifications))
        if not page.more:
            break
        before = page.notifications[-1].number

    assert len(sizes) > 1
    assert sum(sizes) == 200


async def test_the_consoles_role_reads_messages_and_changes_none(
    servers: Servers, kept: Kept
) -> None:
    await three(kept)
    async with open_pool(servers.postgres_dsn(CONSOLE_ROLE), size_max=1) as pool:
        assert await pool.fetchval("select count(*) from notifications") == 3
        for wish in (
            "update notifications set status = 'sent'",
            "delete from notifications",
        ):
            with pytest.raises(PostgresError, match="permission denied"):
                await pool.execute(wish)


# --- over HTTP ------------------------------------------------------------------------------------


async def test_http_answers_as_the_bus_does(
    http: httpx2.AsyncClient, asked: Client, kept: Kept
) -> None:
    await three(kept)

    over_http = (await http.get("/notifications", params={"channel": "phone"})).json()

    page = await ask(asked, channel="phone")
    assert over_http == page.model_dump(mode="json")
    older = {"before": page.notifications[0].number, "limit": 1}
    following = (await http.get("/notifications", params=older)).json()
    assert [each["notice"]["title"] for each in following["notifications"]] == ["second"]
    assert following["more"]


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("channel=fone", "channel"),
        ("status=dropped", "query.status"),
        ("before=0", "query.before"),
        ("limit=201", "query.limit"),
    ],
)
async def test_a_wrong_filter_is_refused_and_named(
    http: httpx2.AsyncClient, kept: Kept, query: str, field: str
) -> None:
    answer = await http.get(f"/notifications?{query}")
    assert (answer.status_code, answer.json()["field"]) == (422, field)


async def test_http_shows_the_channels_that_the_notifier_runs_with(
    http: httpx2.AsyncClient, notifier: list[str]
) -> None:
    view = (await http.get("/notifications/channels")).json()
    assert [(each["name"], each["problem"]) for each in view["channels"]] == [
        ("phone", ""),
        ("ops", "its key is missing"),
    ]
    assert [rule["when"] for rule in view["rules"]] == ["every 30m"]


async def test_without_a_notifier_its_channels_and_tests_are_503(http: httpx2.AsyncClient) -> None:
    seen = await asyncio.gather(
        http.get("/notifications/channels"), http.post("/notifications/channels/phone/test")
    )
    assert [answer.status_code for answer in seen] == [503, 503]
    assert "notifier" in seen[0].json()["detail"]


@pytest.mark.parametrize(
    ("channel", "status", "code"),
    [
        ("phone", 200, None),
        ("ops", 502, "http_500"),
        ("bare", 409, "not_set"),
        ("fone", 404, "channel_unknown"),
        ("PHONE", 422, "invalid"),
    ],
)
async def test_a_test_message_is_sent_or_refused_with_the_channels_reason(
    http: httpx2.AsyncClient, notifier: list[str], channel: str, status: int, code: str | None
) -> None:
    answer = await http.post(f"/notifications/channels/{channel}/test")
    assert (answer.status_code, answer.json().get("code") or None) == (status, code)
    assert notifier == ([] if status == 422 else [f"console {channel}"])


async def test_a_page_of_another_site_can_have_no_test_message_sent(
    http: httpx2.AsyncClient, notifier: list[str]
) -> None:
    foreign = {"Origin": "https://evil.example"}
    answer = await http.post("/notifications/channels/phone/test", headers=foreign)
    assert answer.status_code == 403
    assert notifier == []


# --- figures --------------------------------------------------------------------------------------


async def test_what_waits_for_each_channel_is_measured_while_no_notifier_runs(
    notifying: Settings, kept: Kept
) -> None:
    now = datetime.now(UTC)
    await kept.message("removed", notice("late"), "due")
    late = now - timedelta(minutes=10)
    await kept.message("phone", notice("late"), "due", due_at=late, tries=3)
    await kept.message("phone", notice("in a digest"), "due", due_at=now + timedelta(hours=1))
    await kept.message("ops", notice("in a digest"), "due", due_at=now + timedelta(hours=1))

    async with serving(notifying) as url, httpx2.AsyncClient(timeout=30) as client:
        text = (await client.get(f"{url}/metrics")).text
    lines = [line for line in text.splitlines() if line.startswith("deskbus_notice")]
    shown = dict(line.rsplit(" ", 1) for line in lines)

    assert float(shown['deskbus_notices_waiting{channel="phone"}']) == 2
    assert float(shown['deskbus_notice_failures{channel="phone"}']) == 3
    assert 600 <= float(shown['deskbus_notices_overdue_seconds{channel="phone"}']) < 700
    assert float(shown['deskbus_notices_overdue_seconds{channel="ops"}']) == 0
    assert not any("removed" in name for name in shown), "it is in no settings any more"
