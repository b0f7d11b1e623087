"""What one key can take up of NATS: its own share, and nothing of another's."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import nats
import pytest

from contracts.subjects.subject import USERS
from libs.bus.client import DeskNotReachable, open_client
from libs.bus.connection import NoConnectionLeft, connect
from libs.bus.permissions import permissions
from libs.keys.accounts import CONNECTIONS_EACH_MAX, SUBSCRIPTIONS_EACH_MAX
from libs.keys.credentials import nkey_seed_path
from libs.servers.embedded import Servers
from tests.fakes.held_connections import held_connections
from tests.integration.bus.conftest import Connect

EACH = sorted(permissions())
TRIES = 1_024
FULL = "-ERR 'maximum account active connections exceeded'"


@pytest.mark.parametrize("thief", ["mcp", "execution", "provisioner"])
async def test_a_key_that_takes_all_it_can_keeps_no_other_key_out(
    servers: Servers, connected: Connect, thief: str
) -> None:
    seed = nkey_seed_path(servers.secrets_dir, thief)
    async with held_connections(servers.nats_url, seed, TRIES) as answers:
        assert answers == {"PONG": CONNECTIONS_EACH_MAX, FULL: TRIES - CONNECTIONS_EACH_MAX}
        for identity in EACH:
            if identity != thief:
                await (await connected(identity)).flush()
        with pytest.raises(NoConnectionLeft, match=f"no connection left for '{thief}'"):
            await connect(servers.nats_url, thief, servers.secrets_dir)


@pytest.fixture
async def all_but_user(servers: Servers) -> AsyncIterator[None]:
    """Every connection of every key but one is held."""
    async with AsyncExitStack() as stack:
        for identity in EACH:
            if identity != USERS[1]:
                seed = nkey_seed_path(servers.secrets_dir, identity)
                held = held_connections(servers.nats_url, seed, CONNECTIONS_EACH_MAX)
                assert await stack.enter_async_context(held) == {"PONG": CONNECTIONS_EACH_MAX}
        yield


@pytest.mark.usefixtures("all_but_user")
async def test_a_person_whose_key_has_no_connection_left_uses_the_other_one(
    servers: Servers,
) -> None:
    first, spare = USERS
    async with open_client(servers.nats_url, servers.secrets_dir, first, spare=spare) as client:
        assert client.identity == spare
    with pytest.raises(DeskNotReachable, match=f"no connection left for '{first}'"):
        async with open_client(servers.nats_url, servers.secrets_dir, first):
            pass


async def test_a_connection_that_takes_too_many_subscriptions_is_closed(servers: Servers) -> None:
    closed = asyncio.Event()

    async def on_closed() -> None:
        closed.set()

    client = await nats.connect(
        servers.nats_url,
        nkeys_seed=str(nkey_seed_path(servers.secrets_dir, "mcp")),
        closed_cb=on_closed,
        allow_reconnect=False,
    )
    for number in range(SUBSCRIPTIONS_EACH_MAX):
        await client.subscribe(f"_INBOX_mcp.{number}")
    await client.flush()
    await client.subscribe("_INBOX_mcp.more")
    await closed.wait()


def test_the_shares_of_all_keys_together_fit_into_the_server(servers: Servers) -> None:
    config = json.loads((servers.secrets_dir.parent / "servers" / "nats.conf").read_text())
    limits = [account["limits"] for name, account in config["accounts"].items() if name != "silent"]
    assert len(limits) == len(EACH)
    assert sum(each["max_connections"] for each in limits) < config["max_connections"]
