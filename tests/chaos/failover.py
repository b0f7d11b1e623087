"""A failover to a standby that takes part in each commit, and to one that is behind.

    python -m tests.chaos.failover [--keep]

Two Postgres servers as in tests.chaos.machines, and an orchestrator's clock that commits through an
address list of both. The primary dies by kill -9 and the standby is promoted. Synchronous: nothing
that was confirmed is missing. Asynchronous, with a standby that was away for a while: confirmed
commits are missing, and the desk says so.
Exits 1 where one of these is otherwise.
"""

import argparse
import asyncio
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import asyncpg

from libs.postgres.migrate import migrate
from libs.postgres.pool import ORCHESTRATOR_ROLE, OWNER_ROLE, dsn_for, open_pool
from libs.runtime.errors import Unavailable
from libs.runtime.settings import Settings
from libs.servers.postgres_roles import PsqlLogin, run_sql
from libs.servers.postgres_server import PostgresError
from services.orchestrator.schedulers.desk_clock import DeskClock
from tests.chaos.machines import Machines, machines_in
from tests.open_folder import open_folder

BEATS = 10
BEHIND_S = 2.0
SAID = "select count(*) from state_events where (data ->> 'beats_lost')::int > 0"


@dataclass(frozen=True)
class Outcome:
    """What was confirmed before the failover, what the new primary has, what was said of it."""

    synchronous: bool
    confirmed: int
    there: int
    said: int

    @property
    def broken(self) -> list[str]:
        """Promises that did not hold."""
        lost = self.confirmed - self.there
        if self.synchronous:
            return [f"{lost} commits are lost"] if lost > 0 or self.said else []
        return [] if lost > 0 and self.said == 1 else [f"{lost} lost, said {self.said} times"]

    def row(self) -> str:
        """It as a row of the table."""
        kind = "synchronous" if self.synchronous else "asynchronous, behind"
        lost = max(self.confirmed - self.there, 0)
        return f"| {kind} | {self.confirmed} | {lost} | {self.said} |"


async def failed_over(folder: Path, *, synchronous: bool) -> Outcome:
    """Beat, lose the primary, promote, beat on."""
    async with machines_in(folder) as machines:
        databases = machines.databases
        await migrate(dsn_for(machines.postgres_address, OWNER_ROLE, machines.secrets_dir))
        dsn = dsn_for(machines.postgres_address, ORCHESTRATOR_ROLE, machines.secrets_dir)
        async with open_pool(dsn, size_max=2, name=ORCHESTRATOR_ROLE) as pool:
            clock = DeskClock(pool, Settings())
            for _ in range(BEATS):
                await clock.beat()
            standby = databases.machines[1 - databases.primary]
            if not synchronous:
                await run_sql(
                    databases.login(databases.primary),
                    "alter system set synchronous_standby_names = ''; select pg_reload_conf();",
                )
                await asyncio.sleep(BEHIND_S)
                await standby.kill()
                for _ in range(BEATS):
                    await clock.beat()
            confirmed = await pool.fetchval("select beats from desk_clock")
            await databases.machines[databases.primary].kill()
            if not synchronous:
                await standby.start()
                await _answers(databases.login(1 - databases.primary))
            await databases.promote()
            there = await _beats(machines)
            await _beaten(clock)
            return Outcome(synchronous, confirmed, there, await pool.fetchval(SAID))


async def _answers(login: PsqlLogin) -> None:
    """Wait for a server whose pid file still says what it was before it died."""
    async with asyncio.timeout(60):
        while True:
            with suppress(PostgresError):
                await run_sql(login, "select 1")
                return
            await asyncio.sleep(0.2)


async def _beats(machines: Machines) -> int:
    login = machines.databases.login(machines.databases.primary)
    db = await asyncpg.connect(
        host=login.host,
        port=login.port,
        user="postgres",
        password=login.password,
        database="deskbus",
    )
    try:
        beats: int = await db.fetchval("select beats from desk_clock")
        return beats
    finally:
        await db.close()


async def _beaten(clock: DeskClock) -> None:
    """Beat once more, however often it has to be tried."""
    async with asyncio.timeout(60):
        while True:
            try:
                await clock.beat()
            except Unavailable:
                await asyncio.sleep(0.2)
            else:
                return


def main(arguments: Sequence[str] | None = None) -> None:
    """Fail over twice and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.failover", description=__doc__)
    parser.add_argument("--keep", action="store_true")
    given = parser.parse_args(arguments)
    sys.stdout.write("| standby | confirmed | lost | said |\n| --- | --- | --- | --- |\n")
    broken: list[str] = []
    for synchronous in (True, False):
        with open_folder("deskbus-failover-", keep=given.keep) as folder:
            outcome = asyncio.run(failed_over(folder, synchronous=synchronous))
        sys.stdout.write(f"{outcome.row()}\n")
        broken += outcome.broken
    for problem in broken:
        sys.stderr.write(f"BROKEN: {problem}\n")
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main()
