"""The notifier on a real NATS and Postgres, with an orchestrator: nothing missed, nothing twice."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from contracts.notice import ChannelsQuery, TestChannel
from contracts.subjects.cycles import REQUEST_CYCLE
from contracts.subjects.notices import CHANNELS, TEST_CHANNEL
from libs.bus.client import open_client
from libs.bus.connection import connect
from libs.bus.streams import NOTICE_STREAM
from libs.runtime.settings import Settings
from services import launcher
from services.orchestrator.clocks.desk_clock import STANDS_AFTER_LEASES
from tests.fakes.channel_server import Answer, ChannelServer, channel_server
from tests.integration.notifier.conftest import (
    SOON_S,
    Backbone,
    at_work,
    heard,
    lead,
    settled,
    webhook,
    working,
)

SECRET = "pl4nted-in-the-address"


@pytest.fixture
def server() -> Iterator[ChannelServer]:
    with channel_server() as running:
        yield running


@pytest.fixture
def notifier(
    backbone: Backbone, name: str, server: ChannelServer, monkeypatch: pytest.MonkeyPatch
) -> Settings:
    """The settings of a notifier with one webhook."""
    lead(monkeypatch, name, server.url)
    return backbone.with_channels(webhook(name))


async def test_what_happens_is_sent_once_in_order_and_remembered(
    backbone: Backbone, name: str, server: ChannelServer, notifier: Settings
) -> None:
    async with AsyncExitStack() as stack:
        await working(stack, notifier)
        events = await backbone.happens(*range(1, 201))
        assert await heard(server, 200) == events
        found = await settled(backbone, name, 200)
    assert found == dict.fromkeys(events, "sent")


async def test_what_happens_while_no_notifier_runs_is_sent_when_one_does(
    backbone: Backbone, name: str, server: ChannelServer, notifier: Settings
) -> None:
    async with AsyncExitStack() as stack:
        await working(stack, notifier)
        before = await backbone.happens(1)
        await heard(server, 1)
    meanwhile = await backbone.happens(2, 3, 4)
    async with AsyncExitStack() as stack:
        await working(stack, notifier)
        assert await heard(server, 4) == [*before, *meanwhile]


async def test_of_two_notifiers_at_once_each_event_is_sent_once_and_one_may_go(
    backbone: Backbone, name: str, server: ChannelServer, notifier: Settings
) -> None:
    async with AsyncExitStack() as stack:
        first = AsyncExitStack()
        await working(first, notifier)
        await stack.enter_async_context(launcher.service_running("notifier", notifier))
        events = [*await backbone.happens(*range(1, 51))]
        await heard(server, 50)
        await first.aclose()
        events += await backbone.happens(*range(51, 101))
        assert await heard(server, 100) == events


async def test_what_a_frozen_notifier_holds_comes_again_soon_and_before_what_is_behind_it(
    backbone: Backbone, name: str, server: ChannelServer, notifier: Settings
) -> None:
    async with AsyncExitStack() as stack:
        await working(stack, notifier)
        await backbone.happens(1)
        await heard(server, 1)
    async with AsyncExitStack() as stack:
        # As the one that is frozen: it has asked, and deals with nothing of what comes.
        frozen = await connect(notifier.nats_address, "notifier", notifier.secrets_path)
        stack.push_async_callback(frozen.close)
        inbox = frozen.new_inbox()
        held = await frozen.subscribe(inbox)
        await frozen.publish(
            f"$JS.API.CONSUMER.MSG.NEXT.{NOTICE_STREAM}.notifier",
            b'{"batch": 20, "expires": 5000000000}',
            reply=inbox,
        )
        await frozen.flush()
        events = await backbone.happens(*range(2, 602))
        for _ in range(20):
            await held.next_msg(SOON_S)
        await working(stack, notifier)
        assert (await heard(server, 601))[1:] == events


async def test_a_dead_and_a_slow_channel_hold_up_no_other(
    backbone: Backbone, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    dead, slow, well = f"{name}_d", f"{name}_s", f"{name}_w"
    channels = {each: {"service": "webhook", "timeout_s": 5} for each in (dead, slow, well)}
    rules = {"all": {"events": ["fill"], "to": [dead, slow, well]}}
    with channel_server() as slow_one, channel_server() as well_one:
        slow_one.judge = lambda _: Answer(silence_s=1.0)
        lead(monkeypatch, dead, "http://127.0.0.1:9/nobody")
        lead(monkeypatch, slow, slow_one.url)
        lead(monkeypatch, well, well_one.url)
        async with AsyncExitStack() as stack:
            settings = backbone.with_channels({"channels": channels, "rules": rules})
            await working(stack, settings)
            events = await backbone.happens(*range(1, 41))
            assert await heard(well_one, 40) == events
            assert len(slow_one.taken) < 40
            assert await heard(slow_one, 40) == events, "it catches up, many in one message"
            assert len(slow_one.taken) < 20
            waiting = await backbone.remembered(dead)
    assert waiting == dict.fromkeys(events, "due")


async def test_a_channel_that_comes_back_is_told_all_it_missed(
    backbone: Backbone, name: str, server: ChannelServer, notifier: Settings
) -> None:
    server.answers = [Answer(503), Answer(429, {"Retry-After": "1"})]
    async with AsyncExitStack() as stack:
        await working(stack, notifier)
        events = await backbone.happens(1, 2, 3)
        assert await heard(server, 3) == events
    async with backbone.database() as db:
        row = await db.fetchrow("select * from notice_channels where channel = $1", name)
    assert row is not None
    assert (row["sent"], row["waiting"], row["failures"], row["error_code"]) == (3, 0, 0, "")
    assert row["failed_at"] is not None


async def test_a_wait_that_was_asked_for_outlives_a_restart(
    backbone: Backbone, name: str, server: ChannelServer, notifier: Settings
) -> None:
    server.judge = lambda _: Answer(429, {"Retry-After": "600"})
    for _ in range(2):
        async with AsyncExitStack() as stack:
            await working(stack, notifier)
            if not server.heard:
                await backbone.happens(1)
            await asyncio.to_thread(server.wait, lambda s: len(s.heard) == 1, SOON_S)
            await settled(backbone, name, 0)
    async with AsyncExitStack() as stack:
        await working(stack, notifier)
        await asyncio.sleep(0.5)
    assert len(server.heard) == 1


async def test_what_is_given_up_is_told_over_another_channel(
    backbone: Backbone, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad, good = f"{name}_b", f"{name}_g"
    channels = {each: {"service": "webhook", "timeout_s": 5} for each in (bad, good)}
    rules = {
        "fills": {"events": ["fill"], "to": [bad]},
        "lost": {"events": ["undelivered"], "to": [bad, good]},
    }
    with channel_server() as refusing, channel_server() as well:
        refusing.judge = lambda _: Answer(400)
        lead(monkeypatch, bad, refusing.url)
        lead(monkeypatch, good, well.url)
        async with AsyncExitStack() as stack:
            await working(stack, backbone.with_channels({"channels": channels, "rules": rules}))
            await backbone.happens(1)
            await heard(well, 1)
    assert well.taken[0].titles == [f"1 message to channel {bad} could not be delivered (http_400)"]
    assert len(refusing.heard) == 1


async def test_a_message_that_nobody_could_read_is_told_as_a_dead_letter(
    backbone: Backbone, name: str, server: ChannelServer, notifier: Settings
) -> None:
    async with AsyncExitStack() as stack:
        await working(stack, notifier)
        client = await connect(notifier.nats_address, "user", notifier.secrets_path)
        stack.push_async_callback(client.close)
        await client.request(REQUEST_CYCLE.by("user"), b"no request", timeout=10)
        await heard(server, 1)
    (title,) = server.taken[0].titles
    assert title.startswith("Dead letter ")
    assert title.endswith("desk.v1.dlq.orchestrator.request.user (invalid)")


async def test_an_outage_of_the_desk_is_told_once_it_is_over(
    backbone: Backbone, name: str, server: ChannelServer, notifier: Settings
) -> None:
    async with AsyncExitStack() as stack:
        await working(stack, notifier)
        async with backbone.database() as db, db.transaction():
            # While the row is locked no beat of the desk's clock can be committed.
            await db.execute("select from desk_clock for update")
            stands_after_s = backbone.settings.lease_s * STANDS_AFTER_LEASES
            await db.execute(f"select pg_sleep({2 * stands_after_s})")
        await heard(server, 1)
    assert server.taken[0].titles[0].startswith("The desk stood still for ")


async def test_a_jump_of_the_clock_is_told_once_it_is_over(
    backbone: Backbone, name: str, server: ChannelServer, notifier: Settings
) -> None:
    async with AsyncExitStack() as stack:
        await working(stack, notifier)
        async with backbone.database() as db:
            ago = "clock_timestamp() - interval '100 seconds'"
            await db.execute(f"update desk_clock set stands_at = {ago}, beat_at = {ago}")
        await heard(server, 1)
    assert server.taken[0].titles[0].startswith("The clock of Postgres jumped ahead by")


async def test_without_a_channel_it_answers_and_neither_hears_nor_asks(
    backbone: Backbone, server: ChannelServer
) -> None:
    async with AsyncExitStack() as stack:
        idle = backbone.settings
        await stack.enter_async_context(launcher.service_running("notifier", idle))
        async with open_client(idle.nats_address, idle.secrets_path) as client:
            view = await client.ask(CHANNELS, ChannelsQuery())
            tested = await client.ask(TEST_CHANNEL, TestChannel(channel="phone"))
        await backbone.happens(1)
        async with backbone.database() as db:
            lease = await db.fetchrow("select released from notifier_lease")
    assert (view.channels, view.working) == ((), False)
    assert (tested.sent, tested.code) == (False, "channel_unknown")
    assert lease is not None
    assert lease["released"]


def test_without_a_channel_neither_faststream_nor_apprise_is_loaded() -> None:
    program = (
        "import sys, services.notifier.app\n"
        "print([m for m in ('apprise', 'faststream', 'requests') if m in sys.modules])"
    )
    said = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert said.stdout.strip() == "[]"


@pytest.mark.parametrize("service", ["webhook", "apprise"])
async def test_an_address_is_in_no_log_answer_or_row(
    service: str, backbone: Backbone, name: str, server: ChannelServer, tmp_path: Path
) -> None:
    """As a process of its own, which logs all that there is."""
    url = f"{server.url}/{SECRET}"
    server.answers = [Answer(500), Answer(400)]
    settings = backbone.with_channels(webhook(name) | {"channels": {name: {"service": service}}})
    environment = {
        **os.environ,
        **settings.environment,
        "DESKBUS_LOG_LEVEL": "debug",
        f"DESKBUS_NOTIFY_{name.upper()}": url if service == "webhook" else f"json{url[4:]}",
        f"DESKBUS_NOTIFY_{name.upper()}_KEY": SECRET,
    }
    log = tmp_path / "log"
    with log.open("wb") as words:
        program = [sys.executable, "-m", "services.notifier"]
        process = subprocess.Popen(program, env=environment, stdout=words, stderr=words)  # noqa: ASYNC220
    try:
        async with (
            asyncio.timeout(SOON_S),
            open_client(settings.nats_address, settings.secrets_path) as client,
        ):
            view = await at_work(client)
            said = await client.ask(TEST_CHANNEL, TestChannel(channel=name), timeout_s=30)
            await backbone.happens(1)
            await settled(backbone, name, 1)
    finally:
        process.send_signal(signal.SIGTERM)
        ended = await asyncio.to_thread(process.wait, SOON_S)
    async with backbone.database() as db:
        rows = [
            *await db.fetch("select * from notice_channels where channel = $1", name),
            *await db.fetch("select * from notifications where channel = $1", name),
        ]
    shown = [log.read_text(), repr(said), repr(view), repr(rows), str(settings)]
    assert not any(SECRET in text for text in shown)
    assert any(SECRET in each.path for each in server.heard)
    assert said.code == "http_500"
    assert ended == 0
