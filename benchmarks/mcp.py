"""How soon `check_exit_signals` answers over MCP: `python -m benchmarks.mcp`.

One desk as `deskbus up` starts it, on the bundled prices, with an account that holds one ticker;
`deskbus mcp` and `deskbus mcp --http` as processes of their own, and the official SDK's client. One
call after the other; what is timed is the whole call, as a model's host waits for it.
"""

import argparse
import asyncio
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from datetime import date
from pathlib import Path
from typing import Final
from uuid import uuid4

import httpx2
from mcp import Client as McpClient
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from benchmarks.report import table
from benchmarks.strategy import PATIENCE_S, desk
from contracts.audit import EventType
from contracts.cycle import CycleRequest
from contracts.message import Pipeline
from contracts.subjects.cycles import REQUEST_CYCLE
from libs.bus.client import open_client

CALLS_DEFAULT: Final = 200
WARM_UP: Final = 20
TICKER: Final = "AAPL"
BOUGHT: Final = date(2012, 6, 29)
NEXT: Final = date(2012, 10, 31)
TOOL: Final = "check_exit_signals"
COMMAND: Final = (sys.executable, "-m", "services.cli", "mcp")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=CALLS_DEFAULT)
    calls = parser.parse_args().calls
    with desk() as (ready, _):
        print(asyncio.run(measured(ready, calls)))


async def measured(ready: Mapping[str, str], calls: int) -> str:
    """The table, as Markdown."""
    account = f"bench-{uuid4().hex[:8]}"
    await _buy(ready, account)
    ways = {"stdio": over_stdio(ready), "HTTP": over_http(ready)}
    rows = []
    for name, way in ways.items():
        async with way as client:
            taken = sorted(
                [await _timed(client, account) for _ in range(WARM_UP + calls)][WARM_UP:]
            )
        figures = (statistics.median(taken), taken[math.ceil(0.99 * calls) - 1], taken[-1])
        rows.append((f"{TOOL} by {name}, {calls} calls", *(f"{each:.1f}" for each in figures)))
    return table(("call", "p50 ms", "p99 ms", "longest ms"), rows)


async def _buy(ready: Mapping[str, str], account: str) -> None:
    """An account with a position, and a later session, so that there is something to check."""
    pipelines = (Pipeline(name="rules", provider="rules", account=account),)
    async with open_client(ready["nats_url"], Path(ready["secrets_dir"])) as client:
        for session, universe in ((BOUGHT, (TICKER,)), (NEXT, ("IBM",))):
            request = CycleRequest(
                idempotency_key=uuid4().hex,
                as_of=session,
                universe=universe,
                pipelines=pipelines,
            )
            pattern = f"desk.v1.evt.*.{EventType.CYCLE_ENDED}.*"
            async with client.events(pattern=pattern) as events:
                answer = await client.ask(REQUEST_CYCLE, request)
                async with asyncio.timeout(PATIENCE_S):
                    async for event in events:
                        if event.cycle_id == answer.cycle_id:
                            break


async def _timed(client: McpClient, account: str) -> float:
    since = time.perf_counter()
    answer = await client.call_tool(TOOL, {"ticker": TICKER, "account": account})
    taken_ms = (time.perf_counter() - since) * 1000
    if answer.is_error:
        raise RuntimeError(f"{TOOL} failed: {answer.content}")
    return taken_ms


def over_stdio(ready: Mapping[str, str]) -> AbstractAsyncContextManager[McpClient]:
    """A client of a server of its own."""
    command, *arguments = COMMAND
    server = StdioServerParameters(command=command, args=arguments, env=_environment(ready))
    return McpClient(server)


@asynccontextmanager
async def over_http(ready: Mapping[str, str]) -> AsyncIterator[McpClient]:
    """A client of a server that listens on loopback, with its token."""
    with listening(ready) as (url, token):
        bearer = {"Authorization": f"Bearer {token}"}
        async with (
            httpx2.AsyncClient(headers=bearer, timeout=PATIENCE_S) as web,
            McpClient(streamable_http_client(url, http_client=web)) as client,
        ):
            yield client


@contextmanager
def listening(ready: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """`deskbus mcp --http`: its address and token, as it tells them."""
    with tempfile.TemporaryDirectory(prefix="mcp-") as folder:
        argv = (*COMMAND, "--http", "--port", "0")
        process = subprocess.Popen(
            argv, env=_environment(ready), cwd=folder, stderr=subprocess.PIPE, text=True
        )
        try:
            if process.stderr is None:
                raise RuntimeError("the server was started without a pipe")
            url = process.stderr.readline().split()[2]  # "MCP at URL"
            token = Path(process.stderr.readline().split(maxsplit=1)[1].strip())
            yield url, token.read_text(encoding="utf-8").strip()
        finally:
            process.terminate()
            process.wait(PATIENCE_S)


def _environment(ready: Mapping[str, str]) -> dict[str, str]:
    data = str(Path(ready["secrets_dir"]).parent)
    return {**os.environ, "DESKBUS_DATA_DIR": data, "DESKBUS_LOG_LEVEL": "error"}


if __name__ == "__main__":
    main()
