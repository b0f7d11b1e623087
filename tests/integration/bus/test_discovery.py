"""Who is there, asked of real services over a real NATS."""

import time

import pytest

from libs.bus import discovery
from libs.bus.client import PING, instances
from libs.bus.connection import Client
from libs.bus.discovery import discoverable
from libs.bus.permissions import CONSOLE
from tests.fakes.log_lines import log_lines
from tests.integration.bus.conftest import Connect

WITHIN_S = 0.4
ALL = ("research", "risk", "trader")


async def there(connected: Connect, identity: str) -> Client:
    """A process of this service."""
    client = await connected(identity)
    await discoverable(client, identity, ())
    return client


async def test_every_process_is_counted_and_one_that_died_is_gone(connected: Connect) -> None:
    console = await connected(CONSOLE)
    assert await instances(console, ALL, WITHIN_S) == {"research": 0, "risk": 0, "trader": 0}

    first, _, risk = [await there(connected, each) for each in ("research", "research", "risk")]
    assert await instances(console, ALL, WITHIN_S) == {"research": 2, "risk": 1, "trader": 0}

    for each in (first, risk):
        await each.close()
    assert await instances(console, ALL, WITHIN_S) == {"research": 1, "risk": 0, "trader": 0}


async def test_a_service_has_begun_once_nats_was_told_of_all_its_subscriptions(
    connected: Connect,
) -> None:
    client = await connected("risk")
    await discoverable(client, "risk", ())
    assert client.pending_data_size == 0


async def test_a_service_begins_beside_a_nats_that_confirms_nothing(
    connected: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def unconfirmed(*_: object) -> None:
        raise TimeoutError

    monkeypatch.setattr(discovery, "flush", unconfirmed)
    client = await connected("risk")
    with log_lines() as logs:
        await discoverable(client, "risk", ())
    assert [line["event"] for line in logs] == ["bus.subscriptions_not_confirmed"]


async def test_it_takes_no_longer_than_it_may_and_is_quick_where_nobody_is_missing(
    connected: Connect,
) -> None:
    console, _ = await connected(CONSOLE), await there(connected, "risk")
    began = time.monotonic()
    assert await instances(console, ("risk",), within_s=30) == {"risk": 1}
    assert await instances(console, ("risk", "trader"), within_s=0.2) == {"risk": 1, "trader": 0}
    assert time.monotonic() - began < 15, "the first did not wait for its limit"


async def test_an_answer_that_cannot_be_read_counts_for_nobody(connected: Connect) -> None:
    console = await connected(CONSOLE)
    strange = await connected("risk")
    answers = [b"", b"{", b"[]", b'"risk"', b'{"name": "deskbus-risk"}', b"null"]

    async def answer(message):  # type: ignore[no-untyped-def]
        await message.respond(answers.pop())

    await strange.subscribe(PING, cb=answer)
    await strange.flush()
    while answers:
        assert await instances(console, ("risk",), within_s=0.1) == {"risk": 0}
