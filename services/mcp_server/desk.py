"""The running desk as the MCP server reaches it: looked for when it is needed."""

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from contracts.message import Message
from contracts.subjects import Subject
from libs.bus.client import ASK_TIMEOUT_S, Client, DeskNotReachable, open_client

# Finds the running desk's NATS and the keys to it; raises DeskNotReachable where there is none.
Where = Callable[[], tuple[str, Path]]


@dataclass
class _Held:
    """A connection, and how many questions wait for their answers on it."""

    client: Client
    stack: AsyncExitStack
    asking: int = 0


class Desk:
    """Asks under one identity; connected from the first question on, until `close`."""

    def __init__(self, where: Where, identity: str) -> None:
        self._where = where
        self._identity = identity
        self._held: _Held | None = None
        self._opening = asyncio.Lock()

    async def ask(self, row: Subject, message: Message, timeout_s: float = ASK_TIMEOUT_S) -> Any:
        """The answer, a `row.reply`. Raises DeskNotReachable and QuestionRefused."""
        held = await self._opened()
        held.asking += 1
        try:
            return await held.client.ask(row, message, timeout_s=timeout_s)
        except DeskNotReachable:
            # A desk that was started anew may be elsewhere: the next question looks for it. Others
            # that wait on this connection may still be answered: the last one closes it.
            if self._held is held:
                self._held = None
            raise
        finally:
            held.asking -= 1
            if self._held is not held:
                await _left(held)

    async def close(self) -> None:
        """Let go of the connection, if there is one; a question that waits is answered first."""
        held, self._held = self._held, None
        if held is not None:
            await _left(held)

    async def _opened(self) -> _Held:
        async with self._opening:
            if self._held is None:
                (url, secrets_dir), stack = self._where(), AsyncExitStack()
                opened = open_client(url, secrets_dir, self._identity)
                self._held = _Held(await stack.enter_async_context(opened), stack)
            return self._held


async def _left(held: _Held) -> None:
    """Close a connection that nobody waits on any more."""
    if not held.asking:
        await held.stack.aclose()
