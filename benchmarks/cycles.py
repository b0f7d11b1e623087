"""Real `rules` cycles of desks in one process: `python -m benchmarks.cycles [--rounds 3]`.

Two measures, each on `deskbus up` with new data directories and embedded servers.

- accounts: so many accounts (8) on one desk over the bundled prices, each with a decision cycle a
  session, one after the other; an account's first cycles warm up and are left out. Cycles a second,
  p50 and p95 from the request to the end, CPU time by program.
- universe: two desks, one with 5 tickers and one with 500 of the same made-up prices of ten years,
  one account each; their cycles take turns, session by session. p50, CPU time and memory of both,
  and by how much the large one is dearer.

CPU time is user + system of the desk's process, NATS and Postgres; this program's own is left out.
Linux only: it reads /proc.
"""

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from statistics import fmean, median, quantiles
from types import MappingProxyType
from typing import Final

from benchmarks.desk import made_up
from benchmarks.footprint import started
from benchmarks.report import spread, table
from benchmarks.year import LAST_SESSION, Running, running, sessions_before
from libs.runtime.loop import run

ACCOUNTS: Final = 8
SMALL: Final = 5
LARGE: Final = 500
SESSIONS: Final = 20
WARM: Final = 3
"""An account's cycles before the measure: everything has been loaded by then."""
PER_S_MIN: Final = 12.0
TIMES_MAX: Final = 2.0

Figures = dict[str, float]


@dataclass
class Spent:
    """Cycles of one desk: the seconds of each, and what they took of the CPU by program."""

    cycle_s: list[float] = field(default_factory=list)
    cpu_s: list[float] = field(default_factory=list)

    def figures(self) -> Figures:
        """Medians of a cycle."""
        return {"p50, ms": 1e3 * median(self.cycle_s), "CPU-ms": 1e3 * fmean(self.cpu_s)}


def main() -> None:
    """Measure and print."""
    arguments = _parse()
    rounds: dict[str, list[Figures]] = {"accounts": [], "universe": []}
    measures = ["accounts", "universe"] if arguments.measure == "both" else [arguments.measure]
    with folder() as place:
        for number in range(1, arguments.rounds + 1):
            for name in measures:
                measure = _of_accounts if name == "accounts" else _of_universe
                rounds[name].append(measure(place / f"{name}-{number}", place, arguments))
                print(f"round {number}, {name}: {rounds[name][-1]}", file=sys.stderr, flush=True)
    if arguments.json:
        print(json.dumps(rounds))
    else:
        print("\n\n".join(_render(name, found) for name, found in rounds.items() if found))


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cycles", description=__doc__)
    parser.add_argument("--measure", choices=["accounts", "universe", "both"], default="both")
    parser.add_argument("--accounts", type=int, default=ACCOUNTS)
    parser.add_argument("--tickers", type=int, default=LARGE, help="of the large universe")
    parser.add_argument("--sessions", type=int, default=SESSIONS, help="measured, an account")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


@contextmanager
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="cycles-") as name:
        # Started by root, the servers drop its rights, and have to come in all the same.
        Path(name).chmod(0o711)
        yield Path(name)


@contextmanager
def desk_up(
    data: Path, settings: Mapping[str, str] = MappingProxyType({})
) -> Iterator[tuple[int, Path]]:
    """`deskbus up` on a data directory: its process id, and the directory again."""
    deskbus = str(Path(sys.executable).parent / "deskbus")
    quiet = {"DESKBUS_LOG_LEVEL": "error", **settings}
    with started([deskbus, "up", "--no-http"], data, quiet) as (process, _):
        yield process.pid, data


# --- accounts ----------------------------------------------------------------------------------


def _of_accounts(data: Path, _: Path, arguments: argparse.Namespace) -> Figures:
    sessions = sessions_before(LAST_SESSION, WARM + arguments.sessions)
    with desk_up(data) as up:
        return run(_side_by_side(up, arguments.accounts, sessions))


async def _side_by_side(up: tuple[int, Path], accounts: int, sessions: Sequence[date]) -> Figures:
    async with running(*up) as desk:
        names = [f"a{number}" for number in range(accounts)]
        await asyncio.gather(*(trade(desk, name, sessions[:WARM]) for name in names))
        before, began = desk.cpu_s(), time.perf_counter()
        found = await asyncio.gather(*(trade(desk, name, sessions[WARM:]) for name in names))
        took_s = time.perf_counter() - began
        cycle_s = [each for seconds in found for each in seconds]
        spent = {
            program: 1e3 * (cpu_s - before.get(program, 0.0)) / len(cycle_s)
            for program, cpu_s in desk.cpu_s().items()
        }
        return {
            "cycles/s": len(cycle_s) / took_s,
            "p50, ms": 1e3 * median(cycle_s),
            "p95, ms": 1e3 * quantiles(cycle_s, n=20)[18],
            "CPU-ms": sum(spent.values()),
            **{f"- {program}": ms for program, ms in sorted(spent.items())},
            "memory of the desk, MB": desk.memory_mb()["deskbus"],
        }


async def trade(desk: Running, account: str, sessions: Sequence[date]) -> list[float]:
    """An account's cycles, one after the other; the seconds of each."""
    return [await desk.cycle(session, account) for session in sessions]


# --- universe ----------------------------------------------------------------------------------


def _of_universe(data: Path, folder: Path, arguments: argparse.Namespace) -> Figures:
    sessions = sessions_before(LAST_SESSION, WARM + arguments.sessions)
    data.mkdir()
    data.chmod(0o711)
    with ExitStack() as stack:
        ups = [
            stack.enter_context(
                desk_up(
                    data / f"{tickers}",
                    {
                        "DESKBUS_MARKET_REPLAY_DIR": str(
                            made_up(folder / f"prices-{tickers}", tickers)
                        )
                    },
                )
            )
            for tickers in (SMALL, arguments.tickers)
        ]
        return run(_in_turn(ups, (SMALL, arguments.tickers), sessions))


async def _in_turn(
    ups: Sequence[tuple[int, Path]], universes: Sequence[int], sessions: Sequence[date]
) -> Figures:
    async with AsyncExitStack() as stack:
        desks = [await stack.enter_async_context(running(*up)) for up in ups]
        for desk in desks:
            await trade(desk, "one", sessions[:WARM])
        spent = [Spent() for _ in desks]
        for session in sessions[WARM:]:
            for desk, own in zip(desks, spent, strict=True):
                before = sum(desk.cpu_s().values())
                own.cycle_s.append(await desk.cycle(session, "one"))
                own.cpu_s.append(sum(desk.cpu_s().values()) - before)
        small, large = (own.figures() for own in spent)
        figures = {
            f"{tickers} tickers: {name}": value
            for tickers, own in zip(universes, (small, large), strict=True)
            for name, value in own.items()
        }
        memory = {
            f"{tickers} tickers: memory, MB": desk.memory_mb()["deskbus"]
            for tickers, desk in zip(universes, desks, strict=True)
        }
        times = {f"times, {name}": large[name] / small[name] for name in small}
        return figures | memory | times


def _render(name: str, rounds: Sequence[Figures]) -> str:
    goal = (
        f"goal: {PER_S_MIN:g} cycles/s with {ACCOUNTS} accounts"
        if name == "accounts"
        else f"goal: {LARGE} tickers cost at most {TIMES_MAX:g} times what {SMALL} do"
    )
    rows = [[figure, spread(each[figure] for each in rounds)] for figure in rounds[0]]
    head = [f"{name}, {len(rounds)} rounds", "median (lowest-highest)"]
    return f"{table(head, rows)}\n\n{goal}"


if __name__ == "__main__":
    main()
