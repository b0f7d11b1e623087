"""One key takes every connection that NATS gives it, and asks for more: is the desk still usable?

For each identity in turn: 1,024 connections are tried under its key and all that succeed are held.
Meanwhile `deskbus halt` must answer within 2 seconds, and a killed execution must be back and
answer a halt within 15. The desk runs as a process for each service, as it is deployed.
"""

import argparse
import asyncio
import os
import signal
import sys
import tempfile
import time
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from contracts.halt import HaltTrading
from contracts.subjects.halts import HALT
from contracts.subjects.subject import USERS
from libs.bus.client import DeskNotReachable, open_client
from libs.bus.permissions import permissions
from libs.keys.credentials import nkey_seed_path
from libs.telemetry.logging import configure_logging
from services.cli.shell.running import RunningDesk
from tests.chaos.started_desk import deskbus, started_desk
from tests.fakes.held_connections import PONG, held_connections

TRIES = 1_024
HALT_S_MAX = 2.0
BACK_S_MAX = 15.0
POLL_S = 0.2


@dataclass(frozen=True)
class Outcome:
    """What one key held, and how the desk did meanwhile, in seconds."""

    thief: str
    held: int
    halt_s: float
    alone_s: float
    """What a halt took before, with nothing held: a machine under other load is slow by itself."""
    back_s: float

    @property
    def holds(self) -> bool:
        """True where both limits were kept."""
        return self.halt_s <= max(HALT_S_MAX, self.alone_s + 1) and self.back_s <= BACK_S_MAX


async def attack(thief: str, desk: RunningDesk, alone_s: float) -> Outcome:
    """Hold one key's connections; halt; kill execution; wait for it."""
    async with held_connections(
        desk.nats_url, nkey_seed_path(desk.secrets_dir, thief), TRIES
    ) as answers:
        halt_s = await _timed(deskbus("halt"))
        os.kill(_execution(desk), signal.SIGKILL)
        back_s = await _timed(_back(desk))
    return Outcome(thief, answers[PONG.decode().strip()], halt_s, alone_s, back_s)


async def _timed(work: Awaitable[None]) -> float:
    began = time.monotonic()
    await work
    return time.monotonic() - began


def _execution(desk: RunningDesk) -> int:
    children = psutil.Process(desk.pid).children(recursive=True)
    return next(one.pid for one in children if any("execution" in each for each in one.cmdline()))


async def _back(desk: RunningDesk) -> None:
    identity, spare, *_ = USERS
    while True:
        try:
            async with open_client(desk.nats_url, desk.secrets_dir, identity, spare=spare) as bus:
                await bus.ask(HALT, HaltTrading(account=None), timeout_s=1)
                return
        except DeskNotReachable:
            await asyncio.sleep(POLL_S)


async def attacks(thieves: Sequence[str], folder: Path) -> Sequence[Outcome]:
    """One attack after the other on one desk."""
    async with started_desk(folder, "--processes", "--no-http") as desk:
        alone_s = await _timed(deskbus("halt"))
        return [await attack(thief, desk, alone_s) for thief in thieves]


def _line(outcome: Outcome) -> str:
    verdict = "ok" if outcome.holds else "TOO LATE"
    return (
        f"{outcome.thief:<18} held {outcome.held:>3}  halt {outcome.halt_s:4.1f} s "
        f"(alone {outcome.alone_s:.1f} s)  execution back {outcome.back_s:4.1f} s  {verdict}"
    )


def main() -> None:
    """Exit 1 where a limit was not kept."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keys", nargs="*", default=sorted(permissions()))
    chosen = parser.parse_args()
    configure_logging("error")
    with tempfile.TemporaryDirectory() as folder:
        outcomes = asyncio.run(attacks(chosen.keys, Path(folder)))
    for outcome in outcomes:
        print(_line(outcome))  # noqa: T201
    sys.exit(not all(outcome.holds for outcome in outcomes))


if __name__ == "__main__":
    main()
