"""One line for each cycle that ends, on the terminal of a desk."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from rich.console import Console
from rich.text import Text

from contracts.audit import Event, EventType
from contracts.cycle import CycleStatus
from contracts.cycle_query import CycleQuery, CycleView
from contracts.event_data import Ended
from contracts.subjects.cycles import CYCLE
from contracts.subjects.subject import PREFIX
from libs.bus.client import Client, open_client
from libs.facts import amounts
from libs.report import ending
from libs.report.reports import Reports
from libs.runtime.errors import DeskError
from services.cli.shell.running import RunningDesk
from services.cli.shell.terminal import STATUS_MARKS, STATUS_STYLES

ENDS = f"{PREFIX}.evt.*.{EventType.CYCLE_ENDED.value}.*"
ASK_EVERY_S = 0.5
"""A desk that ends more cycles than this, in a replay of a year, is not asked about each."""
WORDS_MAX = 300


@asynccontextmanager
async def narrated(desk: RunningDesk, console: Console) -> AsyncIterator[None]:
    """Print a line for each cycle that ends while the block runs."""
    async with (
        open_client(desk.nats_url, desk.secrets_dir) as client,
        client.events(pattern=ENDS) as events,
    ):
        printing = asyncio.create_task(_print(client, events, console))
        try:
            yield
        finally:
            printing.cancel()


async def _print(client: Client, events: AsyncIterator[Event], console: Console) -> None:
    asked_at = 0.0
    async for event in events:
        view = None
        if time.monotonic() - asked_at >= ASK_EVERY_S:
            view = await _view(client, event)
            asked_at = time.monotonic()
        console.print(line(event, view), soft_wrap=True)


async def _view(client: Client, event: Event) -> CycleView | None:
    """The cycle; None where the console does not answer now: the event says enough."""
    try:
        view = await client.ask(CYCLE, CycleQuery(cycle_id=str(event.cycle_id)))
    except DeskError:
        return None
    return view if view.found else None


def line(event: Event, view: CycleView | None) -> Text:
    """When it ended, which cycle, how, and what came of it."""
    ended = Ended.model_validate(event.data)
    status = CycleStatus(ended.status)
    words = ended.reason
    what = amounts.short(event.cycle_id)
    if view is not None:
        day = "" if view.as_of is None else f" of {view.as_of}"
        accounts = ", ".join(dict.fromkeys(pipeline.account for pipeline in view.pipelines))
        what = f"{what} {view.kind}{day}" + (f" on {accounts}" if accounts else "")
        outcomes = [
            ending.of(pipeline, Reports.of(pipeline), (), pipeline.reason or view.reason).sentence
            for pipeline in view.pipelines
        ]
        words = "; ".join(filter(None, dict.fromkeys(outcomes))) or words
    return Text.assemble(
        (f"{event.at.astimezone():%H:%M:%S} ", "dim"),
        (f"{STATUS_MARKS[status]} {status.value} ", STATUS_STYLES[status]),
        (f"{what}: " if words else what, ""),
        (amounts.cut(words, WORDS_MAX), ""),
    )
