"""The MCP server's connection to the desk, which several tool calls share."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from contracts.cycle_query import CyclesPage, CyclesQuery
from contracts.subjects.cycles import CYCLES
from libs.bus import desk_link as module
from libs.bus.client import DeskNotReachable
from libs.bus.desk_link import DeskLink


@dataclass
class Network:
    """The connections in the order of their opening; `heard` has one item for each question."""

    opened: list["Connection"] = field(default_factory=list)
    heard: "asyncio.Queue[None]" = field(default_factory=asyncio.Queue)

    @asynccontextmanager
    async def open_client(self, *_: object, reconnects: bool) -> AsyncIterator["Connection"]:
        assert not reconnects
        made = Connection(self.heard)
        self.opened.append(made)
        yield made
        made.closed = True

    @property
    def closed(self) -> list[bool]:
        return [each.closed for each in self.opened]


@dataclass
class Connection:
    """Answers a question once it is told to, or says that nobody does."""

    heard: "asyncio.Queue[None]"
    asked: list["asyncio.Future[CyclesPage]"] = field(default_factory=list)
    closed: bool = False
    is_closed: bool = False

    async def ask(self, *_: Any, timeout_s: float) -> CyclesPage:
        self.asked.append(asyncio.get_running_loop().create_future())
        self.heard.put_nowait(None)
        return await self.asked[-1]


@pytest.fixture
def network(monkeypatch: pytest.MonkeyPatch) -> Network:
    made = Network()
    monkeypatch.setattr(module, "open_client", made.open_client)
    return made


async def asking(desk: DeskLink, network: Network) -> "asyncio.Task[CyclesPage]":
    """A question that waits for its answer."""
    task = asyncio.create_task(desk.ask(CYCLES, CyclesQuery()))
    await network.heard.get()
    return task


def a_desk() -> DeskLink:
    return DeskLink(lambda: ("nats://nowhere", Path("none")), "mcp")


async def test_questions_share_a_connection_that_closing_the_desk_closes(
    network: Network,
) -> None:
    desk = a_desk()
    for _ in range(2):
        task = await asking(desk, network)
        network.opened[0].asked[-1].set_result(CyclesPage())
        assert await task == CyclesPage()
    assert network.closed == [False]
    await desk.close()
    assert network.closed == [True]


async def test_a_connection_that_broke_is_left_and_the_next_question_opens_another(
    network: Network,
) -> None:
    desk = a_desk()
    for number in range(2):
        task = await asking(desk, network)
        network.opened[number].asked[0].set_result(CyclesPage())
        await task
        network.opened[number].is_closed = True
    assert network.closed == [True, False]
    await desk.close()


async def test_a_question_that_nobody_answers_takes_no_answer_from_others(
    network: Network,
) -> None:
    desk = a_desk()
    slow, lost = await asking(desk, network), await asking(desk, network)
    network.opened[0].asked[1].set_exception(DeskNotReachable("nobody"))
    with pytest.raises(DeskNotReachable):
        await lost
    assert network.closed == [False]

    network.opened[0].asked[0].set_result(CyclesPage())
    assert await slow == CyclesPage()
    assert network.closed == [True]


async def test_a_late_failure_on_an_old_connection_leaves_the_new_one_open(
    network: Network,
) -> None:
    desk = a_desk()
    slow, lost = await asking(desk, network), await asking(desk, network)
    network.opened[0].asked[1].set_exception(DeskNotReachable("nobody"))
    await asyncio.gather(lost, return_exceptions=True)
    fresh = await asking(desk, network)
    network.opened[0].asked[0].set_exception(DeskNotReachable("nobody"))
    await asyncio.gather(slow, return_exceptions=True)

    assert network.closed == [True, False]
    network.opened[1].asked[0].set_result(CyclesPage())
    assert await fresh == CyclesPage()
    await desk.close()
