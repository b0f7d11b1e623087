"""Which configurations count as tried on a path's assets and sessions: read from real tables."""

from collections.abc import AsyncIterator, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from contracts.study import Study, StudyKind
from libs.postgres.pool import STUDY_ROLE, Pool, PoolConnection, open_pool
from libs.servers.embedded import Servers
from services.study.record import UnreadableStudy
from services.study.tried import mark, tried
from tests.integration.console.conftest import Made
from tests.unit.services.strategy_results import design

SESSIONS = tuple(date(2012, 6, 25) + timedelta(days=number) for number in range(4))


@pytest.fixture
async def pool(servers: Servers) -> AsyncIterator[Pool]:
    """The study service's own connections, with its rights."""
    async with open_pool(servers.postgres_dsn(STUDY_ROLE), size_max=2) as held:
        yield held


def study(**fields: Any) -> Study:
    """A path on a ticker that no other test has."""
    return Study.model_validate(
        {
            "name": f"s{uuid4().hex[:12]}",
            "kind": "path",
            "dates": {"first": SESSIONS[0], "last": SESSIONS[-1]},
            "universe": ["AAPL", "IBM"],
            "arms": [{"name": "coin", "provider": "coin"}],
            **fields,
        }
    )


def own_universe() -> list[str]:
    return [f"T{uuid4().hex[:6].upper()}", f"T{uuid4().hex[:6].upper()}"]


async def recorded(
    db: PoolConnection,
    file: Study,
    worth: Sequence[int] = (),
    *,
    status: str = "completed",
    sessions: Sequence[date] = SESSIONS,
) -> Study:
    """The study as it stands when its cells have run; the accounts of a path have this worth."""
    at = datetime.now(UTC)
    await db.execute(
        "insert into studies (study_id, name, sha256, body, status, cells, next_cell, ended_at)"
        " values ($1, $2, $3, $4, $5, 4, 4, $6)",
        uuid4(),
        file.name,
        file.sha256,
        file.model_dump_json().encode(),
        status,
        at,
    )
    if worth and file.kind is StudyKind.PATH:
        for arm in file.arms:
            account = file.account(arm.name, 0)
            await db.execute(
                "insert into accounts (account, currency, clock, starting_cash, limits, opened_on)"
                " values ($1, 'USD', $2, 1000, '{}', $2)",
                account,
                sessions[0],
            )
            for day, cash in zip(sessions, worth, strict=True):
                await db.execute(
                    "insert into snapshots (account, session, cash, positions, equity, realised,"
                    " unrealised, dividends, fees, paid_in, exposure_gross, exposure_net)"
                    " values ($1, $2, $3, 0, $3, 0, 0, 0, 0, 1000, 0, 0)",
                    account,
                    day,
                    cash,
                )
    return file


async def rows(of: Study, pool: Pool) -> list[tuple[str, str, tuple[float, ...]]]:
    return [(it.kind.value, it.source, it.worth) for it in await tried(of, SESSIONS, pool)]


async def test_accounts_of_other_paths_on_its_assets_and_sessions_count_with_their_returns(
    db: PoolConnection, pool: Pool
) -> None:
    universe = own_universe()
    mine = await recorded(db, study(universe=universe), (1000, 1010, 1000, 990))
    near = study(universe=[universe[0], "OTHER"])
    await recorded(db, near, (1000, 1100, 1210, 1210))
    stranger = study(universe=own_universe())
    await recorded(db, stranger, (1000, 1100, 1210, 1210))

    assert await rows(mine, pool) == [
        ("path", near.name, pytest.approx((1.0, 1.1, 1.21, 1.21))),
    ]


async def test_one_that_lacks_a_session_counts_as_a_try_alone_and_one_that_had_none_not_at_all(
    db: PoolConnection, pool: Pool
) -> None:
    universe = own_universe()
    mine = await recorded(db, study(universe=universe), (1000, 1010, 1000, 990))
    part = study(universe=universe)
    await recorded(db, part, (1000, 1100), sessions=SESSIONS[2:])
    earlier = study(universe=universe, dates={"first": "2003-01-06", "last": "2003-01-31"})
    await recorded(db, earlier, (1000,), sessions=[date(2003, 1, 6)])
    await recorded(db, study(universe=universe))

    assert await rows(mine, pool) == [("path", part.name, ())]


