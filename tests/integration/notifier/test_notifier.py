"""The notifier on a real NATS and Postgres: nothing missed, nothing sent twice."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta

import pytest

from contracts.audit import EventType
from contracts.notice import ChannelsQuery, NotificationsQuery, TestChannel
from contracts.subjects.notices import CHANNELS, NOTIFICATIONS, TEST_CHANNEL
from libs.bus.client import open_client
from libs.bus.connection import connect
from libs.bus.streams import NOTICE_STREAM
from libs.report.notify import channels
from libs.runtime.settings import Settings
from services import launcher
from tests.fakes.channel_server import Answer, ChannelServer, Heard, channel_server
from tests.integration.notifier.conftest import (
    SOON_S,
    Backbone,
    heard,
    lead,
    provisioned,
    recorded,
    running,
    settled,
    webhook,
)

SECRET = "pl4nted-in-the-address"


@pytest.fixture
def server() -> Iterator[ChannelServer]:
    with channel_server() as server:
        yield server


@pytest.fixture
def notifier(
    backbone: Backbone, name: str, server: ChannelServer, monkeypatch: pytest.MonkeyPatch
) -> Settings:
    """The settings of a notifier with one webhook."""
    lead(monkeypatch, name, server.url)
    return backbone.with_channels(webhook(name))


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A channel that failed is tried again at once."""
    monkeypatch.setattr("services.notifier.logic.BACKOFF_S", 0.2)
    monkeypatch.setattr("services.notifier.logic.BACKOFF_S_MAX", 0.2)


async def test_what_happens_is_sent_once_in_order_and_is_on_record(
    backbone: Backbone, name: str, server: ChannelServer, notifier: Settings
) -> None:
    async with AsyncExitStack() as stack:
        await running(stack, notifier)
        events = await backbone.happens(*range(1, 201))
        assert await heard(server, 200) == events
        assert await settled(backbone, name, 200) == dict.fromkeys(events, "sent")


async def test_what_happens_while_no_notifier_runs_is_sent_when_one_does(
    backbone: Backbone, name: str, server: ChannelServer, notifier: Settings
) -> None:
    async with AsyncExitStack() as stack:
        await running(stack, notifier)
        before = await backbone.happens(1)
        await heard(server, 1)
    meanwhile = await backbone.happens(2, 3, 4)
    async with AsyncExitStack() as stack:
        await running(stack, notifier)
        assert await heard(server, 4) == [*before, *meanwhile]


async def test_of_two_notifiers_at_once_each_event_is_sent_once_and_one_may_go(
    backbone: Backbone, name: str, server: ChannelServer, notifier: Settings
) -> None:
    async with AsyncExitStack() as stack:
        first = AsyncExitStack()
        await running(first, notifier)
        await stack.enter_async_context(launcher.service_running("notifier", notifier))
        events = [*await backbone.happens(*range(1, 51))]
        await heard(server, 50)
        await first.aclose()
        events += await backbone.happens(*range(51, 101))
        assert sorted(await heard(server, 100)) == sorted(events)


