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
from libs.report import events
from libs.report.tones import MARKS
from libs.runtime.errors import DeskError
from libs.runtime.setting_names import as_set
from services.cli.shell.running import RunningDesk
from services.cli.shell.terminal import STATUS_STYLES

ENDS = f"{PREFIX}.evt.*.{EventType.CYCLE_ENDED.value}.*"
ASK_EVERY_S = 0.5
"""A desk that ends more cycles than this, in a replay of a year, is not asked about each."""
WORDS_MAX = 300


@asynccontextmanager
async def narrated(desk: RunningDesk, console: Console) -> AsyncIterator[None]:
    """Print a line for each cycle that ends while the block runs."""
    async with (
        open_client(desk.nats_url, desk.secrets_dir) as client,
        client.events(pattern=ENDS) as ends,
    ):
        printing = asyncio.create_task(_print(client, ends, console))
        try:
            yield
        finally:
            printing.cancel()


async def _print(client: Client, ends: AsyncIterator[Event], console: Console) -> None:
    asked_at = 0.0
    async for event in ends:
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
    at = (f"{event.at.astimezone():%H:%M:%S} ", "dim")
    status = CycleStatus(Ended.model_validate(event.data).status)
    mark, style = MARKS[status], STATUS_STYLES[status]
    if view is None:
        words = as_set(events.described(event).text)
        return Text.assemble(at, (f"{mark} ", style), amounts.cut(words, WORDS_MAX))
    day = "" if view.as_of is None else f" of {view.as_of}"
    accounts = ", ".join(dict.fromkeys(pipeline.account for pipeline in view.pipelines))
    what = f"{amounts.short(event.cycle_id)} {view.kind}{day}" + (
        f" on {accounts}" if accounts else ""
    )
    words = as_set(view.outcome)
    return Text.assemble(
        at,
        (f"{mark} {status.value} ", style),
        f"{what}: " if words else what,
        amounts.cut(words, WORDS_MAX),
    )
