"""HEAD: every path that can be read answers it, as GET does but for the body."""

from starlette.types import ASGIApp, Message, Receive, Scope, Send


class Heads:
    """Hands HEAD to `app` as GET, and ends the answer where its body would begin."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return

        async def send_head(message: Message) -> None:
            # What follows is not sent. A stream hears from `receive` that nobody listens.
            if message["type"] == "http.response.start":
                await send(message)
                await send({"type": "http.response.body", "body": b""})

        await self._app({**scope, "method": "GET"}, receive, send_head)
