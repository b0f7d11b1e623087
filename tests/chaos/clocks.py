"""Clocks that jump by an hour or a day, ahead and back, while real cycles run.

    python -m tests.chaos.clocks [--cycles 20] [--jumps 3600 -3600 86400 -86400] [--keep]

The wall clock of Postgres, of the desk's processes, or of both jumps; the steady clocks do not, as
on a machine whose time is set. Right after it the desk is killed with kill -9 and started again, so
that leases have to run out. Then the clock is set right, again with a kill. All cycles must end,
none may fail, and nothing may happen twice. Exits 1 where that is not so. Needs libfaketime (the
package faketime of Debian).
"""

import argparse
import asyncio
import json
import os
import sys
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from tests.chaos import books, invariants
from tests.chaos.desk import QUICK
from tests.chaos.hosts import LIBRARIES
from tests.chaos.load import User, user_of
from tests.chaos.outages import OwnDesk, OwnServers, desk_on, own_servers, wish
from tests.open_folder import open_folder

JUMPS_S = (3600, -3600, 86_400, -86_400)
BEFORE_S = 0.5
TIME_LIMIT_S = 300.0
SETTLED_S_MAX = 240.0
"""How long the cycles of one jump may take on a busy machine."""


class Whose(StrEnum):
    """The clock that jumps."""

    POSTGRES = "postgres"
    DESK = "desk"
    ALL = "all"


@dataclass
class Clocks:
    """Files that say by how much each side's wall clock is off."""

    folder: Path
    whose: Whose

    def __post_init__(self) -> None:
        self.jump(0)

    def jump(self, by_s: int) -> None:
        """Let the clocks that are under attack be off by so much."""
        for side in (Whose.POSTGRES, Whose.DESK):
            by = by_s if self.whose in (side, Whose.ALL) else 0
            beside = self.folder / f"clock-of-{side}.new"
            beside.write_text(f"{by:+d}\n")
            beside.chmod(0o644)
            beside.replace(self._file(side))

    def _file(self, side: Whose) -> Path:
        return self.folder / f"clock-of-{side}"

    def environment(self, side: Whose) -> Mapping[str, str]:
        """What lets a program go by its side's clock."""
        return {
            "LD_PRELOAD": str(LIBRARIES[0]),
            "FAKETIME_TIMESTAMP_FILE": str(self._file(side)),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }

    @contextmanager
    def of_children(self) -> Iterator[None]:
        """Programs that are started meanwhile go by the desk's clock."""
        for name, value in self.environment(Whose.DESK).items():
            os.environ[name] = value
        try:
            yield
        finally:
            for name in self.environment(Whose.DESK):
                del os.environ[name]


@dataclass
class Outcome:
    """What a jump there and back came to."""

    whose: Whose
    jump_s: int
    cycles: int = 0
    failed: list[str] = field(default_factory=list)
    twice: dict[str, list[str]] = field(default_factory=dict)
    said: int = 0
    """Events that say that Postgres' clock jumped."""
    there_s: float = 0.0
    back_s: float = 0.0

    @property
    def broken(self) -> list[str]:
        """Promises that did not hold."""
        return [
            *(f"failed: {each}" for each in self.failed),
            *(f"{promise}: {rows[:3]}" for promise, rows in self.twice.items()),
        ]

    def row(self) -> str:
        """It as a row of the table."""
        way = f"{self.jump_s:+d} s and back"
        counts = (self.cycles, len(self.failed), len(self.twice), self.said)
        spans = (f"{self.there_s:.1f} s", f"{self.back_s:.1f} s")
        return f"| {' | '.join(map(str, (self.whose, way, *counts, *spans)))} |"


@asynccontextmanager
async def desk_of(folder: Path, clocks: Clocks) -> AsyncIterator[OwnDesk]:
    """`deskbus up` and its servers, Postgres and desk each by its own clock."""
    async with own_servers(folder) as servers:
        await _by_its_own_clock(servers, clocks)
        with clocks.of_children():
            async with desk_on(servers, folder, QUICK, processes=False) as desk:
                yield desk


