"""A server that only takes requests: nothing is read with GET, nothing is streamed."""

from http import HTTPStatus

from starlette.types import ASGIApp, Receive, Scope, Send

from libs.web.problem import HttpProblem


class PostOnly:
    """Refuses every method but POST with 405.

    For MCP without sessions: a GET would open a stream that never says anything and holds its
    connection for ever, and a DELETE has nothing to end.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] == "http" and scope["method"] != "POST":
            text = "there are no sessions and no streams here: send POST"
            refused = HttpProblem(
                HTTPStatus.METHOD_NOT_ALLOWED, "method_not_allowed", text, headers={"Allow": "POST"}
            )
            await refused.response(scope, receive, send)
            return
        await self._app(scope, receive, send)
