"""Answers that go on: server-sent events, with bounds of their own in place of a request's."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AbstractContextManager, aclosing

import structlog
from starlette.responses import StreamingResponse
from starlette.types import Message, Receive, Scope, Send

EVENT_STREAM = "text/event-stream"
SEND_S_MAX = 30.0
"""How long a client may take for one frame; then it is cut off, and may come again."""

log = structlog.get_logger()


class StreamEnded(Exception):
    """Raised where a frame would be sent: the stream may not go on, as its words say."""


class EventStream(StreamingResponse):
    """Sends frames as they come, while the client holds its `seat`.

    Entering the seat may raise `HttpProblem`: then that is the answer.
    """

    media_type = EVENT_STREAM

    def __init__(
        self, frames: AsyncGenerator[bytes, None], seat: AbstractContextManager[None]
    ) -> None:
        # Proxies are asked to pass frames on at once.
        super().__init__(frames, headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        self._frames = frames
        self._seat = seat

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send until the frames end or the client is gone."""
        async with aclosing(self._frames):
            with self._seat:
                await super().__call__(scope, receive, send)

    async def stream_response(self, send: Send) -> None:
        """Send every frame in time while the stream may go on; else leave the answer unended, which
        closes the connection."""

        async def in_time(message: Message) -> None:
            async with asyncio.timeout(SEND_S_MAX):
                await send(message)

        try:
            await super().stream_response(in_time)
        except TimeoutError:
            log.info("http.stream_cut", seconds=SEND_S_MAX)
        except StreamEnded as ended:
            log.info("http.stream_ended", why=str(ended))
