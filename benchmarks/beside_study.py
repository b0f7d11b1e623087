"""Live cycles beside a study: `python -m benchmarks.beside_study [--cycles 60 --cells 1000]`.

One desk in one process over the bundled prices. Live `rules` cycles of five tickers come one by one
with pauses of half a second, so that the study gets its turn between them: a block of them with no
study at work, a block while a study of so many cells runs, and so on in turn. p50 and p95 from the
request to the end, and the ratio of the two in the same round. Before them a study of 200 cells has
the desk to itself: its seconds, and the CPU time of the desk, NATS and Postgres a cell.
"""

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path
from random import Random
from statistics import median, quantiles
from typing import Final

from benchmarks.cycles import WARM, desk_up, folder
from benchmarks.report import spread, table
from benchmarks.year import LAST_SESSION, Running, running, sessions_before
from contracts.study import RunStudy, StopStudy, StudiesQuery, Study, StudyDates
from contracts.subjects.studies import RUN_STUDY, STOP_STUDY, STUDIES
from contracts.subjects.subject import Answered, Asked, Subject
from libs.bus.codec import decode, encode
from libs.runtime.loop import run

UNIVERSE: Final = ("AAPL", "GOOG", "IBM", "MSFT")
FIRST: Final = date(2005, 1, 3)
PAUSE_S: Final = (0.2, 0.8)
ALONE_CELLS: Final = 200
POLL_S: Final = 0.25
TIMES_MAX: Final = 1.2

Figures = dict[str, float]


def main() -> None:
    """Measure and print."""
    arguments = _parse()
    found: list[Figures] = []
    with folder() as place:
        for number in range(1, arguments.rounds + 1):
            found.append(_round(place / f"{number}", arguments))
            print(f"round {number}: {found[-1]}", file=sys.stderr, flush=True)
    if arguments.json:
        print(json.dumps(found))
        return
    rows = [[name, spread(each[name] for each in found)] for name in found[0]]
    print(table([f"{len(found)} rounds", "median (lowest-highest)"], rows))
    print(f"\ngoal: p95 beside a study at most {TIMES_MAX:g} times that alone")


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.beside_study", description=__doc__)
    parser.add_argument("--cycles", type=int, default=60, help="live ones, alone and beside, each")
    parser.add_argument("--cells", type=int, default=1_000, help="of the study")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def _round(data: Path, arguments: argparse.Namespace) -> Figures:
    with desk_up(data) as up:
        return run(_alone_and_beside(up, arguments.cycles, arguments.cells))


async def _alone_and_beside(up: tuple[int, Path], cycles: int, cells: int) -> Figures:
    sessions = iter(sessions_before(LAST_SESSION, WARM + 2 * cycles))
    study = _study("beside", cells)
    draw = Random(1)
    async with running(*up) as desk:
        await _live(desk, sessions, WARM, draw)
        to_itself = await _study_alone(desk)
        alone: list[float] = []
        beside: list[float] = []
        for _ in range(2):
            alone += await _live(desk, sessions, cycles // 2, draw)
            await _ask(desk, RUN_STUDY, RunStudy(study=study))
            beside += await _live(desk, sessions, cycles // 2, draw)
            await _ask(desk, STOP_STUDY, StopStudy(name=study.name))
        completed = await _completed(desk, study.name)
    if completed >= cells:
        sys.exit("the study was over too early: give it more --cells")
    return to_itself | {
        "alone: p50, ms": 1e3 * median(alone),
        "alone: p95, ms": 1e3 * _p95(alone),
        "beside: p50, ms": 1e3 * median(beside),
        "beside: p95, ms": 1e3 * _p95(beside),
        "times, p50": median(beside) / median(alone),
        "times, p95": _p95(beside) / _p95(alone),
        "cells meanwhile": completed,
    }


def _study(name: str, cells: int) -> Study:
    return Study(
        name=name,
        dates=StudyDates(first=FIRST, last=LAST_SESSION, count=cells),
        universe=UNIVERSE,
        arms=({"name": "rules"},),
        horizons=(1,),
    )


async def _study_alone(desk: Running) -> Figures:
    study = _study("alone", ALONE_CELLS)
    began, spent = time.perf_counter(), sum(desk.cpu_s().values())
    await _ask(desk, RUN_STUDY, RunStudy(study=study))
    while (  # noqa: ASYNC110 - another process completes them
        await _completed(desk, study.name) < ALONE_CELLS
    ):
        await asyncio.sleep(POLL_S)
    return {
        f"study of {ALONE_CELLS} cells, s": time.perf_counter() - began,
        "CPU-ms a cell": 1e3 * (sum(desk.cpu_s().values()) - spent) / ALONE_CELLS,
    }


async def _completed(desk: Running, name: str) -> int:
    (view,) = (await _ask(desk, STUDIES, StudiesQuery(name=name))).studies
    return view.completed


async def _live(
    desk: Running, sessions: Iterator[date], count: int, draw: Random
) -> Sequence[float]:
    """So many cycles of the next sessions, one by one with pauses; the seconds of each."""
    found = []
    for _ in range(count):
        await asyncio.sleep(draw.uniform(*PAUSE_S))
        found.append(await desk.cycle(next(sessions)))
    return found


async def _ask(desk: Running, row: Subject[Asked, Answered], message: Asked) -> Answered:
    reply = await desk.client.request(row.by("cli"), encode(message), timeout=10)
    return decode(row.reply, reply.data)


def _p95(seconds: Sequence[float]) -> float:
    return quantiles(seconds, n=20)[18]


if __name__ == "__main__":
    main()
