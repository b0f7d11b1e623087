"""kill -9 of a service of the desk: training in mid-fit, execution in the middle of an exit."""

import asyncio
import json
import os
import signal
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from decimal import Decimal
from pathlib import Path
from typing import TypeAlias

import asyncpg
import psutil
import pytest

from libs.postgres.pool import dsn_for
from libs.servers.postgres_server import SUPERUSER
from tests.integration.desk.command_line import CommandLine, Said, up

EXAMPLE = Path(__file__).parents[3] / "services/cli/desk/folder/strategy.yaml"
SERVICE = "services.strategy"
EXECUTION = "services.execution"
COMPUTE = "services.strategy.compute"
PATIENCE_S = 60.0
ASK = "cycle request --wait --json"
BLOCKED = "exists (select from pg_locks where not granted"
EXIT = f"{ASK} --kind exit --as-of 2012-10-31"
QUICK = (
    ("DESKBUS_ORCHESTRATOR_LEASE_S", "2"),
    ("DESKBUS_ORCHESTRATOR_SWEEP_S", "0.2"),
    ("DESKBUS_ORCHESTRATOR_RESEND_AFTER_S", "1"),
    ("DESKBUS_ORCHESTRATOR_EPOCHS_MAX", "2"),
    (
        "DESKBUS_LIMITS",
        '{"risk_per_trade_pct_max": 100, "volatility_pct_max": 100, "exits_veto_buys": false}',
    ),
)
"""A desk that notices a death soon, gives an operation two lives, and buys all that it may hold."""
WAITS_TO_COMMIT = """
create function waits_to_commit() returns trigger language plpgsql as
$$ begin perform pg_advisory_xact_lock_shared(1); return null; end $$;
create constraint trigger waits_to_commit after insert on executions
deferrable initially deferred for each row execute function waits_to_commit()
"""
"""Whoever has written an execution's answer waits in its COMMIT, for as long as a test likes."""

Database: TypeAlias = "asyncpg.Connection[asyncpg.Record]"


@pytest.fixture(scope="module")
def deskbus(
    make_open_dir: Callable[[], Path], tmp_path_factory: pytest.TempPathFactory
) -> CommandLine:
    folder = tmp_path_factory.mktemp("desk")
    (folder / "exit_signals.toml").write_text("[default]\nstop_pct = 5\n")
    return CommandLine(make_open_dir() / "data", folder, QUICK)


@pytest.fixture(scope="module")
def desk(deskbus: CommandLine) -> Iterator[psutil.Process]:
    """Every service a process of its own."""
    with up(deskbus, "--processes") as (process, _):
        yield psutil.Process(process.pid)
        process.send_signal(signal.SIGTERM)
        process.wait(PATIENCE_S)


def running(desk: psutil.Process, module: str, but: tuple[int, ...] = ()) -> psutil.Process:
    """The process of the desk that runs a module, once there is one."""
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        for child in desk.children(recursive=True):
            try:
                if child.pid not in but and module in child.cmdline():
                    return child
            except psutil.NoSuchProcess:
                continue
        time.sleep(0.02)
    raise AssertionError(f"{module} never ran")


def killed_in_mid_fit(desk: psutil.Process, but: tuple[int, ...] = ()) -> psutil.Process:
    """The computing process; its service is dead, and it dies with it."""
    computing = running(desk, COMPUTE, but)
    # It may not end before its service is found, too.
    computing.suspend()
    os.kill(running(desk, SERVICE).pid, signal.SIGKILL)
    with suppress(psutil.NoSuchProcess):
        computing.resume()
    gone, _ = psutil.wait_procs([computing], timeout=PATIENCE_S)
    assert gone, "it would go on for nobody"
    return computing


def trained(deskbus: CommandLine) -> Said:
    """What became of the newest training."""
    return deskbus("operations list --type train --limit 1 --json")


def test_a_killed_training_is_taken_up_again_and_the_cycle_completes(
    deskbus: CommandLine, desk: psutil.Process
) -> None:
    with deskbus.started(f"agent trigger --spec {EXAMPLE} --wait --json") as cycle:
        killed_in_mid_fit(desk)
        out, err = cycle.communicate(timeout=PATIENCE_S)
    assert cycle.returncode == 0, err
    assert '"status":"completed"' in out
    [operation] = trained(deskbus).rows
    assert operation["epoch"] == 2


def test_a_training_that_is_killed_time_and_again_fails_with_a_reason(
    deskbus: CommandLine, desk: psutil.Process
) -> None:
    with deskbus.started(f"agent trigger --spec {EXAMPLE} --wait --json") as cycle:
        first = killed_in_mid_fit(desk)
        killed_in_mid_fit(desk, but=(first.pid,))
        out, err = cycle.communicate(timeout=PATIENCE_S)
    assert cycle.returncode == 1, err
    assert "training/train failed" in out
    assert "poison" in out
    [operation] = trained(deskbus).rows
    assert (operation["status"], operation["epoch"]) == ("failed", 2)


# --- execution in the middle of an exit ---------------------------------------------------------


