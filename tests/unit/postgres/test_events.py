"""Ranks of events, without a database."""

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn, cast
from uuid import UUID, uuid4

from contracts.audit import EventType
from libs.postgres.events import CYCLES_KNOWN_MAX, Ranks
from libs.postgres.pool import Pool


class Counts:
    """A database that says of every cycle that so many of its events came before."""

    def __init__(self, before: int) -> None:
        self.asked: list[UUID] = []
        self._before = before

    async def fetch(self, _: str, cycles: Sequence[UUID], *after: int) -> list[dict[str, Any]]:
        self.asked += cycles
        return [{"cycle_id": cycle, "count": self._before} for cycle in cycles]


class Unwalked(OrderedDict[UUID, int]):
    """Is looked into, and never gone through."""

    def __iter__(self) -> Iterator[UUID]:
        return self._walked()

    def keys(self) -> Any:
        return self._walked()

    def _walked(self) -> NoReturn:
        raise AssertionError("all cycles that are known were gone through")


def row(cycle: UUID, kind: EventType = EventType.TOOL_CALLED) -> dict[str, Any]:
    return {"cycle_id": cycle, "type": kind}


async def ranked(ranks: Ranks, db: Counts, *rows: dict[str, Any]) -> Sequence[int]:
    return await ranks.of(cast("Pool", db), rows, (0, 0))


async def test_a_cycle_is_counted_once_and_then_goes_by_one() -> None:
    ranks, db, old, new = Ranks(), Counts(before=7), uuid4(), uuid4()
    first = row(new, EventType.CYCLE_ACCEPTED)
    assert await ranked(ranks, db, row(old), first, row(old), row(new)) == [8, 1, 9, 2]
    assert await ranked(ranks, db, row(new), row(old)) == [3, 10]
    assert db.asked == [old]


async def test_a_few_rows_cost_the_same_however_many_cycles_are_known() -> None:
    ranks, db, known = Ranks(), Counts(before=0), uuid4()
    await ranked(ranks, db, row(known))
    ranks._counts = Unwalked(ranks._counts.items())
    assert await ranked(ranks, db, row(known), row(uuid4())) == [2, 1]


async def test_no_more_cycles_are_known_than_the_limit() -> None:
    ranks, db = Ranks(), Counts(before=0)
    await ranked(ranks, db, *(row(uuid4()) for _ in range(CYCLES_KNOWN_MAX + 5)))
    assert len(ranks._counts) == CYCLES_KNOWN_MAX
