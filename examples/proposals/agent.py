"""A scripted agent: it proposes one trade over MCP, and knows nothing of Deskbus but four tools.

Started by run.py. It uses the plain MCP SDK, as any agent of another vendor would; a model would
stand where THESIS does.
"""

import asyncio
import json
import os
import sys

from mcp import Client
from mcp.client.stdio import StdioServerParameters

THESIS = {
    "ticker": "AAPL",
    "action": "buy",
    "allocation_pct": "80",
    "confidence": 0.5,
    "reason": "It has risen for a year. I want most of the account in it.",
}
"""Far more than the rules of the desk let through."""


async def told(client: Client, tool: str, **arguments: object) -> dict[str, object]:
    """The answer of a tool. Raises RuntimeError where it says no."""
    result = await client.call_tool(tool, arguments)
    if result.is_error or result.structured_content is None:
        raise RuntimeError(f"{tool}: {result.content}")
    return dict(result.structured_content)


async def main(act: str, proposal_id: str) -> None:
    """Propose, or look at what became of it; writes the desk's answer as JSON."""
    # The SDK passes few variables on; the desk's server needs its data directory and the token.
    server = StdioServerParameters(
        command=sys.executable, args=["-m", "services.cli", "mcp", "--propose"], env={**os.environ}
    )
    async with Client(server) as client:
        if act == "propose":
            limits = await told(client, "get_limits")
            shown = await told(client, "preview_proposal", proposal_id=proposal_id, picks=[THESIS])
            await told(client, "propose_trades", proposal_id=proposal_id, picks=[THESIS])
            answer = {"limits": limits, "preview": shown}
        else:
            answer = await told(client, "get_proposal", proposal_id=proposal_id)
    sys.stdout.write(f"{json.dumps(answer)}\n")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:3]))
