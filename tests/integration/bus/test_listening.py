"""Programs that hear events, on a real NATS: nothing missed, nothing twice, all in order."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from nats.aio.msg import Msg

from contracts.audit import Event, EventAt, EventType
from contracts.event_data import EventOf, StepEvent
from contracts.subjects.subject import ORCHESTRATOR
from libs.bus.connection import BusNotReachable, Client
from libs.bus.listening.listener import Listener
from libs.runtime.errors import Unavailable
from libs.runtime.ports import choose_port
from libs.servers.embedded import Servers
from tests.fakes.events import Console, body, headers, step, subject
from tests.fakes.log_lines import log_lines
from tests.integration.bus.conftest import Connect

SOON_S = 20.0


class Ears:
    """What a handler was given, in order."""

    def __init__(self) -> None:
        self.heard: list[int] = []
        self._news = asyncio.Event()
        self.go_on = asyncio.Event()
        self.go_on.set()
        self.errors: list[Exception] = []

    async def take(self, event: Event) -> None:
        if self.errors:
            raise self.errors.pop(0)
        self.heard.append(event.sequence)
        self._news.set()
        await self.go_on.wait()

    async def until(self, number: int) -> list[int]:
        async with asyncio.timeout(SOON_S):
            while number not in self.heard:
                self._news.clear()
                await self._news.wait()
        return self.heard


@pytest.fixture
def ears() -> Ears:
    return Ears()


class Desk:
    """Tells events: on record at once, and heard by whoever hears."""

    def __init__(self, client: Client, console: Console) -> None:
        self._client, self._console = client, console

    async def tell(
        self, *numbers: int, on_record: bool = True, kind: EventType | None = None
    ) -> None:
        for number in numbers:
            placed = step(number, kind or EventType.OPERATION_STARTED)
            if on_record:
                self._console.record.append(placed)
            await self.repeat(placed)

    async def repeat(self, placed: EventAt) -> None:
        await self._client.publish(subject(placed), body(placed), headers=headers(placed))
        await self._client.flush()


@pytest.fixture
async def desk(connected: Connect, console: Console) -> Desk:
    return Desk(await connected(ORCHESTRATOR), console)


def listener(servers: Servers, ears: Ears, **options: Any) -> Listener:
    """A user's program that hears operations begin."""
    program = Listener(servers.nats_url, "user", servers.secrets_dir, **options)

    @program.hears(EventType.OPERATION_STARTED)
    async def on_started(event: EventOf[StepEvent]) -> None:
        assert event.data.step == "plan"
        await ears.take(event)

    return program


@contextlib.asynccontextmanager
async def hearing(program: Listener) -> AsyncIterator[None]:
    async with program.listening():
        async with asyncio.timeout(SOON_S):
            await program.caught_up()
        yield


async def test_live_events_are_heard_in_order_and_other_types_are_not(
    servers: Servers, ears: Ears, desk: Desk
) -> None:
    async with hearing(listener(servers, ears)):
        await desk.tell(1, 2)
        await desk.tell(3, kind=EventType.OPERATION_COMPLETED)
        await desk.tell(4)
        assert await ears.until(4) == [1, 2, 4]


async def test_an_event_that_asks_for_an_answer_gets_none(
    servers: Servers, ears: Ears, desk: Desk, connected: Connect
) -> None:
    asking = await connected(ORCHESTRATOR)
    answers: list[bytes] = []

    async def on_answer(message: Msg) -> None:
        answers.append(message.data)

    inbox = asking.new_inbox()
    await asking.subscribe(inbox, cb=on_answer)
    with log_lines() as lines:
        async with hearing(listener(servers, ears)):
            placed = step(1)
            await asking.publish(subject(placed), body(placed), inbox, headers(placed))
            await asking.flush()
            await desk.tell(2)
            await ears.until(2)
    assert answers == []
    assert "bus.error" not in {line["event"] for line in lines}


async def test_what_was_told_before_is_heard_first_as_far_back_as_is_wanted(
    servers: Servers, ears: Ears, desk: Desk, console: Console
) -> None:
    console.limit = 2
    await desk.tell(*range(1, 10))
    async with hearing(listener(servers, ears, back=6)):
        await desk.tell(10)
        assert await ears.until(10) == [4, 5, 6, 7, 8, 9, 10]


