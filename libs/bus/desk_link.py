"""The running desk as a program reaches it that may start before it: looked for when needed."""

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from contracts.subjects.subject import Answered, Asked, Subject, identity_of
from libs.bus.client import ASK_TIMEOUT_S, Client, DeskNotReachable, open_client

# Finds the running desk's NATS and the keys to it; raises DeskNotReachable where there is none.
Where = Callable[[], tuple[str, Path]]


@dataclass
class _Connection:
    """A connection, and how many questions wait for their answers on it."""

    client: Client
    stack: AsyncExitStack
    asking: int = 0


class DeskLink:
    """Asks under one identity; connected from the first question on, until `close`.

    A connection that breaks is left, and the next question opens another: NATS closes that of a
    proposer who is revoked, and nobody is to try its key for ever.
    """

    def __init__(self, where: Where, identity: str) -> None:
        self._where = where
        self._identity = identity
        self._connection: _Connection | None = None
        self._opening = asyncio.Lock()

    async def ask(
        self, row: Subject[Asked, Answered], message: Asked, timeout_s: float = ASK_TIMEOUT_S
    ) -> Answered:
        """The answer. Raises DeskNotReachable and QuestionRefused."""
        connection = await self._connected()
        connection.asking += 1
        try:
            return await connection.client.ask(row, message, timeout_s=timeout_s)
        except DeskNotReachable:
            # A desk that was started anew may be elsewhere: the next question looks for it. Others
            # that wait on this connection may still be answered: the last one closes it.
            if self._connection is connection:
                self._connection = None
            raise
        finally:
            connection.asking -= 1
            if self._connection is not connection:
                await _close_unused(connection)

    async def close(self) -> None:
        """Let go of the connection, if there is one; a question that waits is answered first."""
        connection, self._connection = self._connection, None
        if connection is not None:
            await _close_unused(connection)

    async def _connected(self) -> _Connection:
        async with self._opening:
            if self._connection is not None and self._connection.client.is_closed:
                await self.close()
            if self._connection is None:
                (url, secrets_dir), stack = self._where(), AsyncExitStack()
                opened = open_client(url, secrets_dir, self._identity, reconnects=False)
                self._connection = _Connection(await stack.enter_async_context(opened), stack)
            return self._connection


async def _close_unused(connection: _Connection) -> None:
    """Close a connection that nobody waits on any more."""
    if not connection.asking:
        await connection.stack.aclose()


class ProposerLinks:
    """Asks in the name of proposers, each over a connection with its own key: NATS decides what one
    may say, not the process that passes it on."""

    def __init__(self, where: Where) -> None:
        self._where = where
        self._links: dict[str, DeskLink] = {}

    async def ask(self, proposer: str, row: Subject[Asked, Answered], message: Asked) -> Answered:
        """The answer. Raises DeskNotReachable and QuestionRefused."""
        # As many as a person has added: whoever asks has shown a token.
        link = self._links.setdefault(proposer, DeskLink(self._where, identity_of(proposer)))
        return await link.ask(row, message)

    async def close(self) -> None:
        """Let go of all connections."""
        for link in self._links.values():
            await link.close()
