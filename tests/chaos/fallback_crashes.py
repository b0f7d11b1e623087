"""A planner whose model never gives an answer, its fallback, and a crash at every point between.

    python -m tests.chaos.fallback_crashes [--every N]

The pipeline's own model answers in words, three times; then another provider, paid too, makes the
plan. The research service is killed at every point of both attempts, the orchestrator right after
each of their questions, all processes and servers at each record. Each cycle must come to the plan
of the fallback, say so, and pay for no call on record again; its replay must decide the same
without asking anybody.
"""

import argparse
import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from contracts.cycle import CycleRequest
from contracts.message import Pipeline
from libs.bus.client import open_client
from libs.runtime.settings import Settings
from libs.telemetry.logging import configure_logging
from services.cli.shell.recordings import fetch
from services.cli.shell.request import show
from services.replay import ReplayReport, replay
from tests.chaos.crash_matrix import (
    MANNER,
    Fault,
    Found,
    Matrix,
    MortalDesk,
    Point,
    mortal_desk,
    paid_cycle,
)
from tests.fakes.model_process import Manner
from tests.open_folder import open_folder

STEP, STAGE, BY = "plan", "planner", "openai"
WORDY = Manner(delay_s=MANNER.delay_s, appetites=MANNER.appetites, wordy={"planner": "claude"})
MARK = (STAGE, BY, "fallback")
SERVICE = "research"
APART = {SERVICE: 2, "orchestrator": 2}
"""Who can be killed alone."""
HIT_AT = (Fault.SERVICE, Fault.ORCHESTRATOR, Fault.EVERYTHING)


def with_fallback() -> CycleRequest:
    """A paid cycle whose planner has a fallback."""
    request = paid_cycle()
    (pipeline,) = request.pipelines
    falls_back: Pipeline = pipeline.model_copy(update={"fallback": {STAGE: BY}})
    return request.model_copy(update={"pipelines": (falls_back,)})


@dataclass
class Crashes:
    """Hits cycles with a fallback on a desk that is up, and replays each."""

    desk: MortalDesk
    matrix: Matrix

    def points_of(self, fault: Fault) -> Sequence[Point]:
        """The points of both attempts at which a fault is to hit."""
        return [point for point in self.matrix.points_of(fault) if point.step == STEP]

    async def hit(self, fault: Fault, point: Point) -> tuple[Found, Sequence[str]]:
        """One cycle that is hit at one point, and what is wrong with its replay."""
        found = await self.matrix.hit(fault, point)
        assert self.matrix.last is not None
        return found, await self.replay_problems(self.matrix.last)

    async def replay_problems(self, cycle_id: UUID) -> Sequence[str]:
        """What a replay says that is not as it was decided; a call that it makes is a problem."""
        asked = len(self.desk.model.lines())
        report = await self._replayed(cycle_id)
        problems = [f"{each.step}: {each.what}" for each in report.differences]
        problems += [] if report.same else ["the replay decided otherwise"]
        problems += [] if len(self.desk.model.lines()) == asked else ["the replay asked the model"]
        return problems

    async def _replayed(self, cycle_id: UUID) -> ReplayReport:
        servers = self.desk.servers
        async with open_client(servers.nats_url, servers.secrets_dir) as client:
            view = await show(client, str(cycle_id))
            # Today's settings know neither the provider nor its fallback.
            return await replay(view, await fetch(client, cycle_id), Settings())


@asynccontextmanager
async def crashing_desk(folder: Path) -> AsyncIterator[Crashes]:
    """A desk with the planner's two providers, after one cycle without a crash."""
    async with mortal_desk(folder, APART, WORDY, further=[BY], model_plan_attempts_max=1) as desk:
        matrix = Matrix(desk, with_fallback)
        await matrix.calm()
        yield Crashes(desk, matrix)


async def main_of(every: int, folder: Path, say: Callable[[str], None]) -> int:
    """All points; returns how many cycles were not as they should be."""
    broken = count = 0
    async with crashing_desk(folder) as crashes:
        reference = crashes.matrix.reference
        assert reference is not None
        broken += reference.substitutes != (MARK,)
        for fault in HIT_AT:
            for point in crashes.points_of(fault)[::every]:
                found, problems = await crashes.hit(fault, point)
                sound = found.is_sound and not problems
                count, broken = count + 1, broken + (not sound)
                say(f"{'ok' if sound else 'BROKEN'} {found} {problems or ''}\n")
    say(f"{count} cycles, {broken} of them not as they should be\n")
    return broken


def main() -> None:
    """Run and report."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.fallback_crashes")
    parser.add_argument("--every", type=int, default=1)
    given = parser.parse_args()
    configure_logging("error")
    with open_folder("deskbus-fallback-") as folder:
        sys.exit(bool(asyncio.run(main_of(given.every, folder, sys.stdout.write))))


if __name__ == "__main__":
    main()
