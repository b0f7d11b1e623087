"""What hearing an event costs: `python -m benchmarks.listening [--rounds 3] [--messages 10000]`.

One embedded NATS. For each contender a process of its own, with the key that it would have, is
given the same events: from a durable consumer that holds them all, or live in one burst that fits
into its memory. Counted are the events a second from the first to the last one, and the CPU time of
that process alone, decoding to `Event` and acknowledging included; the handlers do nothing.
Contenders take turns in every round. Linux only.
"""

import argparse
import asyncio
import contextlib
import json
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from uuid import UUID, uuid4

from faststream import AckPolicy
from faststream.nats import JStream, NatsBroker, NatsMessage, PullSub
from faststream.nats.security import NatsNKey
from nats.aio.msg import Msg

from benchmarks.report import Run, spread, table
from benchmarks.servers import temporary_folder
from contracts.audit import Event, EventsPage, EventType
from contracts.event_data import EventOf, StepEvent
from contracts.position import BEGINNING, Position
from contracts.subjects.commands import COMMANDS, WRITE_REPORT
from contracts.subjects.events import EVENTS, EVENTS_SINCE
from contracts.subjects.subject import ORCHESTRATOR, WEB
from libs.bus.client import open_client
from libs.bus.codec import decode, encode
from libs.bus.connection import Client, connect, inbox_prefix
from libs.bus.headers import POSITION_HEADER
from libs.bus.listening.listener import AT_ONCE_MAX, Delivery, Listener
from libs.bus.permissions import PROVISIONER, permissions
from libs.bus.pull import Pull
from libs.bus.streams import COMMAND_STREAM, Provisioner
from libs.keys.credentials import nkey_seed_path
from libs.postgres.pool import OWNER_ROLE, ROLES
from libs.runtime.loop import run
from libs.servers.embedded import Servers, embedded_servers

CONTENDER_S_MAX: Final = 120.0
MESSAGES: Final = 10_000
"""Fewer than wait in the memory of any contender."""
CYCLE: Final = UUID(int=1)
(STARTED,) = (row for row in EVENTS if row.what == EventType.OPERATION_STARTED)
PULLER: Final = WRITE_REPORT.owner
USER: Final = "user"


class Count:
    """Counts events up to the last one."""

    def __init__(self, messages: int) -> None:
        self._left = messages
        self.began = 0.0
        self.seconds = 0.0
        self.cpu_s = time.process_time()
        self.done = asyncio.Event()

    def one(self) -> None:
        """Another event has been dealt with."""
        if not self.began:
            self.began = time.monotonic()
        self._left -= 1
        if not self._left:
            self.seconds = time.monotonic() - self.began
            self.cpu_s = time.process_time() - self.cpu_s
            self.done.set()


Hearing = Callable[[str, Path, Count, AsyncExitStack], Awaitable[None]]


async def pull(url: str, secrets: Path, count: Count, stack: AsyncExitStack) -> None:
    """libs.bus.pull: what the services of the desk hear commands with."""
    client = await connect(url, PULLER, secrets)
    stack.push_async_callback(client.close)

    async def on_message(message: Msg) -> None:
        decode(Event, message.data)
        await message.ack()
        count.one()

    hearing = Pull(client, COMMAND_STREAM, WRITE_REPORT.durable, on_message, AT_ONCE_MAX)
    await hearing.start()
    pulling = asyncio.create_task(hearing.run())
    stack.callback(pulling.cancel)


async def listener_pulls(url: str, secrets: Path, count: Count, stack: AsyncExitStack) -> None:
    """libs.bus.listening over a durable: FastStream's handling, libs.bus.pull's reading."""
    listener = Listener(url, PULLER, secrets)

    @listener.pulls(COMMAND_STREAM, WRITE_REPORT.durable)
    async def on_event(_event: Event, delivery: Delivery) -> None:
        await delivery.ack()
        count.one()

    await stack.enter_async_context(listener.listening())


async def faststream_pulls(url: str, secrets: Path, count: Count, stack: AsyncExitStack) -> None:
    """FastStream as it is: its own fetch, its own types."""
    broker = _broker(url, secrets, PULLER)

    @broker.subscriber(
        WRITE_REPORT.address,
        stream=JStream(COMMAND_STREAM, declare=False),
        durable=WRITE_REPORT.durable,
        pull_sub=PullSub(batch_size=AT_ONCE_MAX, timeout=1),
        # Beside a broker's own it ends with a dot, and nothing arrives without.
        inbox_prefix=f"{inbox_prefix(PULLER)}.".encode(),
        ack_policy=AckPolicy.MANUAL,
        no_reply=True,
    )
    async def on_event(_event: Event, message: NatsMessage) -> None:
        await message.ack()
        count.one()

    await _started(broker, stack)


async def client(url: str, secrets: Path, count: Count, stack: AsyncExitStack) -> None:
    """libs.bus.client: what `deskbus tail` hears with; it knows no repeats and no gaps."""
    desk = await stack.enter_async_context(open_client(url, secrets, USER))
    events = await stack.enter_async_context(desk.events(pattern=STARTED.by("*")))

    async def hear() -> None:
        async for _ in events:
            count.one()

    hearing = asyncio.create_task(hear())
    stack.callback(hearing.cancel)


