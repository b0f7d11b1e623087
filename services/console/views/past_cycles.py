"""Ended decision cycles, each read once: what has ended stays as it is, so only the new is read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any
from uuid import UUID

import orjson

from contracts.memory import OUTCOME_SESSIONS
from contracts.stages import Substitute, Why, fell_back
from contracts.types import Usage
from libs.postgres.pool import Record
from services.console import logic
from services.console.immutable_cache import ImmutableCache
from services.console.store import Store, sql
from services.console.views.standings import Past, PastTrips

CYCLES_KEPT_MAX = 4_000
"""About a kilobyte each."""
MEMORIES_KEPT_MAX = 16_000
JUDGED_AFTER = OUTCOME_SESSIONS[0]
"""Sessions after which a pick is a hit or not."""
COMPLETED = "completed"


@dataclass(frozen=True, slots=True)
class Run:
    """One pipeline of a cycle: what it used, what it picked, and how much of that was vetoed.

    `seat` is the account that it trades in the long run: where it takes turns, the one whose turns
    they are, whichever account this turn has given it.
    """

    pipeline: str
    provider: str
    account: str
    seat: str
    completed: bool
    usage: Usage = Usage()
    picks: int = 0
    vetoes: int = 0
    substitutes: tuple[Substitute, ...] = ()

    @property
    def fell_back(self) -> bool:
        """Whether its decision rests on a fallback."""
        return fell_back(self.substitutes)

    @property
    def set_stages(self) -> Sequence[Substitute]:
        """The stages that another answered by the settings, which are part of what it is."""
        return [one for one in self.substitutes if one.why is Why.SETTING]

    @property
    def key(self) -> str:
        """The row of the leaderboard that it counts for, as `rules@main`."""
        return f"{self.pipeline}@{self.seat}"


@dataclass(frozen=True, slots=True)
class PastCycle:
    """An ended decision cycle; `digest` is the operation that named its candidates, if one did."""

    cycle_id: UUID
    as_of: date
    runs: tuple[Run, ...]
    digest: UUID | None


@dataclass(frozen=True, slots=True)
class PastOutcome:
    """The outcome of one filled pick in a memory: its return `JUDGED_AFTER` sessions later."""

    cycle_id: UUID
    pipeline: str
    ticker: str
    action: str
    return_pct: Decimal


class PastCycles:
    """Reads ended decision cycles, and the outcomes that memories tell, and keeps what was read.

    Which of them are wanted is asked each time, by their ids; the rest is read of new ones alone.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._cycles = ImmutableCache(self._read_cycles, CYCLES_KEPT_MAX)
        self._memories = ImmutableCache(self._read_memories, MEMORIES_KEPT_MAX)
        self._trips = PastTrips(store)

    async def newest(self, first: date, last: date, limit: int) -> Sequence[PastCycle]:
        """The newest ended decision cycles with an as_of between the days, in order of time."""
        cycles = await self._store.column(sql.decision_cycles, first, last, limit)
        return await self._cycles.of(cycles)

    async def outcomes(
        self, accounts: Sequence[str], since: date, limit: int
    ) -> Sequence[PastOutcome]:
        """The outcomes of filled picks in these accounts' newest memories, `limit` of each; some
        come twice."""
        memories = await self._store.column(sql.memories_of, list(accounts), since, limit)
        return [outcome for memory in await self._memories.of(memories) for outcome in memory]

    async def trips(self, accounts: Sequence[str]) -> Mapping[str, Past | None]:
        """The closed round trips of each account; None where it has too many entries to count."""
        return await self._trips.of(accounts)

    async def _read_cycles(self, new: Sequence[UUID]) -> Mapping[UUID, PastCycle]:
        rows = await self._store.cycles_whole(new)
        runs = {
            (row["cycle_id"], row["pipeline"]): row
            for row in await self._store.rows(sql.runs_of_cycles, list(new))
        }
        return {row["cycle_id"]: _cycle(row, runs) for row in rows}

    async def _read_memories(self, new: Sequence[UUID]) -> Mapping[UUID, Sequence[PastOutcome]]:
        outcomes: dict[UUID, list[PastOutcome]] = {op_id: [] for op_id in new}
        for row in await self._store.outcomes_of(new, JUDGED_AFTER):
            outcome = dict(row)
            outcomes[outcome.pop("op_id")].append(PastOutcome(**outcome))
        return outcomes


def _cycle(row: Record, runs: Mapping[tuple[UUID, str], Record]) -> PastCycle:
    """The cycle's row and those of its pipelines, without their bodies."""
    lanes, request = orjson.loads(row["state"])["lanes"], orjson.loads(row["request"])
    digest = lanes.get(logic.SHARED, {}).get("outputs", {}).get("signal_digest")
    return PastCycle(
        cycle_id=row["cycle_id"],
        as_of=row["as_of"],
        runs=tuple(
            _run(
                asked,
                _seat(asked, request.get("rotation")),
                lanes[asked["name"]],
                runs.get((row["cycle_id"], asked["name"])),
            )
            for asked in request["pipelines"]
        ),
        digest=UUID(digest) if digest else None,
    )


def _seat(asked: Mapping[str, str], rotation: Mapping[str, Any] | None) -> str:
    """Beside its turns on the rotation's account a pipeline trades the one of its own name."""
    if rotation and asked["name"] in rotation["order"] and asked["account"] == asked["name"]:
        return str(rotation["account"])
    return asked["account"]


def _run(
    asked: Mapping[str, str], seat: str, lane: Mapping[str, Any], counted: Record | None
) -> Run:
    return Run(
        pipeline=asked["name"],
        provider=asked["provider"],
        account=asked["account"],
        seat=seat,
        completed=lane["status"] == COMPLETED,
        usage=logic.usage_of(counted) if counted else Usage(),
        picks=counted["picks"] if counted else 0,
        vetoes=counted["vetoes"] if counted else 0,
        substitutes=tuple(map(Substitute.model_validate, lane.get("substitutes", ()))),
    )
