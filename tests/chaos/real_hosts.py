"""Real decision and exit cycles while hosts are cut off and come back: the ledger's books hold.

    python -m tests.chaos.real_hosts --cycles 120 [--seed 1] [--keep]

The servers, hosts and faults of `tests.chaos.machines --namespaces`, with the shipped services in
the place of the made-up ones, and the accounts of tests.chaos.real_cycles, which trade. Root only.
Exits 1 where a cycle failed or a promise of tests.chaos.books was broken.
"""

import argparse
import asyncio
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from libs.telemetry.logging import configure_logging
from tests.chaos import faults
from tests.chaos.faults import Fault
from tests.chaos.hosts import Network, network_of, problem
from tests.chaos.load import User, user_of
from tests.chaos.machines import NODES, SeveralDesk, cuts, several_desk
from tests.chaos.real_cycles import (
    ACCOUNTS,
    CYCLES_A_FAULT,
    EXITS,
    SETTINGS,
    Outcome,
    Trading,
    told,
)
from tests.chaos.soak import RECOVERY_TIMEOUT_S
from tests.open_folder import open_folder


class HostsRun(Trading[Fault]):
    """One run on hosts; the next fault waits until the desk is whole."""

    def __init__(self, desk: SeveralDesk, user: User, seed: int) -> None:
        super().__init__(desk, user, seed)
        self._several = desk
        self.stood_s: list[tuple[str, float]] = []
        """Faults, and how many seconds after each one the next cycle ended."""

    async def strike(self, fault: Fault) -> None:
        """Do it, wait until every process is there again, and note how long the desk stood."""
        before = time.time()
        await faults.do(self._several, fault)
        # All that might begin may have ended while it lasted.
        async with self._news:
            self._begins_below = max(self._begins_below, self._ended + ACCOUNTS)
            self._news.notify_all()
        await self._until(min(self._ended + 1, self._cycles))
        async with asyncio.timeout(RECOVERY_TIMEOUT_S):
            await self._several.whole()
        async with self._several.database() as db:
            seconds = await db.fetchval(
                "select min(extract(epoch from ended_at))::float8 - $1 from cycles"
                " where ended_at > to_timestamp($1)",
                before + fault.wait_s,
            )
        if seconds is not None:
            self.stood_s.append((fault.name, round(seconds, 1)))


async def real_hosts(
    cycles: int, seed: int, folder: Path, struck: Sequence[Fault], network: Network
) -> tuple[Outcome, list[tuple[str, float]]]:
    """Bring hosts and desk up below `folder`, run, judge."""
    rules = folder / "exit_signals.toml"
    rules.write_text(EXITS)
    settings = {**SETTINGS, "exit_rules_file": rules}
    async with (
        several_desk(folder, settings, network, real=True) as desk,
        user_of(desk.settings) as user,
    ):
        run = HostsRun(desk, user, seed)
        await run.chaos(cycles, struck)
        return await run.judge(), run.stood_s


def main() -> None:
    """Run and tell."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.real_hosts", description=__doc__)
    parser.add_argument("--cycles", type=int, default=120)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", action="store_true")
    given = parser.parse_args()
    configure_logging("error")
    if why := problem(slow=True):
        sys.exit(why)
    a_round = len(cuts(given.seed, 1))
    struck = cuts(given.seed, max(given.cycles // CYCLES_A_FAULT // a_round, 1))
    with open_folder("deskbus-hosts-", keep=given.keep) as folder, network_of(NODES) as network:
        outcome, stood_s = asyncio.run(
            real_hosts(given.cycles, given.seed, folder, struck, network)
        )
    sys.stdout.write(f"{told(outcome)}\n")
    for name, seconds in stood_s:
        sys.stdout.write(f"{name}: next completed cycle after {seconds} s\n")
    for each in outcome.broken:
        sys.stderr.write(f"BROKEN: {each}\n")
    sys.exit(1 if outcome.broken else 0)


if __name__ == "__main__":
    main()
