"""A real NATS with the desk's streams, and connections under the desk's own keys."""

from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import AsyncExitStack
from typing import Any

import pytest
from nats.aio.msg import Msg

from contracts.audit import EventsSince
from contracts.subjects.commands import COMMANDS
from contracts.subjects.events import EVENTS_SINCE
from contracts.subjects.subject import ORCHESTRATOR, WEB
from libs.bus.codec import decode, encode
from libs.bus.connection import Client, connect
from libs.bus.headers import AGAIN_HEADER, reason
from libs.bus.permissions import PROVISIONER
from libs.bus.streams import Provisioner
from libs.runtime.errors import Unavailable
from libs.servers.embedded import Servers
from tests.fakes.events import Console
from tests.integration.conftest import ServersIn
from tests.integration.own_servers import OwnServers
from tests.open_folder import open_folder

Connect = Callable[[str], Coroutine[Any, Any, Client]]


@pytest.fixture(scope="session")
def servers(servers_in: ServersIn) -> Iterator[OwnServers]:
    """One pair of servers for all tests here."""
    with open_folder() as folder, servers_in(folder) as held:
        yield held


@pytest.fixture
async def connected(servers: Servers) -> AsyncIterator[Connect]:
    """Opens a connection as one identity, and closes it in the end."""
    async with AsyncExitStack() as stack:

        async def opened(identity: str) -> Client:
            client = await connect(servers.nats_url, identity, servers.secrets_dir)
            stack.push_async_callback(client.close)
            return client

        yield opened


@pytest.fixture
async def provisioner(connected: Connect) -> Provisioner:
    """The streams and consumers, new and empty."""
    client = await connected(PROVISIONER)
    provisioner = Provisioner(client, COMMANDS)
    await provisioner.provision()
    for row in COMMANDS[:1]:
        await client.jsm().purge_stream("COMMANDS", subject=row.address)
    return provisioner


@pytest.fixture
async def publisher(connected: Connect) -> Client:
    """A connection that may publish commands."""
    return await connected(ORCHESTRATOR)


@pytest.fixture
async def console(connected: Connect) -> Console:
    """A stand-in that answers on NATS as the console does, under the console's key."""
    client, console = await connected(WEB), Console()

    async def answer(message: Msg) -> None:
        try:
            page = await console.ask(decode(EventsSince, message.data))
        except Unavailable as error:
            why = {**reason(error.code, error.message), AGAIN_HEADER: "1"}
            await client.publish(message.reply, b"", headers=why)
        else:
            await client.publish(message.reply, encode(page))

    await client.subscribe(f"{EVENTS_SINCE.address}.*", cb=answer)
    await client.flush()
    return console
