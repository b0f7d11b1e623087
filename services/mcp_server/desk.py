"""The running desk as the MCP server reaches it: looked for when it is needed."""

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from contracts.message import Message
from contracts.subjects import Subject
from libs.bus.client import ASK_TIMEOUT_S, Client, DeskNotReachable, open_client

# Finds the running desk's NATS and the keys to it; raises DeskNotReachable where there is none.
Where = Callable[[], tuple[str, Path]]


class Desk:
    """Asks under one identity; connected from the first question on, until `close`."""

    def __init__(self, where: Where, identity: str) -> None:
        self._where = where
        self._identity = identity
        self._held: tuple[Client, AsyncExitStack] | None = None
        self._opening = asyncio.Lock()

    async def ask(self, row: Subject, message: Message, timeout_s: float = ASK_TIMEOUT_S) -> Any:
        """The answer, a `row.reply`. Raises DeskNotReachable and QuestionRefused."""
        client = await self._client()
        try:
            return await client.ask(row, message, timeout_s=timeout_s)
        except DeskNotReachable:
            # A desk that was started anew may be elsewhere: the next question looks for it.
            await self.close()
            raise

    async def close(self) -> None:
        """Let go of the connection, if there is one."""
        held, self._held = self._held, None
        if held is not None:
            await held[1].aclose()

    async def _client(self) -> Client:
        async with self._opening:
            if self._held is None:
                (url, secrets_dir), stack = self._where(), AsyncExitStack()
                opened = open_client(url, secrets_dir, self._identity)
                self._held = await stack.enter_async_context(opened), stack
            return self._held[0]