async def test_a_study_that_still_runs_does_not_count_and_its_end_changes_the_mark(
    db: PoolConnection, pool: Pool
) -> None:
    universe = own_universe()
    mine = await recorded(db, study(universe=universe), (1000, 1010, 1000, 990))
    other = study(universe=universe)
    await recorded(db, other, (1000, 1100, 1210, 1210), status="running")
    before = await mark(mine, pool)
    assert await rows(mine, pool) == []

    await db.execute("update studies set status = 'completed' where name = $1", other.name)

    assert [source for _, source, _ in await rows(mine, pool)] == [other.name]
    assert await mark(mine, pool) != before
    assert await mark(study(kind="picks"), pool) == ""


async def test_an_other_study_that_cannot_be_read_is_named_and_never_left_out(
    db: PoolConnection, pool: Pool
) -> None:
    mine = await recorded(db, study(universe=own_universe()), (1000, 1010, 1000, 990))
    later = await recorded(db, study())
    newer = b'{"of": "a later version"}'
    await db.execute("update studies set body = $2 where name = $1", later.name, newer)
    try:
        with pytest.raises(UnreadableStudy) as refusal:
            await tried(mine, SESSIONS, pool)
    finally:  # it would spoil every other score
        await db.execute("delete from studies where name = $1", later.name)

    assert refusal.value.message == (
        f"the score of {mine.name} counts what else the desk has tried; study {later.name} is on "
        "record, and this version of Deskbus cannot read it: a later one wrote it; run that one"
    )


async def test_arms_of_picks_count_once_where_no_account_has_them(
    db: PoolConnection, pool: Pool
) -> None:
    universe = own_universe()
    mine = await recorded(db, study(universe=universe), (1000, 1010, 1000, 990))
    arms = [
        {"name": "same", "provider": "coin"},
        {"name": "rules"},
        {"name": "gpt", "provider": "openai", "masked": True},
    ]
    for _ in range(2):
        await recorded(db, study(kind="picks", universe=universe, arms=arms))

    assert [(kind, worth) for kind, _, worth in await rows(mine, pool)] == [("picks", ())] * 2


async def test_strategies_count_by_their_held_out_period_with_their_backtests_equity(
    db: PoolConnection, pool: Pool, made: Made
) -> None:
    universe = own_universe()
    mine = await recorded(db, study(universe=universe), (1000, 1010, 1000, 990))

    async def strategy(name: str, first: str, equity: Sequence[float], tickers: list[str]) -> None:
        spec = design().spec.model_dump(mode="json")
        spec |= {"universe": tickers, "held_out": {"first": first, "last": f"{SESSIONS[-1]}"}}
        sha256 = uuid4().hex * 2
        for again in range(2):
            run = f"{name}-{again}"
            designed = await made.operation("designing", f"design {run}", result={"spec": spec})
            sessions = [f"{day}" for day in SESSIONS[-len(equity) :]]
            result = {"sessions": sessions, "equity": list(equity)}
            tested = await made.operation("backtesting", f"backtest {run}", result=result)
            await db.execute(
                "insert into strategies (cycle_id, name, spec_sha256, as_of, design_op_id,"
                " train_op_id, backtest_op_id) values ($1, $2, $3, $4, $5, $5, $6)",
                made.cycle_id,
                run,
                sha256,
                SESSIONS[-1],
                designed,
                tested if equity else None,
            )

    await strategy("whole", f"{SESSIONS[0]}", (100, 101, 102, 103), [universe[0]])
    await strategy("part", f"{SESSIONS[2]}", (100, 101), universe)
    await strategy("stopped", f"{SESSIONS[0]}", (), universe)
    await strategy("stranger", f"{SESSIONS[0]}", (100, 101, 102, 103), own_universe())

    counted = {source.partition("-")[0]: worth for _, source, worth in await rows(mine, pool)}
    assert counted == {"whole": (100, 101, 102, 103), "part": (), "stopped": ()}
    assert len(await rows(mine, pool)) == 3, "the same spec counts once"
