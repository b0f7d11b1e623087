"""Watching a process over HTTP: `/metrics`, `/livez`, `/readyz`; and what is counted of HTTP."""

import asyncio
import time
from http import HTTPStatus

from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from libs.telemetry import metrics, readiness
from libs.telemetry.metric import EXPOSITION_TYPE, exposition

METRICS, LIVE, READY = "/metrics", "/livez", "/readyz"
FRESH_S = 1.0
"""Two who scrape at the same time get the same figures."""
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
UNMATCHED = "unmatched"


class Watched:
    """Answers the three paths, and hands everything else to `app`.

    `/livez` is answered where the event loop turns, and that is all it says. `/readyz` is 503 with
    what is wrong while a check of this process fails.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._sampling = asyncio.Lock()
        self._sampled_at = 0.0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        path = scope["path"] if scope["type"] == "http" and scope["method"] == "GET" else ""
        if path == METRICS:
            await (await self._metrics())(scope, receive, send)
        elif path == LIVE:
            await PlainTextResponse("ok\n")(scope, receive, send)
        elif path == READY:
            await (await _ready())(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _metrics(self) -> Response:
        async with self._sampling:
            if time.monotonic() - self._sampled_at > FRESH_S:
                await readiness.sample()
                self._sampled_at = time.monotonic()
        return Response(exposition(), media_type=EXPOSITION_TYPE)


async def _ready() -> Response:
    wrong = await readiness.problems()
    if not wrong:
        return PlainTextResponse("ok\n")
    text = "".join(f"{name}: {why}\n" for name, why in wrong.items())
    return PlainTextResponse(text, HTTPStatus.SERVICE_UNAVAILABLE)


async def nothing_else(scope: Scope, receive: Receive, send: Send) -> None:
    """The application of a port that is only watched."""
    text = f"there are {METRICS}, {LIVE} and {READY} here\n"
    await PlainTextResponse(text, HTTPStatus.NOT_FOUND)(scope, receive, send)


class Measured:
    """Counts requests by the route that took them, and the time until their answer began."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()

        async def measure(message: Message) -> None:
            if message["type"] == "http.response.start":
                route = _route(scope)
                method = scope["method"] if scope["method"] in METHODS else "other"
                metrics.HTTP.add(route, method, str(message["status"]))
                metrics.HTTP_SECONDS.observe(time.perf_counter() - began, route)
            await send(message)

        await self._app(scope, receive, measure)


def _route(scope: Scope) -> str:
    """The template of the path that the router took; a path that none took is no label."""
    path: str = scope["path"]
    if path in {METRICS, LIVE, READY}:
        return path
    if "endpoint" not in scope:
        return UNMATCHED
    if scope.get("root_path"):
        return f"{scope['root_path']}/*"
    names = {str(value): name for name, value in scope.get("path_params", {}).items()}
    return "/".join(f"{{{names[part]}}}" if part in names else part for part in path.split("/"))