async def test_a_program_goes_on_after_a_restart_where_it_was(
    servers: Servers, ears: Ears, desk: Desk, tmp_path: Path
) -> None:
    async with hearing(listener(servers, ears, positions=tmp_path / "p")):
        await desk.tell(1)
        await ears.until(1)
    await desk.tell(2, 3)
    async with hearing(listener(servers, ears, positions=tmp_path / "p")):
        await desk.tell(4)
        assert await ears.until(4) == [1, 2, 3, 4]


async def test_a_repeated_event_is_heard_once(
    servers: Servers, ears: Ears, desk: Desk, console: Console
) -> None:
    async with hearing(listener(servers, ears)):
        await desk.tell(1, 2)
        for placed in console.record:
            await desk.repeat(placed)
        await desk.tell(3)
        assert await ears.until(3) == [1, 2, 3]


async def test_an_event_whose_live_message_was_lost_is_heard_in_its_place(
    servers: Servers, ears: Ears, desk: Desk, console: Console
) -> None:
    async with hearing(listener(servers, ears)):
        await desk.tell(1)
        await ears.until(1)
        console.record.append(step(2))  # no live message tells of it
        await desk.tell(3)
        assert await ears.until(3) == [1, 2, 3]
        console.record.append(step(4))
        assert await ears.until(4) == [1, 2, 3, 4], "by the poll"


async def test_what_happened_while_the_connection_was_broken_is_heard(
    servers: Servers, ears: Ears, desk: Desk, console: Console
) -> None:
    program = listener(servers, ears)
    async with hearing(program):
        await desk.tell(1)
        await ears.until(1)
        live: Any = program.broker.config.connection_state.connection
        live._transport.close()
        await desk.tell(2)
        await desk.tell(3)
        assert await ears.until(3) == [1, 2, 3]


async def test_what_comes_waits_while_the_console_is_away(
    servers: Servers, ears: Ears, desk: Desk, console: Console
) -> None:
    await desk.tell(1)
    console.away = True
    async with listener(servers, ears, back=2).listening():
        await desk.tell(2)
        await console.was_asked(1, SOON_S)
        assert ears.heard == []
        console.away = False
        assert await ears.until(2) == [1, 2]


async def test_restored_tables_are_read_anew(
    servers: Servers, ears: Ears, desk: Desk, console: Console
) -> None:
    async with hearing(listener(servers, ears)):
        await desk.tell(51, 52)
        await ears.until(52)
        console.restored = console.record = [*map(step, (11, 12))]
        await desk.repeat(console.record[-1])
        assert await ears.until(12) == [51, 52, 11, 12]


async def test_a_handlers_outage_is_waited_for(servers: Servers, ears: Ears, desk: Desk) -> None:
    ears.errors = [Unavailable("its database is away")] * 2
    async with hearing(listener(servers, ears)):
        await desk.tell(1, 2)
        assert await ears.until(2) == [1, 2]


async def test_a_handlers_defect_ends_the_program_and_the_event_comes_again(
    servers: Servers, ears: Ears, desk: Desk, tmp_path: Path
) -> None:
    async with hearing(listener(servers, ears, positions=tmp_path)):
        await desk.tell(1)
        await ears.until(1)
    ears.errors = [ZeroDivisionError("a defect")]
    program = listener(servers, ears, positions=tmp_path)
    async with hearing(program):
        await desk.tell(2, 3)
        async with asyncio.timeout(SOON_S):
            await program.lost.wait()
    assert isinstance(program.failure, ZeroDivisionError)
    async with hearing(listener(servers, ears, positions=tmp_path)):
        assert await ears.until(3) == [1, 2, 3]


async def test_the_event_in_hand_ends_when_the_program_stops_and_the_next_is_left(
    servers: Servers, ears: Ears, desk: Desk, tmp_path: Path
) -> None:
    program = listener(servers, ears, positions=tmp_path)
    ears.go_on.clear()
    async with contextlib.AsyncExitStack() as stack:
        await stack.enter_async_context(hearing(program))
        await desk.tell(1, 2)
        await ears.until(1)
        stopping = asyncio.create_task(stack.pop_all().aclose())
        await asyncio.sleep(0)
        ears.go_on.set()
        await stopping
    assert ears.heard == [1]
    async with hearing(listener(servers, ears, positions=tmp_path)):
        assert await ears.until(2) == [1, 2]


async def test_nobody_at_the_address_is_told_at_once(servers: Servers, ears: Ears) -> None:
    program = Listener(f"nats://127.0.0.1:{choose_port(None, set())}", "user", servers.secrets_dir)
    program.hears(EventType.DECISION)(ears.take)
    with pytest.raises(BusNotReachable):
        async with program.listening():
            pass
