"""A study with a paid model, struck again and again while it runs beside live cycles.

    python -m tests.chaos.studies [--cells 24] [--seed 7] [--one-process] [--keep]

One desk runs it undisturbed. On another desk the same file runs beside live cycles, for which its
cells rest, while at seeded moments something is killed: an orchestrator, a service, NATS, Postgres,
or all of them. The model is a process that no fault touches; it counts. Exits 1 where a cell is
missing or there twice, a call on record was begun again, or a cell or a score differs.
With `--one-process` the desk is one process, as `deskbus up` has it.
"""

import argparse
import asyncio
import os
import random
import signal
import sys
from collections import Counter
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

from contracts.cycle import CycleRequest, CycleStatus
from contracts.message import Pipeline
from contracts.study import (
    CellView,
    RunStudy,
    StudiesQuery,
    Study,
    StudyArm,
    StudyBudget,
    StudyCellsQuery,
    StudyDates,
    StudyStatus,
    StudyView,
)
from contracts.study_score import StudyScoreQuery
from contracts.subjects.studies import RUN_STUDY, STUDIES, STUDY_CELLS, STUDY_SCORE
from libs.market.calendar import exchange_calendar
from libs.servers.supervisor import ChildError
from libs.telemetry.logging import configure_logging
from tests.chaos.crash_matrix import (
    ONE_PROCESS,
    PIPELINE,
    UNIVERSE,
    MortalDesk,
    entries_of,
    mortal_desk,
    repeated_of,
)
from tests.chaos.desk import POSTGRES_GONE
from tests.fakes.model_process import Manner
from tests.open_folder import open_folder

APART: Mapping[str, int] = {
    "orchestrator": 2,
    "study": 1,
    **dict.fromkeys(("sentiment", "research", "trader", "risk", "execution", "assessment"), 1),
}
"""Processes that are killed one by one; the other services live in ours."""
FIRST, LAST = date(2010, 1, 4), date(2012, 6, 29)
AT_ONCE = 0.1
"""Of the strikes, that kill everything."""
CALLS = (2, 16)
"""Lines of the model's log, two a request, before a strike, and before a live cycle: however slow
the machine, the study has come further."""
MOMENT_S = 1.0
"""After them, so that not every strike is at a call."""
RULES = "rules"
"""The arm that is paid nothing, and the live cycles."""
CELLS_MAX = 200
STUDY_S = 3_600.0
SCORE_S = 120.0
CYCLE_S = 300.0
LOOK_S = 0.2
SERVERS = ("nats", "postgres")
MANNER = Manner(delay_s=0.05)
SPENT = frozenset({"tokens", "cost_usd", "tokens_decision", "usd_decision", "usd_bp", "audit"})
"""Parts of a score that say what it cost; the audit quotes them."""


@dataclass(frozen=True)
class Outcome:
    """A study at its end: its cells, how often each was begun, and their score; what its model was
    asked although the reply was on record, and once more in all; what was done meanwhile."""

    view: StudyView
    begun: Counter[tuple[int, int]]
    cells: Sequence[CellView]
    score: Any
    repeated: Sequence[str]
    again: int
    strikes: Counter[str]
    live: int
    rests: int