async def test_an_alarm_passes_what_waits_for_the_end_of_quiet_hours(
    backbone: Backbone, name: str, server: ChannelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = datetime.now(UTC)
    quiet = f"{now - timedelta(hours=1):%H:%M}-{now + timedelta(hours=2):%H:%M}"
    lead(monkeypatch, name, server.url)
    settings = backbone.with_channels({**webhook(name), "quiet": quiet})
    async with AsyncExitStack() as stack:
        await running(stack, settings)
        fills = await backbone.happens(1, 2)
        await recorded(backbone, name, dict.fromkeys(fills, "due"))
        (halt,) = await backbone.happens(0, kind=EventType.TRADING_HALTED)
        assert await heard(server, 1) == [halt]
        await recorded(backbone, name, {**dict.fromkeys(fills, "due"), halt: "sent"})
    assert server.event_ids == [halt]


@pytest.mark.usefixtures("impatient")
async def test_a_dead_channel_holds_up_no_other_and_gets_what_it_missed_in_one_message(
    backbone: Backbone, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    dead, well = f"{name}_d", f"{name}_w"
    with channel_server() as gone, channel_server() as there:
        lead(monkeypatch, dead, gone.url)
        lead(monkeypatch, well, there.url)
        both = {"service": "webhook", "timeout_s": 5}
        rules = {"all": {"events": ["fill"], "to": [dead, well]}}
        settings = backbone.with_channels({"channels": {dead: both, well: both}, "rules": rules})
        gone.judge = lambda _: Answer(503)
        async with AsyncExitStack() as stack:
            await running(stack, settings)
            events = await backbone.happens(*range(1, 31))
            assert await heard(there, 30) == events
            await asyncio.to_thread(gone.wait, lambda s: len(s.heard) > 3, SOON_S)
            gone.judge = lambda _: Answer()
            assert await heard(gone, 30) == events
            assert len(gone.taken) == 1
            assert await settled(backbone, dead, 30) == dict.fromkeys(events, "sent")


@pytest.mark.usefixtures("impatient")
async def test_what_is_given_up_is_on_record_and_told_over_another_channel(
    backbone: Backbone, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    dead, well = f"{name}_d", f"{name}_w"
    with channel_server() as gone, channel_server() as there:
        lead(monkeypatch, dead, gone.url)
        lead(monkeypatch, well, there.url)
        rules = {
            "fills": {"events": ["fill"], "to": [dead]},
            "lost": {"events": ["undelivered"], "to": [dead, well]},
        }
        one = {"service": "webhook", "timeout_s": 5}
        settings = backbone.with_channels(
            {"channels": {dead: {**one, "give_up_after_s": 1}, well: one}, "rules": rules}
        )
        gone.judge = lambda _: Answer(500)
        async with AsyncExitStack() as stack:
            await running(stack, settings)
            events = await backbone.happens(1, 2)
            assert await settled(backbone, dead, 2) == dict.fromkeys(events, "given_up")
            await heard(there, 1)
            (notice,) = there.taken[0].json["notices"]
            async with open_client(settings.nats_address, settings.secrets_path) as client:
                await stack.enter_async_context(launcher.service_running("console", settings))
                page = await client.ask(NOTIFICATIONS, NotificationsQuery(channel=dead))
    assert notice["kind"] == "undelivered"
    assert dead in notice["title"]
    assert {(row.status, row.code) for row in page.notifications} == {("given_up", "http_500")}
    state = next(state for state in page.channels if state.channel == dead)
    assert (state.given_up, state.waiting) == (2, 0)


@pytest.mark.usefixtures("impatient")
async def test_one_notice_that_a_channel_refuses_does_not_stand_in_the_way_of_others(
    backbone: Backbone, name: str, server: ChannelServer, notifier: Settings
) -> None:
    def judge(message: Heard) -> Answer:
        return Answer(413 if any(" 7 " in title for title in message.titles) else 200)

    server.judge = judge
    async with AsyncExitStack() as stack:
        await running(stack, notifier)
        events = await backbone.happens(*range(1, 21))
        assert sorted(await heard(server, 19)) == sorted(set(events) - {events[6]})
        await settled(backbone, name, 19)
        assert (await backbone.remembered(name))[events[6]] == "due"


async def test_what_is_on_record_as_sent_is_not_sent_again_when_it_is_delivered_again(
    backbone: Backbone, name: str, server: ChannelServer, notifier: Settings
) -> None:
    async with AsyncExitStack() as stack:
        await running(stack, notifier)
        before = await backbone.happens(1)
        await settled(backbone, name, 1)
    again = await backbone.happens(2)
    async with backbone.database() as db:
        # As where the notifier died between recording that it was sent and acknowledging it.
        await db.execute(
            "insert into notifications"
            " (event_id, channel, notice, event_at, due_at, status, ended_at)"
            " select $1, channel, notice, event_at, due_at, status, ended_at from notifications"
            " where event_id = $2 and channel = $3",
            again[0],
            before[0],
            name,
        )
    async with AsyncExitStack() as stack:
        await running(stack, notifier)
        last = await backbone.happens(3)
        assert await heard(server, 2) == [*before, *last]


async def test_what_nats_loses_with_its_store_is_given_up_on_record_and_shown(
    backbone: Backbone, name: str, server: ChannelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    lead(monkeypatch, name, server.url)
    settings = backbone.with_channels({**webhook(name), "quiet": "00:00-23:59", "rings": "alarm"})
    async with AsyncExitStack() as stack:
        await running(stack, settings)
        (lost,) = await backbone.happens(1)
        await recorded(backbone, name, {lost: "due"})
        async with backbone.database() as db:
            await db.execute(
                "update notifications set kept_at = kept_at - interval '1 hour' where channel = $1",
                name,
            )
        bus = await connect(settings.nats_address, "provisioner", settings.secrets_path)
        stack.push_async_callback(bus.close)
        await bus.jsm().delete_stream(NOTICE_STREAM)
        await provisioned(bus, name)
        await backbone.happens(0, kind=EventType.TRADING_HALTED)
        await heard(server, 1)
        async with open_client(settings.nats_address, settings.secrets_path) as client:
            await stack.enter_async_context(launcher.service_running("console", settings))
            page = await client.ask(NOTIFICATIONS, NotificationsQuery(channel=name))
            view = await client.ask(CHANNELS, ChannelsQuery())
    row = next(row for row in page.notifications if str(row.notice.event_id) == lost)
    assert (row.status, row.code) == ("given_up", "lost")
    (line,) = channels.standings(
        view, [s for s in page.channels if s.channel == name], datetime.now(UTC)
    )
    assert "NATS lost its store" in line.lost
    assert "(1 of them on record)" in line.lost


async def test_a_test_message_passes_what_waits_and_no_address_is_logged(
    backbone: Backbone,
    name: str,
    server: ChannelServer,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    server.judge = lambda message: Answer(503 if "fill" in message.body.decode() else 200)
    lead(monkeypatch, name, f"{server.url}/{SECRET}")
    settings = backbone.with_channels(webhook(name))
    async with AsyncExitStack() as stack:
        await running(stack, settings)
        await backbone.happens(1)
        await asyncio.to_thread(server.wait, lambda s: bool(s.heard), SOON_S)
        async with open_client(settings.nats_address, settings.secrets_path) as client:
            answer = await client.ask(TEST_CHANNEL, TestChannel(channel=name))
            unknown = await client.ask(TEST_CHANNEL, TestChannel(channel="nothing"))
            (channel,) = (await client.ask(CHANNELS, ChannelsQuery())).channels
    assert answer.sent
    assert not unknown.sent
    assert unknown.code == "channel_unknown"
    assert channel.since is not None
    out, err = capfd.readouterr()
    assert SECRET not in out + err + json.dumps(answer.model_dump(mode="json"))
