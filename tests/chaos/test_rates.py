"""Two replicas of research, and services in a third process, under one rate limit.

The model is a process that notes when each request arrives.
"""

import asyncio
import json
from collections.abc import Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from contracts.cycle import CycleStatus
from libs.runtime.model_settings import Rate
from services.orchestrator.group.rate_limits import CAPACITY_SHARE, LATE_S, MINUTE_S
from tests.chaos.crash_matrix import (
    MANNER,
    PAID_CALLS,
    MortalDesk,
    mortal_desk,
    paid_cycle,
)
from tests.fakes.model_process import Manner

LIMIT = 120
CYCLES = 3
AT_ONCE = LIMIT * CAPACITY_SHARE
EACH_S = (MINUTE_S + LATE_S) / (LIMIT - AT_ONCE)
"""With this limit a call begins every 0.7 s, after 30 at once."""
CLOSED_S = 4.0
ON_THE_WAY_S = 0.5
"""From the model's answer to its record, where the wait begins to count."""
LEASE_S = 10.0
"""As by default: nobody is hit here, and on a busy machine a short one would be lost."""
DEADLINE_S = 120.0


def folder_in(open_dir: Path, name: str) -> Path:
    folder = open_dir / name
    folder.mkdir(mode=0o755)
    return folder


async def cycles(desk: MortalDesk, count: int) -> list[CycleStatus | None]:
    async with asyncio.timeout(DEADLINE_S):
        return await asyncio.gather(*(desk.user.run(paid_cycle()) for _ in range(count)))


@pytest.mark.soak
async def test_in_no_stretch_of_time_two_replicas_ask_faster_than_the_limit(open_dir: Path) -> None:
    rate = Rate(calls_per_minute_max=LIMIT)
    folder = folder_in(open_dir, "paced")
    async with mortal_desk(folder, {"research": 2}, MANNER, rate, LEASE_S) as desk:
        assert await cycles(desk, CYCLES) == [CycleStatus.COMPLETED] * CYCLES
        at = sorted(line["at"] for line in desk.model.asked())
        passed = (folder / "passed.jsonl").read_text().splitlines()
    assert len(at) == CYCLES * PAID_CALLS
    for (first, sooner), (last, later) in combinations(enumerate(at), 2):
        assert last - first + 1 <= AT_ONCE + (later - sooner + LATE_S) / EACH_S
    assert at[-1] - at[0] >= (len(at) - AT_ONCE) * EACH_S - LATE_S, "the limit was never reached"
    callers = {line.split('"pid": ')[1].split(",")[0] for line in passed if '"call"' in line}
    assert len(callers) == 2


async def test_a_replica_keeps_to_the_retry_after_that_another_was_told(open_dir: Path) -> None:
    folder = folder_in(open_dir, "closed")
    manner = Manner(appetites=MANNER.appetites, closed={"planner": CLOSED_S})
    async with mortal_desk(folder, {"research": 2}, manner, lease_s=LEASE_S) as desk:
        assert await cycles(desk, CYCLES) == [CycleStatus.COMPLETED] * CYCLES
        (told,) = await refusals(desk)
        lines = [json.loads(line) for line in (folder / "passed.jsonl").read_text().splitlines()]
    asked_later = [each for each in lines if each.get("what") == "reserve" and each["at"] > told]
    called = {place_of(each): each["at"] for each in lines if each.get("what") == "call"}
    begins = [called[place_of(each)] - told for each in asked_later]
    assert min(begins) >= CLOSED_S - ON_THE_WAY_S
    assert max(begins) >= CLOSED_S
    assert len({each["pid"] for each in asked_later}) == 2


async def refusals(desk: MortalDesk) -> list[float]:
    """When the answers with a Retry-After were put on record."""
    async with desk.database() as db:
        rows = await db.fetch(
            "select recorded_at from journal"
            " where convert_from(entry, 'UTF8')::json #>> '{reply,fault,retry_after_s}' is not null"
        )
    return [row["recorded_at"].timestamp() for row in rows]


def place_of(line: Mapping[str, Any]) -> tuple[str, int]:
    """The operation, and which of its paid calls: none of these has a second claim."""
    return line["op_id"], line["number"]
