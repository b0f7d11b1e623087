"""Wiring of the MCP server, over standard input and output or over HTTP."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from mcp.server.transport_security import TransportSecuritySettings

from contracts.subjects.subject import MCP, MCP_REQUESTER
from libs.bus.desk_link import DeskLink, ProposerLinks, Where
from libs.market.sources import latest_session_of, market_of
from libs.runtime.http_address import HttpAddress
from libs.runtime.proposers import Proposers
from libs.runtime.settings import Settings
from libs.web.post_only import PostOnly
from libs.web.proposer import Named, ProposerTokens
from libs.web.server import serving
from services.mcp_server.proposals import INSTRUCTIONS, caller_of, proposal_tools
from services.mcp_server.server import DeskServer
from services.mcp_server.tools import tools_of

PATH = "/mcp"
REQUEST_S_MAX = 90.0
"""A live market source takes its time."""
BODY_BYTES_MAX = 65_536
"""The largest request of a tool has a tenth of this; read as JSON it takes up to fifteen times as
much memory."""


async def over_stdio(
    settings: Settings,
    where: Where,
    *,
    may_request: bool,
    ready: Callable[[], None],
    proposer_token: str | None = None,
) -> None:
    """Serve the process that started this one, until its input ends; `ready` is called first. With
    a `proposer_token` it offers that proposer's tools and no others."""
    async with _server(settings, where, may_request, proposer_token) as server:
        ready()
        await server.run_stdio_async()


async def over_http(
    settings: Settings,
    where: Where,
    *,
    address: HttpAddress,
    may_request: bool,
    ready: Callable[[], None],
    proposer_token: str | None = None,
) -> None:
    """Serve at the address until this is cancelled; `ready` is called once it listens. With a
    `proposer_token`, which is empty, it offers proposers their tools and nothing to anybody else:
    each request bears the token of its own. Raises `HttpRefused`."""
    async with _server(settings, where, may_request, proposer_token) as server:
        app = server.streamable_http_app(
            streamable_http_path=PATH,
            json_response=True,
            stateless_http=True,
            # The guard before it looks at Host and Origin.
            transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        )
        tokens = None
        if proposer_token is not None:
            tokens = ProposerTokens(Proposers(settings.secrets_path), (PATH,))
        async with serving(
            PostOnly(app if tokens is None else Named(app)),
            address,
            proposers=tokens,
            request_s_max=REQUEST_S_MAX,
            lifespan=True,
            body_bytes_max=BODY_BYTES_MAX,
        ):
            ready()
            await asyncio.Event().wait()


@asynccontextmanager
async def _server(
    settings: Settings, where: Where, may_request: bool, proposer_token: str | None
) -> AsyncIterator[DeskServer]:
    if proposer_token is not None:
        links = ProposerLinks(where)
        caller = caller_of(Proposers(settings.secrets_path), proposer_token)
        try:
            yield DeskServer(proposal_tools(links, caller), INSTRUCTIONS)
        finally:
            await links.close()
        return
    desk = DeskLink(where, MCP_REQUESTER if may_request else MCP)
    market, latest = market_of(settings), latest_session_of(settings)
    try:
        yield DeskServer(tools_of(desk, market, latest, settings, may_request=may_request))
    finally:
        await desk.close()