async def _by_its_own_clock(servers: OwnServers, clocks: Clocks) -> None:
    await servers.postgres.kill()
    given = [f"{name}={value}" for name, value in clocks.environment(Whose.POSTGRES).items()]
    servers.postgres.argv = ["/usr/bin/env", *given, *servers.postgres.argv]
    await servers.postgres.start()


async def survive(folder: Path, whose: Whose, jump_s: int, cycles: int) -> Outcome:
    """One jump there and back, each with a third of the cycles at work and a kill."""
    outcome = Outcome(whose, jump_s, cycles)
    clocks = Clocks(folder, whose)
    async with desk_of(folder, clocks) as desk:
        keeping = asyncio.create_task(desk.keep())
        try:
            async with user_of(desk.settings) as user:
                share = cycles // 2
                outcome.there_s = await _struck(desk, user, clocks, jump_s, range(share))
                outcome.back_s = await _struck(desk, user, clocks, 0, range(share, cycles))
                await _judged(desk, outcome)
        finally:
            keeping.cancel()
    return outcome


async def _struck(
    desk: OwnDesk, user: User, clocks: Clocks, to_s: int, numbers: Sequence[int]
) -> float:
    """Cycles begin, the clock jumps, the desk is killed; how long until all have ended."""
    requests = [wish(user, number, TIME_LIMIT_S) for number in numbers]
    half = len(requests) // 2
    for request in requests[:half]:
        await user.begin(request)
    await asyncio.sleep(BEFORE_S)
    clocks.jump(to_s)
    struck = time.monotonic()
    with suppress(ProcessLookupError):
        desk.process.kill()
    async with asyncio.timeout(SETTLED_S_MAX):
        await asyncio.gather(*(user.run(request) for request in requests))
    return time.monotonic() - struck


async def _judged(desk: OwnDesk, outcome: Outcome) -> None:
    async with desk.database() as db:
        rows = await db.fetch("select cycle_id, status, reason from cycles")
        async with asyncio.timeout(SETTLED_S_MAX):
            while await invariants.relay_lag(db):  # noqa: ASYNC110
                await asyncio.sleep(0.1)
        outcome.failed = [str(dict(row)) for row in rows if row["status"] != "completed"]
        outcome.twice = await books.broken(db)
        outcome.said = await db.fetchval(
            "select count(*) from state_events"
            " where type = 'outage_ended' and data ->> 'clock_jump_s' is not null"
        )
    if desk.tracebacks():
        outcome.failed += desk.tracebacks()


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the table and print it."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.clocks", description=__doc__)
    parser.add_argument("--cycles", type=int, default=20)
    parser.add_argument("--jumps", type=int, nargs="+", default=[*JUMPS_S])
    parser.add_argument("--whose", nargs="+", choices=[*Whose], default=[*Whose])
    parser.add_argument("--keep", action="store_true")
    given = parser.parse_args(arguments)
    if not LIBRARIES:
        sys.exit("libfaketime is missing: apt-get install faketime")
    sys.stdout.write(
        "| whose clock | by | cycles | failed | twice or wrong | events | ended after | back |\n"
        "| --- | --- | --- | --- | --- | --- | --- | --- |\n"
    )
    broken = False
    for whose in given.whose:
        for jump_s in given.jumps:
            with open_folder("deskbus-clocks-", keep=given.keep) as folder:
                outcome = asyncio.run(survive(folder, Whose(whose), jump_s, given.cycles))
            broken = broken or bool(outcome.broken)
            sys.stdout.write(f"{outcome.row()}\n")
            sys.stdout.flush()
            for problem in outcome.broken:
                sys.stderr.write(f"BROKEN: {json.dumps(problem)}\n")
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main()
