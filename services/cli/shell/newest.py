"""A cycle as people name it: by its id, the id's first digits, or `last`; and the command that asks
for a first one where a desk has none yet."""

from typing import Annotated
from uuid import UUID

import typer

from contracts.cycle import BOOKKEEPING, KINDS
from contracts.cycle_query import CyclesQuery, CycleView
from contracts.subjects.cycles import CYCLES
from libs.bus.client import Client
from libs.market.choice import first_request
from services.cli.shell import completion
from services.cli.shell.problem import NoSuchThing
from services.cli.shell.request import show
from services.cli.shell.running import as_the_desk, load_settings

LAST = "last"
"""The newest cycle that decides: reports and snapshots, which follow by themselves, do not."""
DECIDING = tuple(kind for kind in KINDS if kind not in BOOKKEEPING)
CYCLE_HELP = "A cycle's id, or its first characters; `last` is the newest, without reports."
CycleArgument = Annotated[str, typer.Argument(help=CYCLE_HELP, autocompletion=completion.cycles)]
CycleOrLast = Annotated[
    str,
    typer.Argument(
        help="A cycle's id, or its first characters; by default the newest, without reports.",
        show_default=False,
        autocompletion=completion.cycles,
    ),
]


def first_cycle() -> str:
    """The command for a first cycle, by the running desk's own market data."""
    return first_request(as_the_desk(load_settings()))


async def newest(client: Client) -> UUID:
    """The id of the newest cycle that decides. Raises `CliProblem` (not found) where there is
    none."""
    views = list((await client.ask(CYCLES, CyclesQuery(limit=1))).cycles)
    if views and views[0].kind in BOOKKEEPING:
        pages = [await client.ask(CYCLES, CyclesQuery(kind=kind, limit=1)) for kind in DECIDING]
        views = [view for page in pages for view in page.cycles]
    times = {view.accepted_at: view.cycle_id for view in views if view.accepted_at}
    cycle_id = times[max(times)] if times else None
    if cycle_id is None:
        raise NoSuchThing("this desk has no cycles yet", first_cycle())
    return cycle_id


async def cycle_named(client: Client, name: str) -> CycleView:
    """The cycle with this id, or `last`. Raises `CliProblem` (not found, or usage where it is no
    id)."""
    whole = str(await newest(client)) if name.lower() == LAST else name
    return await show(client, whole)
