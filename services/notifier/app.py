"""Wiring of the notifier. Without a channel it only answers questions."""

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager

import structlog

from contracts.notice import EndedNotices, KeepNotices, SettleNotices
from contracts.subjects.notices import (
    CHANNELS,
    KEEP_NOTICES,
    NOTIFIER,
    SETTLE_NOTICES,
    TEST_CHANNEL,
)
from libs.bus.client import Client
from libs.bus.connection import BusLost, connect, watched
from libs.bus.discovery import discoverable
from libs.bus.server import Server
from libs.channels.addresses import Addresses
from libs.channels.channel import Channel, ChannelUnusable
from libs.channels.opening import open_channel
from libs.runtime.background import Background
from libs.runtime.notify_settings import ChannelSettings
from libs.runtime.settings import Settings
from services.notifier.handler import Notifier
from services.notifier.sender import Sender

log = structlog.get_logger()


class BusRecord:
    """The orchestrator's record, over the bus."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def keep(self, query: KeepNotices) -> EndedNotices:
        """Put notices on record before they are sent. Raises DeskError."""
        return await self._client.ask(KEEP_NOTICES, query)

    async def settle(self, query: SettleNotices) -> EndedNotices:
        """Record a try. Raises DeskError."""
        return await self._client.ask(SETTLE_NOTICES, query)


@asynccontextmanager
async def running(settings: Settings) -> AsyncIterator[Background]:
    """The notifier answers and sends when the block is entered."""
    closed = asyncio.Event()

    async def on_closed() -> None:
        closed.set()

    async with AsyncExitStack() as stack:
        connection = await connect(
            settings.nats_address, NOTIFIER, settings.secrets_path, on_closed=on_closed
        )
        stack.push_async_callback(connection.close)
        channels, problems = await _channels(settings)
        record = BusRecord(Client(connection, NOTIFIER, closed))
        senders = {
            name: Sender(name, channels.get(name), record, settings.notify, connection)
            for name in settings.notify.channels
        }
        notifier = Notifier(senders, problems, settings.notify, connection)
        server = Server(connection, NOTIFIER)
        stack.push_async_callback(server.stop)
        await server.serve(TEST_CHANNEL, notifier.tested)
        await server.serve(CHANNELS, notifier.shown)
        await discoverable(connection, NOTIFIER, server.endpoints)
        sending = (sender.run() for sender in senders.values())
        background = await stack.enter_async_context(Background(*sending, _lost(closed)))
        stops = (sender.stop for sender in senders.values())
        stack.push_async_callback(lambda: asyncio.gather(*(stop() for stop in stops)))
        stack.enter_context(watched(connection, NOTIFIER))
        log.info("service.started", service=NOTIFIER, channels=len(senders))
        yield background
    log.info("service.stopped", service=NOTIFIER)


async def _lost(closed: asyncio.Event) -> None:
    await closed.wait()
    raise BusLost(NOTIFIER)


async def _channels(settings: Settings) -> tuple[Mapping[str, Channel], Mapping[str, str]]:
    """The channels that can be used, and why the others cannot."""
    addresses = Addresses(os.environ, settings.secrets_path)
    channels: dict[str, Channel] = {}
    problems: dict[str, str] = {}

    async def open_one(name: str, channel: ChannelSettings) -> None:
        try:
            channels[name] = await open_channel(name, channel, addresses)
        except ChannelUnusable as error:
            # What is due to this one waits until its address is set.
            problems[name] = error.message[:400]
            log.error("notifier.channel_unusable", channel=name, why=error.message)  # noqa: TRY400

    await asyncio.gather(*(open_one(*item) for item in settings.notify.channels.items()))
    return {name: channels[name] for name in settings.notify.channels if name in channels}, problems
