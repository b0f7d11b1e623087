"""Faults: what can be done to a desk, a seeded list of it, and how long each took to heal."""

import asyncio
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from tests.chaos.desk import ChaosDesk

FREEZE_SHORT_S = (0.2, 1.0)
FREEZE_OVER_LEASE_S = 1.0
"""How much longer than its lease a worker is frozen."""

EVERYTHING = "everything"


class Kind(StrEnum):
    """What is done."""

    KILL = "kill"
    FREEZE = "freeze"
    FREEZE_LONG = "freeze past the lease"
    WIPE = "kill, store wiped"
    DOWN = "down"
    """Killed, and not started again for a while; for a desk on several machines."""
    CUT = "cut off"
    SLOW = "slow and lossy"
    """What happens to the cable of a host, with `tests.chaos.machines --namespaces`."""


STRUCK = (Kind.KILL, Kind.FREEZE, Kind.FREEZE_LONG, Kind.WIPE)
"""What a desk on one machine goes through."""


@dataclass(frozen=True)
class Fault:
    """One thing to do, after `wait_s`; `lasts_s` is how long a frozen process stays so."""

    kind: Kind
    target: str
    wait_s: float
    lasts_s: float = 0.0

    @property
    def name(self) -> str:
        """Kind and target; instances of one role count together."""
        return f"{self.kind} {self.target.rstrip('-0123456789')}"


@dataclass(frozen=True)
class Done:
    """A fault that was done, and when by the wall clock. `alone`: the desk was whole before it, and
    the next fault waited until it was whole again."""

    fault: Fault
    began_at: float
    alone: bool = False


def targets(desk: ChaosDesk) -> list[str]:
    """Whatever can be hit."""
    return ["nats", "postgres", *desk.names]


def each_kind(rng: random.Random, names: Sequence[str], lease_s: float) -> list[Fault]:
    """Every kind of fault at least once, in a seeded order: each process is killed, some are frozen
    for a moment, and each sort of process past the lease; everything at once; the store wiped."""
    kills = [(Kind.KILL, name) for name in [*names, EVERYTHING]]
    frozen = [(Kind.FREEZE, name) for name in rng.sample(names, 3)]
    sorts = ("nats", "postgres", "orchestrator-1", "thinker-1", "effector-1", "desk-1")
    frozen += [(Kind.FREEZE_LONG, name) for name in sorts if name in names]
    chosen = [*kills, *frozen, (Kind.WIPE, "nats")]
    rng.shuffle(chosen)
    return [_fault(rng, kind, name, lease_s) for kind, name in chosen]


def at_random(rng: random.Random, names: Sequence[str], lease_s: float, count: int) -> list[Fault]:
    """`count` faults, kills and freezes of single processes more often than the great ones."""
    faults = []
    for _ in range(count):
        kind = rng.choices(STRUCK, weights=[10, 5, 4, 2])[0]
        name = rng.choice([*names, EVERYTHING]) if kind is Kind.KILL else rng.choice(names)
        faults.append(_fault(rng, kind, "nats" if kind is Kind.WIPE else name, lease_s))
    return faults


def _fault(rng: random.Random, kind: Kind, target: str, lease_s: float) -> Fault:
    lasts_s = 0.0
    if kind is Kind.FREEZE:
        lasts_s = rng.uniform(*FREEZE_SHORT_S)
    elif kind is Kind.FREEZE_LONG:
        lasts_s = lease_s + FREEZE_OVER_LEASE_S
    return Fault(kind, target, round(rng.uniform(0.05, 0.6), 3), round(lasts_s, 3))


async def do(desk: ChaosDesk, fault: Fault) -> Done:
    """Do one fault, and undo a freeze."""
    await asyncio.sleep(fault.wait_s)
    began_at = time.time()
    if fault.kind is Kind.WIPE:
        desk.wipe()
    elif fault.kind in (Kind.DOWN, Kind.CUT, Kind.SLOW):
        await desk.down(fault)
        await asyncio.sleep(fault.lasts_s)
        await desk.up(fault)
    elif fault.kind is Kind.KILL:
        desk.kill(*(targets(desk) if fault.target == EVERYTHING else [fault.target]))
    else:
        desk.freeze(fault.target)
        try:
            await asyncio.sleep(fault.lasts_s)
        finally:
            desk.thaw(fault.target)
    return Done(fault, began_at)
