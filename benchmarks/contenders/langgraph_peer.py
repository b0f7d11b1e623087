"""LangGraph: a graph of seven instant nodes in a row, with its Postgres checkpointer.

`durability="sync"`: a node starts only when the checkpoint of the node before it is committed, the
promise that the others give too. The state is one integer.

`--mode pool` is what its documentation shows for an application: one saver on a connection pool,
one compiled graph. `--mode savers` is not documented but faster under load: the saver holds a lock
around its connection, so one saver writes one checkpoint at a time whatever its pool holds, and
this mode compiles the graph SAVERS times, each with a saver and a connection of its own.
"""

import importlib.metadata
import itertools
import uuid
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Final, TypedDict

from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.graph import END, START, StateGraph
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool

from benchmarks.contenders import protocol
from benchmarks.contenders.protocol import STEPS, Options, RunCycle

SAVERS: Final = 8
POOL_SIZE: Final = 16
PACKAGES: Final = ("langgraph", "langgraph-checkpoint-postgres", "psycopg")


class State(TypedDict):
    """The whole state of a run."""

    value: int


async def add_one(state: State) -> State:
    return {"value": state["value"] + 1}


def graph_of_seven(saver: AsyncPostgresSaver) -> Any:
    """Compile START -> step_1 -> ... -> step_7 -> END on this saver."""
    names = [f"step_{number}" for number in range(1, STEPS + 1)]
    graph = StateGraph(State)
    for name in names:
        graph.add_node(name, add_one)
    for start, end in itertools.pairwise([START, *names, END]):
        graph.add_edge(start, end)
    return graph.compile(checkpointer=saver)


@asynccontextmanager
async def savers(options: Options) -> AsyncIterator[list[AsyncPostgresSaver]]:
    """Open the savers that the mode asks for."""
    async with AsyncExitStack() as stack:
        if options.mode == "savers":
            connect = AsyncPostgresSaver.from_conn_string
            dsn = options.postgres_dsn
            yield [await stack.enter_async_context(connect(dsn)) for _ in range(SAVERS)]
        else:
            pool = AsyncConnectionPool(
                options.postgres_dsn,
                min_size=POOL_SIZE,
                max_size=POOL_SIZE,
                open=False,
                kwargs={"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row},
            )
            yield [AsyncPostgresSaver(await stack.enter_async_context(pool))]


@asynccontextmanager
async def open_langgraph(options: Options, index: int) -> AsyncIterator[RunCycle]:
    """Compile the graph once a saver; cycles take them in turn."""
    async with savers(options) as opened:
        if index == 0:
            await opened[0].setup()
        graphs = itertools.cycle([graph_of_seven(saver) for saver in opened])

        async def cycle() -> None:
            thread = {"configurable": {"thread_id": str(uuid.uuid4())}}
            state = await next(graphs).ainvoke({"value": 0}, thread, durability="sync")
            if state["value"] != STEPS:
                raise AssertionError("the graph lost a step")

        yield cycle


if __name__ == "__main__":
    protocol.run(
        open_langgraph,
        protocol.parse(modes=("pool", "savers")),
        versions={name: importlib.metadata.version(name) for name in PACKAGES},
    )