async def listener_hears(url: str, secrets: Path, count: Count, stack: AsyncExitStack) -> None:
    """libs.bus.listening, live: typed data, in order, each once."""
    listener = Listener(url, USER, secrets)

    @listener.hears(EventType.OPERATION_STARTED)
    async def on_started(_event: EventOf[StepEvent]) -> None:
        count.one()

    await stack.enter_async_context(listener.listening())
    await listener.caught_up()


async def faststream_hears(url: str, secrets: Path, count: Count, stack: AsyncExitStack) -> None:
    """FastStream as it is, live: neither repeats nor gaps are known."""
    broker = _broker(url, secrets, USER)

    @broker.subscriber(STARTED.by("*"), no_reply=True)
    async def on_started(_event: EventOf[StepEvent]) -> None:
        count.one()

    await _started(broker, stack)


def _broker(url: str, secrets: Path, identity: str) -> NatsBroker:
    security = NatsNKey.from_file(str(nkey_seed_path(secrets, identity)))
    return NatsBroker(url, security=security, inbox_prefix=inbox_prefix(identity), logger=None)


async def _started(broker: NatsBroker, stack: AsyncExitStack) -> None:
    await broker.start()
    stack.push_async_callback(broker.stop)


DURABLE: Final[dict[str, Hearing]] = {
    "durable, libs.bus.pull": pull,
    "durable, Listener.pulls": listener_pulls,
    "durable, FastStream alone": faststream_pulls,
}
LIVE: Final[dict[str, Hearing]] = {
    "live, libs.bus.client": client,
    "live, Listener.hears": listener_hears,
    "live, FastStream alone": faststream_hears,
}
CONTENDERS: Final = DURABLE | LIVE


async def hear(name: str, url: str, secrets: Path, messages: int) -> None:
    """The contender's process: say when it hears, then what it took."""
    async with AsyncExitStack() as stack:
        count = Count(messages)
        await CONTENDERS[name](url, secrets, count, stack)
        print("ready", flush=True)
        await count.done.wait()
        result = {"per_s": messages / count.seconds, "us": count.cpu_s / messages * 1e6}
        print(json.dumps(result), flush=True)


def _event(number: int) -> tuple[bytes, dict[str, str]]:
    event = Event(
        event_id=uuid4(),
        sequence=number,
        type=EventType.OPERATION_STARTED,
        owner=ORCHESTRATOR,
        cycle_id=CYCLE,
        at=datetime.now(UTC),
        data={"step": "plan"},
    )
    headers = {
        POSITION_HEADER: str(Position.behind(number, number, event.event_id)),
        "ce-type": f"desk.{event.type}",
    }
    return encode(event), headers


async def _put(desk: Client, subject: str, messages: int) -> None:
    for number in range(1, messages + 1):
        body, headers = _event(number)
        await desk.publish(subject, body, headers=headers)
    await desk.flush()


async def one(name: str, servers: Servers, desk: Client, messages: int) -> Run:
    """One contender's figures, in a process of its own."""
    if name in DURABLE:
        await _put(desk, WRITE_REPORT.address, messages)
    given = ("-m", "benchmarks.listening", "--hear", name, "--messages", str(messages))
    where = ("--url", servers.nats_url, "--secrets", str(servers.secrets_dir))
    child = await asyncio.create_subprocess_exec(
        sys.executable, *given, *where, stdout=asyncio.subprocess.PIPE
    )
    assert child.stdout is not None
    try:
        async with asyncio.timeout(CONTENDER_S_MAX):
            await child.stdout.readline()
            if name in LIVE:
                await _put(desk, STARTED.by(str(CYCLE)), messages)
            result: Run = json.loads(await child.stdout.readline())
            await child.wait()
    finally:
        with contextlib.suppress(ProcessLookupError):
            child.kill()
    return result


async def measure(rounds: int, messages: int) -> list[dict[str, Run]]:
    """All rounds, contenders taking turns."""
    with temporary_folder() as folder:
        async with (
            embedded_servers(
                folder / "desk", permissions(), ROLES, database_owner=OWNER_ROLE
            ) as servers,
            AsyncExitStack() as stack,
        ):

            async def connected(identity: str) -> Client:
                opened = await connect(servers.nats_url, identity, servers.secrets_dir)
                stack.push_async_callback(opened.close)
                return opened

            await Provisioner(await connected(PROVISIONER), COMMANDS).provision()
            console, desk = await connected(WEB), await connected(ORCHESTRATOR)
            nothing = encode(EventsPage(position=str(BEGINNING)))

            async def answer(question: Msg) -> None:
                await console.publish(question.reply, nothing)

            await console.subscribe(f"{EVENTS_SINCE.address}.*", cb=answer)
            await console.flush()
            return [
                {name: await one(name, servers, desk, messages) for name in CONTENDERS}
                for _ in range(rounds)
            ]


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.listening", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--messages", type=int, default=MESSAGES)
    for hidden in ("--hear", "--url"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    parser.add_argument("--secrets", type=Path, help=argparse.SUPPRESS)
    given: Any = parser.parse_args()
    if given.hear:
        run(hear(given.hear, given.url, given.secrets, given.messages))
        return
    rounds = asyncio.run(measure(given.rounds, given.messages))
    columns = {"events/s": "per_s", "CPU us an event": "us"}
    rows = [
        [name, *(spread(round_[name][key] for round_ in rounds) for key in columns.values())]
        for name in CONTENDERS
    ]
    print(table(["heard by", *columns], rows))


if __name__ == "__main__":
    main()
