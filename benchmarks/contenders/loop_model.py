"""The model that all contenders of the loop benchmark ask, in a process of its own.

    python -m benchmarks.contenders.loop_model

It prints its port, and answers until it is killed: three tools a round, five rounds, then the
answer, as JSON or through the tool that the contender offers for it.
"""

import asyncio
import sys

from benchmarks.contenders.loop_task import ANSWER, KEY, ROUNDS, TICKERS, TOOLS
from tests.fakes.model_server import Answer, Asked, ModelServer, model_server
from tests.fakes.wire_formats import Call, Says

OUTPUT_TOOL = "final_result"


def answer(asked: Asked) -> Answer:
    """The reply of the round that a request is in."""
    if asked.tools and asked.round < ROUNDS:
        ticker = TICKERS[asked.round]
        return Says("Let me see.", [Call(tool, {"ticker": ticker}) for tool in TOOLS])
    if OUTPUT_TOOL in asked.tools:
        return Says(calls=[Call(OUTPUT_TOOL, ANSWER.model_dump())])
    bound = {"output_config", "response_format"} & asked.body.keys()
    return Says("That is enough." if asked.tools and not bound else ANSWER.model_dump_json())


async def main() -> None:
    """Serve."""
    server = ModelServer(answer, [KEY])
    async with model_server(server):
        sys.stdout.write(f"{server.port}\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
