"""Hearing a durable consumer: bounded, without losing a message, whatever the server says."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack
from typing import Any

import pytest
import structlog
from nats.aio.msg import Msg

from contracts.subjects.commands import COMMANDS
from libs.bus.connection import Client
from libs.bus.pull import BATCH_MAX, Pull
from libs.bus.streams import COMMAND_STREAM, Provisioner
from tests.fakes.log_lines import log_lines
from tests.integration.bus.conftest import Connect

ROW = COMMANDS[0]
MANY = 5 * BATCH_MAX
Handle = Callable[[Msg], Coroutine[Any, Any, None]]
Hear = Callable[[Handle, int], Coroutine[Any, Any, Pull]]

pytestmark = pytest.mark.usefixtures("provisioner")


@pytest.fixture
async def service(connected: Connect) -> Client:
    """A connection as the service that the command is for."""
    return await connected(ROW.owner)


@pytest.fixture
async def hear(service: Client) -> AsyncIterator[Hear]:
    """Begins to pull; stops in the end."""
    async with AsyncExitStack() as stack:

        async def begin(handle: Handle, at_once_max: int) -> Pull:
            pull = Pull(service, COMMAND_STREAM, ROW.durable, handle, at_once_max)
            await pull.start()
            running = asyncio.create_task(pull.run())
            stack.push_async_callback(pull.drain, 1.0)
            stack.callback(running.cancel)
            return pull

        yield begin


async def publish(publisher: Client, count: int) -> None:
    for number in range(count):
        await publisher.publish(ROW.address, str(number).encode())
    await publisher.flush()


class Heard:
    """Acknowledges and notes each message; `all` is set once `count` have come."""

    def __init__(self, count: int) -> None:
        self.bodies: list[bytes] = []
        self.all = asyncio.Event()
        self._count = count

    async def __call__(self, message: Msg) -> None:
        await message.ack()
        self.bodies.append(message.data)
        if len(self.bodies) >= self._count:
            self.all.set()


async def test_every_message_is_heard_once_in_order(publisher: Client, hear: Hear) -> None:
    heard = Heard(MANY)
    await publish(publisher, MANY)
    await hear(heard, 64)
    await asyncio.wait_for(heard.all.wait(), 10)
    assert heard.bodies == [str(number).encode() for number in range(MANY)]


async def test_a_message_published_later_is_heard_at_once(publisher: Client, hear: Hear) -> None:
    heard = Heard(1)
    await hear(heard, 64)
    await asyncio.sleep(1.2)  # longer than one request stays open
    loop = asyncio.get_running_loop()
    began = loop.time()
    await publish(publisher, 1)
    await asyncio.wait_for(heard.all.wait(), 5)
    assert loop.time() - began < 0.5


async def test_no_more_are_taken_than_may_be_worked_on(publisher: Client, hear: Hear) -> None:
    working, most, done = 0, 0, Heard(40)

    async def work(message: Msg) -> None:
        nonlocal working, most
        working += 1
        most = max(most, working)
        await asyncio.sleep(0.01)
        working -= 1
        await done(message)

    await publish(publisher, 40)
    await hear(work, 3)
    await asyncio.wait_for(done.all.wait(), 10)
    assert most == 3


async def test_two_that_hear_share_the_work(publisher: Client, hear: Hear) -> None:
    all_done = Heard(40)
    counts = [0, 0]

    def worker(which: int) -> Handle:
        async def work(message: Msg) -> None:
            counts[which] += 1
            await asyncio.sleep(0.02)
            await all_done(message)

        return work

    await hear(worker(0), 2)
    await hear(worker(1), 2)
    await publish(publisher, 40)
    await asyncio.wait_for(all_done.all.wait(), 10)
    assert sum(counts) == 40
    assert min(counts) > 5


async def test_a_handler_that_raises_is_logged_and_its_message_comes_again(
    publisher: Client, hear: Hear, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A logger that an earlier test has used and cached is not captured.
    monkeypatch.setattr("libs.bus.pull.log", structlog.get_logger())
    heard = Heard(1)

    async def fails_first(message: Msg) -> None:
        if message.metadata.num_delivered == 1:
            await message.nak()
            raise ValueError("broken")
        await heard(message)

    with log_lines() as logs:
        await publish(publisher, 1)
        await hear(fails_first, 4)
        await asyncio.wait_for(heard.all.wait(), 10)
    (failed,) = [line for line in logs if line["event"] == "pull.message_failed"]
    assert failed["error"] == "ValueError: broken"


async def test_it_goes_on_when_a_lost_consumer_is_made_again(
    publisher: Client, hear: Hear, connected: Connect, provisioner: Provisioner
) -> None:
    heard = Heard(1)
    await hear(heard, 4)
    manager = (await connected("provisioner")).jsm()
    await manager.delete_consumer(COMMAND_STREAM, ROW.durable)
    await asyncio.sleep(0.3)
    await provisioner.provision()
    await publish(publisher, 1)
    await asyncio.wait_for(heard.all.wait(), 10)


async def test_stopping_lets_the_work_end_and_leaves_the_rest(
    publisher: Client, hear: Hear, service: Client
) -> None:
    begun, done = asyncio.Event(), Heard(1)

    async def work(message: Msg) -> None:
        begun.set()
        await asyncio.sleep(0.2)
        await done(message)

    pull = Pull(service, COMMAND_STREAM, ROW.durable, work, 1)
    await pull.start()
    running = asyncio.create_task(pull.run())
    await publish(publisher, 3)
    await asyncio.wait_for(begun.wait(), 5)
    running.cancel()
    await pull.drain(5.0)
    assert done.bodies == [b"0"]
    rest = Heard(2)
    await hear(rest, 4)
    await asyncio.wait_for(rest.all.wait(), 5)
    assert rest.bodies == [b"1", b"2"]


async def test_what_comes_to_one_who_leaves_does_not_use_up_its_deliveries(
    publisher: Client, hear: Hear, service: Client
) -> None:
    async def never(message: Msg) -> None:
        raise AssertionError(message.data)

    pull = Pull(service, COMMAND_STREAM, ROW.durable, never, BATCH_MAX)
    await pull.start()
    running = asyncio.create_task(pull.run())
    await asyncio.sleep(0.2)  # its request is open
    running.cancel()
    leaving = asyncio.create_task(pull.drain(1.0))
    await asyncio.sleep(0)
    await publish(publisher, 1)
    await leaving
    deliveries = []
    rest = Heard(1)

    async def count(message: Msg) -> None:
        deliveries.append(message.metadata.num_delivered)
        await rest(message)

    await hear(count, 4)
    await asyncio.wait_for(rest.all.wait(), 5)
    assert deliveries[0] <= 2


async def test_while_the_connection_is_down_nothing_is_asked(
    service: Client, hear: Hear, monkeypatch: pytest.MonkeyPatch, publisher: Client
) -> None:
    heard, asked = Heard(1), []
    real = service.publish

    async def publish_noted(subject: str, *args: Any, **more: Any) -> None:
        if ".MSG.NEXT." in subject:
            asked.append(subject)
        await real(subject, *args, **more)

    monkeypatch.setattr(service, "publish", publish_noted)
    monkeypatch.setattr(type(service), "is_connected", False)
    await hear(heard, 4)
    await asyncio.sleep(0.3)
    assert asked == []
    monkeypatch.undo()
    await publish(publisher, 1)
    await asyncio.wait_for(heard.all.wait(), 5)