@asynccontextmanager
async def superuser(deskbus: CommandLine) -> AsyncIterator[Database]:
    """A connection that may lock and change every table."""
    desk = json.loads((deskbus.data_dir / "runtime.json").read_text())
    dsn = dsn_for(desk["postgres_dsn"], SUPERUSER, Path(desk["secrets_dir"]))
    db = await asyncpg.connect(dsn)
    try:
        yield db
    finally:
        await db.close()


def holding(deskbus: CommandLine, account: str) -> str:
    """The account, which holds 68 shares of AAPL now."""
    bought = deskbus(f"{ASK} --as-of 2012-06-29 --universe AAPL --account {account}")
    assert bought.code == 0, bought.err
    return account


async def true(db: Database, condition: str, *values: object) -> None:
    """Wait until Postgres finds it so: what another process does there tells nobody."""
    until = time.monotonic() + PATIENCE_S
    while not await db.fetchval(f"select {condition}", *values):
        assert time.monotonic() < until, f"never so: {condition}"
        await asyncio.sleep(0.02)


async def exited_once(db: Database, account: str) -> None:
    """One exit order, one stop on the rest in the place of the entry's, one fill of each market
    order, and balanced books."""
    sales = await db.fetch(
        "select type, status, quantity::int from orders where account = $1 and side = 'sell'"
        " order by type, status",
        account,
    )
    assert [tuple(each) for each in sales] == [
        ("market", "filled", 51),
        ("stop", "cancelled", 68),
        ("stop", "waiting", 17),
    ]
    fills = "select count(*) from fills join orders using (order_id) where account = $1"
    assert await db.fetchval(fills, account) == 2
    unbalanced = await db.fetch(
        "select from postings where account = $1 group by entry_id having sum(amount) <> 0", account
    )
    assert unbalanced == []
    held = "select quantity::int from balances where account = $1 and book = 'position'"
    assert await db.fetchval(held, account) == 17


async def test_an_execution_killed_before_its_commit_leaves_nothing_and_the_next_exits_once(
    deskbus: CommandLine, desk: psutil.Process
) -> None:
    account = holding(deskbus, "before")
    async with superuser(deskbus) as db:
        stopped = db.transaction()
        await stopped.start()
        await db.execute("lock table executions in exclusive mode")
        with deskbus.started(f"{EXIT} --account {account}") as cycle:
            await true(db, f"{BLOCKED} and relation = 'executions'::regclass)")
            os.kill(running(desk, EXECUTION).pid, signal.SIGKILL)
            await stopped.rollback()
            out, err = cycle.communicate(timeout=PATIENCE_S)
        assert cycle.returncode == 0, out + err
        await exited_once(db, account)


async def test_an_execution_killed_between_its_commit_and_its_answer_has_exited_once(
    deskbus: CommandLine, desk: psutil.Process
) -> None:
    account = holding(deskbus, "between")
    async with superuser(deskbus) as db:
        await db.execute(WAITS_TO_COMMIT)
        await db.execute("select pg_advisory_lock(1)")
        with deskbus.started(f"{EXIT} --account {account}") as cycle:
            await true(db, f"{BLOCKED} and locktype = 'advisory')")
            execution = running(desk, EXECUTION)
            execution.suspend()  # it never hears that it has committed
            await db.execute("select pg_advisory_unlock(1)")
            await true(db, "count(*) = 2 from executions where account = $1", account)
            execution.kill()
            out, err = cycle.communicate(timeout=PATIENCE_S)
        assert cycle.returncode == 0, out + err
        await db.execute("drop function waits_to_commit cascade")
        await exited_once(db, account)


async def test_everything_is_sold_once_though_execution_and_the_command_are_killed(
    deskbus: CommandLine, desk: psutil.Process
) -> None:
    for typed in ("--as-of 2012-06-29", "--kind exit --as-of 2012-07-02"):
        done = deskbus(f"{ASK} {typed} --account all")
        assert done.code == 0, done.err
    typed = "exit now --all --account all"
    (shown,) = deskbus(f"{typed} --json").rows
    typed += f" --hash {shown['hash']} --json"
    async with superuser(deskbus) as db:
        stopped = db.transaction()
        await stopped.start()
        await db.execute("lock table executions in exclusive mode")
        with deskbus.started(typed) as first:
            await true(db, f"{BLOCKED} and relation = 'executions'::regclass)")
            first.kill()
            os.kill(running(desk, EXECUTION).pid, signal.SIGKILL)
        with deskbus.started(typed) as second:
            # The next execution waits behind the dead one, whose transaction is still there.
            await true(db, "count(*) > 1 from pg_locks where not granted")
            await stopped.rollback()
            out, err = second.communicate(timeout=PATIENCE_S)
        assert second.returncode == 0, out + err
        sold = await db.fetch(
            "select ticker, quantity, status from orders"
            " where account = 'all' and side = 'sell' and type = 'market' order by ticker"
        )
    held = sorted((line["ticker"], Decimal(line["held"])) for line in shown["lines"])
    assert len(held) > 1
    assert [(row["ticker"], row["quantity"]) for row in sold] == held
    assert {row["status"] for row in sold} == {"filled"}
    assert deskbus("portfolio all --json").rows[0]["portfolio"]["positions"] == []
