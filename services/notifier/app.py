"""Wiring of the notifier. Without a channel it answers questions, and hears and asks nothing."""

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

import structlog

from contracts.notice import (
    KeepNotices,
    LeaseNotifier,
    NextNotices,
    NoticesKept,
    NoticesNext,
    NotifierLease,
)
from contracts.subjects.notices import (
    CHANNELS,
    KEEP_NOTICES,
    LEASE_NOTIFIER,
    NEXT_NOTICES,
    NOTICE_DURABLE,
    NOTIFIER,
    TEST_CHANNEL,
)
from libs.bus.client import Client
from libs.bus.connection import BusLost, Connection, connect, watched
from libs.bus.discovery import discoverable
from libs.bus.server import Server
from libs.bus.streams import NOTICE_STREAM, acknowledged
from libs.channels.addresses import Addresses
from libs.channels.channel import Channel, ChannelUnusable
from libs.channels.opening import open_channel
from libs.runtime.background import Background
from libs.runtime.settings import Settings
from services.notifier.handler import Notifier
from services.notifier.hearer import Hearer, hears

log = structlog.get_logger()


class BusOrchestrator:
    """The orchestrator, over the bus."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def lease(self, asked: LeaseNotifier) -> NotifierLease:
        """Ask for the lease, or give it back. Raises DeskNotReachable and QuestionRefused."""
        return await self._client.ask(LEASE_NOTIFIER, asked)

    async def keep(self, asked: KeepNotices) -> NoticesKept:
        """Have notices kept. Raises DeskNotReachable and QuestionRefused."""
        return await self._client.ask(KEEP_NOTICES, asked)

    async def next(self, asked: NextNotices) -> NoticesNext:
        """Say what became of notices, and hear what is due next. Raises as the others."""
        return await self._client.ask(NEXT_NOTICES, asked)


@asynccontextmanager
async def running(settings: Settings) -> AsyncIterator[Background]:
    """The notifier answers questions when the block is entered, and works once it has the lease."""
    closed = asyncio.Event()

    async def on_closed() -> None:
        closed.set()

    async with AsyncExitStack() as stack:
        connection = await connect(
            settings.nats_address, NOTIFIER, settings.secrets_path, on_closed=on_closed
        )
        stack.push_async_callback(connection.close)
        channels, problems = await _channels(settings, stack)
        orchestrator = BusOrchestrator(Client(connection, NOTIFIER, closed))
        hearing = partial(_hearing, settings, connection)
        notifier = Notifier(orchestrator, channels, problems, settings.notify, hearing)
        await _answering(connection, notifier, stack)
        parts = [notifier.run()] if settings.notify.channels else []
        background = await stack.enter_async_context(Background(*parts, _lost(closed)))
        if parts:
            stack.push_async_callback(notifier.stop)
        stack.enter_context(watched(connection, NOTIFIER))
        log.info("service.started", service=NOTIFIER, channels=len(settings.notify.channels))
        yield background
    log.info("service.stopped", service=NOTIFIER)


async def _answering(connection: Connection, notifier: Notifier, stack: AsyncExitStack) -> None:
    server = Server(connection, NOTIFIER)
    stack.push_async_callback(server.stop)
    await server.serve(TEST_CHANNEL, notifier.tested)
    await server.serve(CHANNELS, notifier.shown)
    await discoverable(connection, NOTIFIER, server.endpoints)


async def _lost(closed: asyncio.Event) -> None:
    await closed.wait()
    raise BusLost(NOTIFIER)


@asynccontextmanager
async def _hearing(
    settings: Settings, connection: Connection, hearer: Hearer
) -> AsyncIterator[asyncio.Event]:
    """Hear notable events while the block runs; what it gives is set once that has ended."""
    # FastStream is loaded by those only that have somebody to tell.
    from libs.bus.listening.listener import Listener  # noqa: PLC0415

    listener = Listener(settings.nats_address, NOTIFIER, settings.secrets_path)
    hears(listener, hearer)
    hearer.begin(await acknowledged(connection, NOTICE_STREAM, NOTICE_DURABLE) + 1)
    async with listener.listening():
        yield listener.lost


async def _channels(
    settings: Settings, stack: AsyncExitStack
) -> tuple[Mapping[str, Channel], Mapping[str, str]]:
    """The channels that can be used, and why the others cannot."""
    addresses = Addresses(os.environ, settings.secrets_path)
    channels: dict[str, Channel] = {}
    problems: dict[str, str] = {}
    for name, channel in settings.notify.channels.items():
        try:
            channels[name] = await asyncio.to_thread(open_channel, name, channel, addresses)
        except ChannelUnusable as error:
            # The others are told all the same; what is due to this one waits until it is set.
            problems[name] = error.message[:400]
            log.error("notifier.channel_unusable", channel=name, why=error.message)  # noqa: TRY400
        else:
            stack.push_async_callback(channels[name].close)
    return channels, problems
