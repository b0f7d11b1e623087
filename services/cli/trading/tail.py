"""`deskbus tail`: events as they happen."""

import asyncio
import sys
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Annotated
from uuid import UUID

import typer

from contracts.audit import Event, EventsAfter, EventType, fits
from contracts.subjects.events import EVENTS_AFTER
from libs.bus.client import Client
from libs.bus.event_types import require_known
from libs.report import events
from services.cli.render import event_line
from services.cli.shell.newest import cycle_named
from services.cli.shell.options import JsonOption, group
from services.cli.shell.running import with_desk
from services.cli.shell.terminal import aside, out, painter

BATCH_EVERY_S = 0.05
"""Lines are written together this often: one write for a hundred lines is as cheap as for one."""
WAITING_MAX = 10_000
CYCLES_KNOWN_MAX = 10_000

app = group()


@dataclass(frozen=True)
class TailFilter:
    """Which events, how many of them, and how they are written."""

    pattern: str
    errors: bool
    limit: int | None
    json: bool

    def takes(self, event: Event) -> bool:
        """Whether the event is to be shown."""
        if self.errors and not events.is_failure(event):
            return False
        return fits(self.pattern, event.owner, event.type)


@dataclass
class Sequences:
    """The last number seen of each cycle: tells repeats and gaps."""

    _last: OrderedDict[UUID, int] = field(default_factory=OrderedDict)

    def gap_before(self, event: Event) -> int | None:
        """How many events are missing before this one; None where it was seen already."""
        last = self._last.pop(event.cycle_id, None)
        self._last[event.cycle_id] = max(event.sequence, last or 0)
        if len(self._last) > CYCLES_KNOWN_MAX:
            self._last.popitem(last=False)
        if last is None:
            return 0
        return None if event.sequence <= last else event.sequence - last - 1


@app.command()
def tail(
    pattern: Annotated[
        str,
        typer.Argument(help="Event types: decision, 'order_*', 'execution.*'. All by default."),
    ] = "*",
    cycle: Annotated[
        str | None,
        typer.Option(help="Only this cycle, from its first event: an id, or `last`."),
    ] = None,
    errors: Annotated[bool, typer.Option("--errors", help="Only failures.")] = False,
    limit: Annotated[
        int | None, typer.Option("--limit", "-n", min=1, help="Stop after this many events.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Follow events live; with --cycle, from the cycle's first event to its last."""
    require_known(pattern)
    wanted = TailFilter(pattern=pattern, errors=errors, limit=limit, json=json)
    with_desk(lambda client: _tail(client, wanted, cycle))


async def _tail(client: Client, wanted: TailFilter, cycle: str | None) -> None:
    writer = _Writer(wanted)
    if cycle is None:
        async with client.events() as events:
            aside("listening; press Ctrl-C to stop")
            await writer.run(_live(events))
        return
    cycle_id = (await cycle_named(client, cycle)).cycle_id
    if cycle_id is not None:
        async with client.events(cycle_id) as events:
            await writer.run(_whole(client, cycle_id, events))


async def _live(events: AsyncIterator[Event]) -> AsyncIterator[Event]:
    """Each event once; what was missed is said."""
    seen = Sequences()
    async for event in events:
        missing = seen.gap_before(event)
        if missing is None:
            continue
        if missing:
            aside(f"missed {missing} events of {event.cycle_id}", "yellow")
        yield event


async def _whole(
    client: Client, cycle_id: UUID, events: AsyncIterator[Event]
) -> AsyncIterator[Event]:
    """All of one cycle's events: the past ones, then the live ones, with every gap filled."""
    last = 0
    async for event in _from_tables(client, cycle_id, last):
        last = event.sequence
        yield event
        if event.type is EventType.CYCLE_ENDED:
            return
    async for event in events:
        if event.sequence > last + 1:
            async for missed in _from_tables(client, cycle_id, last):
                last = missed.sequence
                yield missed
                if missed.type is EventType.CYCLE_ENDED:
                    return
        if event.sequence == last + 1:
            last = event.sequence
            yield event
            if event.type is EventType.CYCLE_ENDED:
                return


async def _from_tables(client: Client, cycle_id: UUID, sequence: int) -> AsyncIterator[Event]:
    while True:
        page = await client.ask(EVENTS_AFTER, EventsAfter(cycle_id=cycle_id, sequence=sequence))
        for event in page.events:
            sequence = event.sequence
            yield event
        if not page.more or not page.events:
            return


class _Writer:
    """Takes events as they come and writes them together."""

    def __init__(self, wanted: TailFilter) -> None:
        self._wanted = wanted
        self._left = wanted.limit
        paint = painter(out())
        width = out().width if out().is_terminal else None  # a program reads a line an event
        self._line: Callable[[Event], str] = (
            (lambda event: event.model_dump_json())
            if wanted.json
            else (lambda event: event_line.line(event, paint, width))
        )

    async def run(self, events: AsyncIterator[Event]) -> None:
        """Write until the events end or enough were written."""
        queue: asyncio.Queue[Event | None] = asyncio.Queue(WAITING_MAX)
        feeding = asyncio.create_task(self._feed(events, queue))
        try:
            while True:
                batch = [await queue.get()]
                while not queue.empty():
                    batch.append(queue.get_nowait())
                self._write([event for event in batch if event is not None])
                if None in batch or self._left == 0:
                    break
                await asyncio.sleep(BATCH_EVERY_S)
        finally:
            feeding.cancel()
        if feeding.done() and not feeding.cancelled():
            await feeding

    async def _feed(
        self, events: AsyncIterator[Event], queue: "asyncio.Queue[Event | None]"
    ) -> None:
        try:
            async for event in events:
                if self._wanted.takes(event):
                    await queue.put(event)
        finally:
            await queue.put(None)

    def _write(self, events: Sequence[Event]) -> None:
        taken = events if self._left is None else events[: self._left]
        if self._left is not None:
            self._left -= len(taken)
        if taken:
            sys.stdout.write("".join(f"{self._line(event)}\n" for event in taken))
            sys.stdout.flush()
