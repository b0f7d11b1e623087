"""Cycles a second by the number of research processes, against a model that takes a second a call.

    python -m tests.chaos.replicas [--replicas 1 2 4] [--cycles 24]

All cycles are requested at once. The model takes any number of calls at the same time, so what is
measured is the desk: how many commands its processes work on at once, and what the machine gives.
"""

import argparse
import asyncio
import os
import sys
import time
from pathlib import Path

from libs.telemetry.logging import configure_logging
from tests.chaos.crash_matrix import mortal_desk, paid_cycle
from tests.fakes.model_process import Manner
from tests.open_folder import open_folder

CALL_S = 1.0
LIMIT_S = 600.0


async def measure(folder: Path, replicas: int, cycles: int) -> str:
    """A row of the table: cycles a second, and the calls that were made."""
    manner = Manner(delay_s=CALL_S)
    async with mortal_desk(folder, {"research": replicas}, manner, lease_s=30.0) as desk:
        await desk.user.run(paid_cycle())
        asked = len(desk.model.asked())
        began = time.monotonic()
        async with asyncio.timeout(LIMIT_S):
            statuses = await asyncio.gather(*(desk.user.run(paid_cycle()) for _ in range(cycles)))
        took_s = time.monotonic() - began
        calls = len(desk.model.asked()) - asked
    completed = sum(status == "completed" for status in statuses)
    load = os.getloadavg()[0]
    return (
        f"| {replicas} | {completed} of {cycles} | {took_s:.1f} | {cycles / took_s:.2f} "
        f"| {calls / took_s:.1f} | {load:.1f} |"
    )


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.replicas", description=__doc__)
    parser.add_argument("--replicas", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--cycles", type=int, default=24)
    given = parser.parse_args()
    configure_logging("error")
    sys.stdout.write("| research | completed | s | cycles/s | calls/s | load |\n")
    sys.stdout.write("| ---: | ---: | ---: | ---: | ---: | ---: |\n")
    for replicas in given.replicas:
        with open_folder("deskbus-replicas-") as folder:
            row = asyncio.run(measure(folder, replicas, given.cycles))
        sys.stdout.write(f"{row}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