def study_of(cells: int) -> Study:
    """A study of a paid arm and a free one over so many dates."""
    sessions = exchange_calendar().sessions(FIRST, LAST)
    return Study(
        name="struck",
        dates=StudyDates(sessions=tuple(sessions[:: len(sessions) // cells][:cells])),
        universe=UNIVERSE,
        arms=(StudyArm(name="paid", provider=PIPELINE), StudyArm(name=RULES)),
        horizons=(5,),
        budget=StudyBudget(tokens=10**9, cost_usd=100_000, cell_tokens=10**6, cell_cost_usd=1_000),
    )


async def run(
    study: Study, folder: Path, apart: Mapping[str, int], draw: random.Random | None = None
) -> Outcome:
    """The study on a desk of its own; with `draw` beside live cycles, while everything is killed.

    One cell at a time: so a question to the model belongs to the cell in whose time it came.
    """
    strikes: Counter[str] = Counter()
    lived: list[UUID] = []
    rests: set[UUID] = set()
    async with mortal_desk(folder, apart, MANNER, study_cells_max=1) as desk:
        await desk.user.ask(RUN_STUDY, RunStudy(study=study))
        beside: list[Coroutine[Any, Any, None]] = []
        if draw is not None:
            beside = [_strike(desk, apart, strikes, draw), _live(desk, lived, random.Random(7))]
            beside.append(_look(desk, rests))
        tasks = [asyncio.create_task(each) for each in beside]
        try:
            view = await _ended(desk, study, tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        query = StudyCellsQuery(name=study.name, limit=CELLS_MAX)
        asked = StudyScoreQuery(name=study.name)
        cells = await desk.user.ask(STUDY_CELLS, query)
        score = await desk.user.ask(STUDY_SCORE, asked, SCORE_S)
        begun, repeated = await record_of(desk, study)
        lines = Counter(line["request"] for line in desk.model.asked())
        return Outcome(
            view=view,
            begun=begun,
            cells=[cell.model_copy(update={"cycle_id": UUID(int=0)}) for cell in cells.cells],
            score=_without_costs(score.model_dump(mode="json")),
            repeated=repeated,
            again=lines.total() - len(lines),
            strikes=strikes,
            live=len(lived),
            rests=len(rests),
        )


def broken(calm: Outcome, struck: Outcome) -> Sequence[str]:
    """What a struck study came to that it should not have."""
    every = {(cell.number, cell.sample) for cell in calm.cells}
    checks = {
        "the undisturbed study did not complete": calm.view.completed == calm.view.cells,
        "the struck study did not complete": struck.view.completed == struck.view.cells,
        "a cell is missing or was begun twice": struck.begun == Counter(every),
        f"calls on record were begun again: {struck.repeated}": not struck.repeated,
        "a cell came to something else": struck.cells == calm.cells,
        "the scores differ": struck.score == calm.score,
        "nothing was killed": struck.strikes.total() > 0,
        "no live cycle ran": struck.live > 0,
        "no cell rested": struck.rests > 0,
    }
    return [what for what, holds in checks.items() if not holds]


async def _strike(
    desk: MortalDesk, apart: Mapping[str, int], strikes: Counter[str], draw: random.Random
) -> None:
    """Kill something and wait until it is there again, over and over, until cancelled."""
    names = [f"{name}-{number + 1}" for name, count in apart.items() for number in range(count)]
    names += SERVERS
    while True:
        await _further(desk, draw)
        victims = names if draw.random() < AT_ONCE else [draw.choice(names)]
        killed = {}
        for name in victims:
            owner = desk.servers if name in SERVERS else desk.supervisor
            # One that is between two lives is left to it.
            with suppress(ChildError, ProcessLookupError):
                killed[name] = owner.pid(name)
                os.kill(killed[name], signal.SIGKILL)
                strikes[name] += 1
        # Each strike hits a desk that has got over the one before, or nothing would move at all.
        for name, pid in killed.items():
            owner = desk.servers if name in SERVERS else desk.supervisor
            await owner.replaced(name, pid)


async def _further(desk: MortalDesk, draw: random.Random) -> None:
    """Wait until the model has been asked a drawn number of times more, and a moment longer."""
    enough = len(desk.model.lines()) + draw.randint(*CALLS)
    while True:
        if len(desk.model.lines()) >= enough:
            break
        await asyncio.sleep(LOOK_S)
    await asyncio.sleep(draw.uniform(0, MOMENT_S))


async def _live(desk: MortalDesk, lived: list[UUID], draw: random.Random) -> None:
    """A live cycle after the other, until cancelled: the study rests for each."""
    while True:
        await _further(desk, draw)
        lived.append(await live_cycle(desk))


async def live_cycle(desk: MortalDesk) -> UUID:
    """Run a live cycle, for which cells of studies rest; returns its id."""
    mark = uuid4().hex[:12]
    request = CycleRequest(
        idempotency_key=mark,
        as_of=LAST,
        universe=UNIVERSE,
        pipelines=(Pipeline(name=RULES, account=f"a{mark}"),),
    )
    async with asyncio.timeout(CYCLE_S):
        status = await desk.user.run(request)
    if status is not CycleStatus.COMPLETED:
        raise AssertionError(f"a live cycle ended as {status}")
    return desk.user.cycle_id(request)


async def _look(desk: MortalDesk, rests: set[UUID]) -> None:
    """Note which commands rest, until cancelled."""
    while True:
        with suppress(*POSTGRES_GONE):
            async with desk.database() as db:
                while True:
                    rows = await db.fetch(
                        "select op_id from operations"
                        " where rests_since is not null and status = 'pending'"
                    )
                    rests.update(row["op_id"] for row in rows)
                    await asyncio.sleep(LOOK_S / 4)


async def _ended(
    desk: MortalDesk, study: Study, beside: Sequence["asyncio.Task[None]"]
) -> StudyView:
    """The study once it no longer runs, while what runs beside it does."""
    async with asyncio.timeout(STUDY_S):
        while True:
            for task in beside:
                if task.done():
                    task.result()
            (view,) = (await desk.user.ask(STUDIES, StudiesQuery(name=study.name))).studies
            if view.status is not StudyStatus.RUNNING:
                return view
            await asyncio.sleep(LOOK_S)


async def record_of(
    desk: MortalDesk, study: Study
) -> tuple[Counter[tuple[int, int]], Sequence[str]]:
    """How often each cell was begun, and the agents that asked for what was on record."""
    found: list[str] = []
    lines = desk.model.asked()
    async with desk.database() as db:
        rows = await db.fetch("select * from study_cells where study = $1", study.name)
        for row in rows:
            began, ended = row["accepted_at"].timestamp(), row["ended_at"].timestamp()
            own = [line for line in lines if began <= line["at"] <= ended]
            entries = await entries_of(db, row["cycle_id"])
            paid = [entry for entry in entries if entry["pipeline"] != RULES]
            found += repeated_of(paid, own)
    return Counter((row["number"], row["sample"]) for row in rows), found


def _without_costs(score: Any) -> Any:
    """A score but for what was spent: a call in flight when somebody is killed is paid again."""
    if isinstance(score, dict):
        kept = {key: value for key, value in score.items() if key not in SPENT}
        return {key: _without_costs(value) for key, value in kept.items()}
    return [_without_costs(each) for each in score] if isinstance(score, list) else score


def told(struck: Outcome) -> str:
    """What was done to it, in a line."""
    view = struck.view
    return (
        f"{view.completed} of {view.cells} cells, {struck.live} live cycles beside them, "
        f"{struck.rests} commands rested; killed: "
        + ", ".join(f"{name} {count}" for name, count in sorted(struck.strikes.items()))
        + f"; {struck.again} calls in flight were paid again, {len(struck.repeated)} on record"
    )


async def calm_and_struck(
    cells: int, seed: int, folder: Path, apart: Mapping[str, int]
) -> tuple[Outcome, Outcome]:
    """The same study on two desks."""
    study = study_of(cells)
    for name in ("calm", "struck"):
        (folder / name).mkdir(mode=0o755)
    calm = await run(study, folder / "calm", apart)
    return calm, await run(study, folder / "struck", apart, random.Random(seed))


def main() -> None:
    """Run and tell."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.studies", description=__doc__)
    parser.add_argument("--cells", type=int, default=24)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--one-process", action="store_true")
    parser.add_argument("--keep", action="store_true")
    given = parser.parse_args()
    configure_logging("error")
    apart = ONE_PROCESS if given.one_process else APART
    with open_folder("deskbus-studies-", keep=given.keep) as folder:
        outcomes = asyncio.run(calm_and_struck(given.cells, given.seed, folder, apart))
    wrong = broken(*outcomes)
    sys.stdout.write("\n".join([told(outcomes[1]), *wrong, ""]))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
