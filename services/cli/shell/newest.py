"""A desk's newest cycle; where there is none yet, the command that asks for a first one."""

from uuid import UUID

from contracts.cycle_query import CyclesQuery
from contracts.subjects.cycles import CYCLES
from libs.bus.client import Client
from libs.market.choice import first_request
from libs.runtime.settings import Settings
from services.cli.shell.problem import ExitCode, Problem
from services.cli.shell.running import as_the_desk


def first_cycle(settings: Settings) -> str:
    """The command for a first cycle, by the running desk's own market data."""
    return first_request(as_the_desk(settings))


async def newest(client: Client, settings: Settings) -> UUID:
    """The newest cycle's id. Raises `Problem` (not found) where there is none."""
    page = await client.ask(CYCLES, CyclesQuery(limit=1))
    if not page.cycles or page.cycles[0].cycle_id is None:
        raise Problem(ExitCode.NOT_FOUND, "this desk has no cycles yet", first_cycle(settings))
    return page.cycles[0].cycle_id
