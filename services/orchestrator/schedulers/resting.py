"""Commands of background cycles that rest while a live cycle is at work.

Their operations are written as resting (`store.write`), in whose table any orchestrator finds them.
`Resting` sends them when no live cycle is at work any more, or when they have rested for
`study.rest_s_max`.
"""

import asyncio
from pathlib import Path

import structlog

from contracts.message import MESSAGE_BYTES_MAX
from libs.postgres.pool import Pool
from libs.postgres.queries import Queries
from libs.runtime.background import event_within
from libs.runtime.errors import DeskError
from libs.runtime.settings import Settings
from libs.telemetry import metrics
from services.orchestrator.commit import Outbox, OutgoingCommand

PAUSE_S = 0.01
"""Between two looks, however often something is committed."""
RESUMED_MAX = 500
"""Commands that one look sends at most; the rest waits for the next."""

sql = Queries(Path(__file__).parent / "resting.sql")
log = structlog.get_logger()


class Resting:
    """Sends what rests and may go on. `wake` after a commit that ended a cycle; `run` in one
    task."""

    def __init__(self, pool: Pool, outbox: Outbox, settings: Settings) -> None:
        self._pool = pool
        self._outbox = outbox
        self._settings = settings
        self._woken = asyncio.Event()

    def wake(self) -> None:
        """A cycle is no longer at work: what rests may go on."""
        self._woken.set()

    async def run(self) -> None:
        """Resume until cancelled."""
        while True:
            self._woken.clear()
            try:
                await self.resume()
            except DeskError as error:
                log.warning("resting.interrupted", error=f"{type(error).__name__}: {error}"[:400])
            await event_within(self._woken, self._settings.orchestrator.sweep_s)
            await asyncio.sleep(PAUSE_S)

    async def resume(self) -> None:
        """Send what rests and may go on."""
        settings = self._settings
        rows = await self._pool.fetch(
            sql.resume, settings.study.rest_s_max, settings.orchestrator.resend_after_s, RESUMED_MAX
        )
        for row in rows:
            # What no service could read is left to the sweep, which fails its operation.
            if len(row["command"]) <= MESSAGE_BYTES_MAX:
                await self._outbox.send(
                    OutgoingCommand(
                        row["service"], row["step"], row["cycle_id"], row["op_id"], row["command"]
                    )
                )
            metrics.CELLS_RESUMED.add()
