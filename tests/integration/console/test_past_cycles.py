"""What ended cycles left is read once: the board's work is that of what is new."""

from collections.abc import AsyncIterator, Sequence
from datetime import date
from uuid import UUID, uuid4

import pytest

from libs.postgres.pool import CONSOLE_ROLE, PoolConnection, Record, open_pool
from libs.servers.embedded import Servers
from services.console.store import Store
from services.console.views.past_cycles import PastCycles
from tests.integration.console.conftest import AS_OF, Made

ALL = (date.min, date.max, 1_000)
PICKS = {"picks": [{"ticker": "AAPL"}, {"ticker": "IBM"}], "sell_recommendations": []}


class Watched(Store):
    """The store, with what was read whole."""

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self.cycles_read: list[UUID] = []
        self.memories_read: list[UUID] = []

    async def cycles_whole(self, cycle_ids: Sequence[UUID]) -> Sequence[Record]:
        self.cycles_read += cycle_ids
        return await super().cycles_whole(cycle_ids)

    async def outcomes_of(self, op_ids: Sequence[UUID], sessions: int) -> Sequence[Record]:
        self.memories_read += op_ids
        return await super().outcomes_of(op_ids, sessions)


@pytest.fixture
async def store(servers: Servers) -> AsyncIterator[Watched]:
    async with open_pool(servers.postgres_dsn(CONSOLE_ROLE), size_max=1) as pool:
        yield Watched(pool)


async def one_more(db: PoolConnection, made: Made) -> Made:
    """A cycle like the one that was made, accepted after it."""
    names = [
        row["column_name"]
        for row in await db.fetch(
            "select column_name from information_schema.columns"
            " where table_schema = 'public' and table_name = 'cycles'"
        )
    ]
    other = {
        "cycle_id": "$2::uuid",
        "idempotency_key": "$2::uuid::text",
        "accepted_at": "clock_timestamp()",
    }
    cycle = Made(db, uuid4(), made.pipelines)
    await db.execute(
        f"insert into cycles ({', '.join(names)})"
        f" select {', '.join(other.get(name, name) for name in names)}"
        " from cycles where cycle_id = $1",
        made.cycle_id,
        cycle.cycle_id,
    )
    return cycle


async def test_a_cycle_is_read_once_and_a_new_one_is_added(
    db: PoolConnection, made: Made, store: Watched
) -> None:
    past = PastCycles(store)
    await made.operation("deciding", "picks", result=PICKS)
    first = await past.newest(*ALL)
    assert first[-1].cycle_id == made.cycle_id
    (run,) = first[-1].runs
    assert (run.pipeline, run.account, run.provider) == ("rules", "main", "rules")
    assert (run.completed, run.picks, run.vetoes, run.usage.tokens) == (True, 2, 0, 100)
    store.cycles_read.clear()

    new = await one_more(db, made)
    second = await past.newest(*ALL)

    assert second == [*first, second[-1]]
    assert (second[-1].cycle_id, second[-1].as_of) == (new.cycle_id, AS_OF)
    assert second[-1].runs[0].picks == 0, "nothing was picked in the new one"
    assert store.cycles_read == [new.cycle_id]


async def test_a_memory_is_read_once_with_the_outcomes_that_it_tells(
    made: Made, store: Watched
) -> None:
    pick = {"ticker": "AAPL", "action": "sell", "fate": "filled", "return_pct": "-1.5"}
    unfilled, unknown = {**pick, "fate": "rejected"}, {**pick, "return_pct": None}
    outcome = {"cycle_id": str(made.cycle_id), "pipeline": "rules"}
    told = [
        {**outcome, "sessions": 5, "picks": [pick, unfilled, unknown]},
        {**outcome, "sessions": 20, "picks": [{**pick, "return_pct": "9"}]},
    ]
    memory = await made.operation("memorizing", "memorize", result={"outcomes": told})
    past = PastCycles(store)

    for _ in range(2):
        found = [
            each
            for each in await past.outcomes(["main"], AS_OF, 100)
            if each.cycle_id == made.cycle_id
        ]
        assert [(each.ticker, each.action, str(each.return_pct)) for each in found] == [
            ("AAPL", "sell", "-1.5")
        ]

    assert store.memories_read.count(memory) == 1


async def test_what_is_kept_has_a_bound_and_what_is_dropped_is_read_again(
    db: PoolConnection, made: Made, store: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("services.console.views.past_cycles.CYCLES_KEPT_MAX", 1)
    past = PastCycles(store)
    await one_more(db, made)
    first = await past.newest(*ALL)
    store.cycles_read.clear()

    assert await past.newest(*ALL) == first
    assert set(store.cycles_read) == {cycle.cycle_id for cycle in first[:-1]}
