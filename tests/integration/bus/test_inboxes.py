"""The names of inboxes and replies, as a server sees them: nobody can guess one from another."""

from itertools import combinations

from libs.bus.connection import inbox_prefix
from libs.bus.permissions import CONSOLE
from tests.integration.bus.conftest import Connect

RANDOM_CHARS = 22
BEGINNING = 8
"""So many characters are not equal by chance."""


def assert_unguessable(names: list[str]) -> None:
    prefix = f"{inbox_prefix(CONSOLE)}."
    tokens = [name.removeprefix(prefix) for name in names]
    assert all(name.startswith(prefix) for name in names)
    assert all(len(token) >= RANDOM_CHARS and "." not in token for token in tokens)
    assert len(set(tokens)) == len(tokens)
    pairs = combinations(tokens, 2)
    assert not [pair for pair in pairs if len({token[:BEGINNING] for token in pair}) == 1]


async def test_inboxes_of_a_connection_share_only_its_prefix(connected: Connect) -> None:
    client = await connected(CONSOLE)
    assert_unguessable([client.new_inbox() for _ in range(50)])


async def test_reply_subjects_of_requests_share_only_the_subscription_they_arrive_on(
    connected: Connect,
) -> None:
    asker, asked = await connected(CONSOLE), await connected("risk")
    replies: list[str] = []

    async def answer(message):  # type: ignore[no-untyped-def]
        replies.append(message.reply)
        await message.respond(b"")

    await asked.subscribe("$SRV.PING", cb=answer)
    await asked.flush()
    for _ in range(5):
        await asker.request("$SRV.PING", timeout=5)

    prefix = f"{inbox_prefix(CONSOLE)}."
    subscriptions, tokens = zip(
        *(reply.removeprefix(prefix).split(".") for reply in replies), strict=True
    )
    assert len(set(subscriptions)) == 1
    assert_unguessable([f"{prefix}{token}" for token in (subscriptions[0], *tokens)])
