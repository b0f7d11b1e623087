"""The months' partitions are made ahead; one that cannot be made ends no orchestrator."""

import uuid
from datetime import date
from typing import Any, cast

from libs.postgres.pool import Pool
from libs.postgres.retention import PARENTS
from libs.runtime.settings import Settings
from services.orchestrator.schedulers.sweep import Sweep

EVENT = (
    "insert into state_events (started_on, op_id, seq, cycle_id, type, owner)"
    " values ($1, $2, 0, $2, 'data_read', 'orchestrator')"
)
PLACE = "select tableoid::regclass::text from state_events where op_id = $1"


async def place_of_an_event(pool: Pool, on: date) -> str:
    node = uuid.uuid4()
    await pool.execute(EVENT, on, node)
    place: str = await pool.fetchval(PLACE, node)
    return place


async def test_every_partitioned_table_gets_the_month_and_retention_knows_them_all(
    pool: Pool,
) -> None:
    await pool.execute("select ensure_partitions('2032-05-17')")

    rows = await pool.fetch(
        "select relname, to_regclass(relname || '_2032_05') is not null as has_month"
        " from pg_class where relkind = 'p'"
    )

    assert all(row["has_month"] for row in rows)
    assert {row["relname"] for row in rows} == set(PARENTS)


async def test_a_month_whose_rows_came_before_its_partition_stays_where_they_are(
    pool: Pool,
) -> None:
    none = cast(Any, None)
    sweep = Sweep(pool, none, none, Settings())
    # Nothing could be made in time: the desk did not run, or Postgres was away just then.
    assert await place_of_an_event(pool, date(2031, 1, 31)) == "state_events_rest"

    await sweep.make_partitions(date(2031, 1, 31))

    assert await place_of_an_event(pool, date(2031, 1, 31)) == "state_events_rest"
    assert await place_of_an_event(pool, date(2031, 2, 1)) == "state_events_2031_02"
    await sweep.make_partitions(date(2031, 2, 28))
    assert await place_of_an_event(pool, date(2031, 3, 1)) == "state_events_2031_03"
