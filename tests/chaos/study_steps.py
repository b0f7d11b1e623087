"""A study whose clock is killed between every two of its steps, beside a live cycle.

    python -m tests.chaos.study_steps [--one-process] [--keep]

A study of two cells a step, with a paid model, on one desk. Its orchestrator or study service is
killed (with `--one-process` the whole desk) as soon as its first cell is at that step. Live cycles
run until then, so that a command of the cell rests. Exits 1 where a cell is missing or there twice,
where something of it still rests or was done twice, or where a call on record was begun again.
"""

import argparse
import asyncio
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from contracts.study import (
    RunStudy,
    StudiesQuery,
    Study,
    StudyArm,
    StudyBudget,
    StudyDates,
    StudyStatus,
)
from contracts.subjects.studies import RUN_STUDY, STUDIES
from contracts.subjects.subject import STUDY
from libs.market.calendar import exchange_calendar
from libs.runtime import ids
from libs.study.statistics.design import cells_of, key_of
from libs.telemetry.logging import configure_logging
from tests.chaos.crash_matrix import ONE_PROCESS, PIPELINE, UNIVERSE, MortalDesk, mortal_desk
from tests.chaos.studies import FIRST, LAST, MANNER, live_cycle, record_of
from tests.fakes.mortal import Plan
from tests.open_folder import open_folder

STEPS: Mapping[str, str] = {
    "cell": "before a cell is asked for",
    "accepted": "a cell is accepted, and not counted yet",
    "counted": "it is counted",
    "rested": "a command of it rests, on record",
    "resumed": "that is no longer at rest, and not sent",
    "resent": "it is sent",
}
APART: Mapping[str, int] = {"orchestrator": 1, "study": 1}
"""The other services live in our process, which nothing kills."""
CELLS = 3
WHOLE = (
    "digest",
    "sentiment",
    "books",
    "plan",
    "quant",
    "analyst",
    "picks",
    "review",
    "validate",
    "memorize",
)
"""The steps of a decision, each once; and of one that orders something, which depends on prices:"""
EXECUTE = ("execute",)
STUDY_S = 240.0
LOOK_S = 0.1


def study_of(step: str) -> Study:
    """The study of a step: of sessions that no other one asks about."""
    number = list(STEPS).index(step)
    sessions = exchange_calendar().sessions(FIRST, LAST)[CELLS * number : CELLS * (number + 1)]
    return Study(
        name=f"struck-{step}",
        dates=StudyDates(sessions=tuple(sessions)),
        universe=UNIVERSE,
        arms=(StudyArm(name="paid", provider=PIPELINE),),
        horizons=(5,),
        budget=StudyBudget(tokens=10**9, cost_usd=100_000, cell_tokens=10**6, cell_cost_usd=1_000),
    )


async def struck(desk: MortalDesk, step: str) -> Sequence[str]:
    """What a study came to, struck at a step, that it should not have."""
    study = study_of(step)
    cells = [
        str(ids.cycle_id(STUDY, key_of(study.name, cell)))
        for cell in cells_of(study, study.dates.sessions)
    ]
    mark = desk.folder / f"struck-{step}"
    plan = Plan(op_id=cells[0], what=step, number=0, mark=mark.name)
    plan.write(desk.folder)
    answer = await desk.user.ask(RUN_STUDY, RunStudy(study=study))
    if answer.outcome != "accepted":
        return [f"it was not begun: {answer}"]
    async with asyncio.timeout(STUDY_S):
        while True:
            (view,) = (await desk.user.ask(STUDIES, StudiesQuery(name=study.name))).studies
            if view.status is not StudyStatus.RUNNING:
                break
            if view.running and not mark.exists():
                # The cell before may have ended before a live cycle was there to let it rest.
                replace(plan, op_id=cells[view.completed]).write(desk.folder)
                await live_cycle(desk)
            await asyncio.sleep(LOOK_S)
    begun, repeated = await record_of(desk, study)
    async with desk.database() as db:
        left = await db.fetch(
            "select step, o.status, rests_since from operations o join cycles c using (cycle_id)"
            " where c.requester = $1 and (o.status <> 'completed' or rests_since is not null)",
            STUDY,
        )
        operations = await db.fetch(
            "select array_agg(step order by step) as steps, max(attempt) as attempts,"
            " exists(select from orders r where r.cycle_id = o.cycle_id) as ordered"
            " from operations o join study_cells s using (cycle_id)"
            " where s.study = $1 group by o.cycle_id",
            study.name,
        )
        held = await db.fetchval(
            "select (select sum(tokens_reserved) from operations)"
            " + (select sum(tokens_reserved) from cycles)"
        )
    wanted = Counter({(number, 0): 1 for number in range(CELLS)})
    others = [
        dict(row)
        for row in operations
        if row["attempts"] > 1 or row["steps"] != sorted([*WHOLE, *(EXECUTE * row["ordered"])])
    ]
    checks = {
        "the step was not passed": mark.exists(),
        f"it is {view.status}: {view.reason}": view.status is StudyStatus.COMPLETED,
        f"{view.completed} of {view.cells} cells completed": view.completed == view.cells == CELLS,
        f"cells were begun: {begun}": begun == wanted,
        f"calls on record were begun again: {repeated}": not repeated,
        f"operations are left: {[*map(dict, left)]}": not left,
        f"cells have other operations: {others}": len(operations) == CELLS and not others,
        f"{held} tokens are held back": not held,
    }
    return [what for what, holds in checks.items() if not holds]


async def every_step(folder: Path, apart: Mapping[str, int]) -> bool:
    """Strike at each step and tell; whether all held."""
    sound = True
    async with mortal_desk(folder, apart, MANNER, study_cells_max=1) as desk:
        for step, when in STEPS.items():
            broken = await struck(desk, step)
            sound = sound and not broken
            sys.stdout.write(f"{when}: {'; '.join(broken) or 'ok'}\n")
    return sound


def main() -> None:
    """Run and tell."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.study_steps", description=__doc__)
    parser.add_argument("--one-process", action="store_true")
    parser.add_argument("--keep", action="store_true")
    given = parser.parse_args()
    configure_logging("error")
    apart = ONE_PROCESS if given.one_process else APART
    with open_folder("deskbus-steps-", keep=given.keep) as folder:
        sys.exit(0 if asyncio.run(every_step(folder, apart)) else 1)


if __name__ == "__main__":
    main()
