"""An exit cycle over many positions: `python -m benchmarks.exits [POSITIONS]`.

A desk in this process, on made-up prices of tickers that all turned in the last month, so that
every position is to be sold with a stop on the rest: the worst case. The account buys them all
beforehand, and is brought to the session before. Then one cycle, from the request to its end, with
the time of each step, the processor time, and the memory of the process.
"""

import asyncio
import random
import resource
import sys
import tempfile
import time
from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from contracts.account import AccountLimits, OpenBooks
from contracts.cycle import EXIT, Budgets, CycleRequest
from contracts.cycle_query import CycleQuery, CycleView
from contracts.execution import ExecuteDecisions
from contracts.message import MESSAGE_BYTES_MAX, Pipeline
from contracts.operation import OperationsPage, OperationsQuery
from contracts.reasons import Reason, Speaks
from contracts.risk import DecisionAction, DecisionValidation, Evidence, PortfolioDecision
from contracts.subjects.cycles import CYCLE, REQUEST_CYCLE
from contracts.subjects.operations import OPERATIONS
from contracts.trader import StockPick
from contracts.types import Money
from libs.broker.paper import PaperBroker
from libs.bus.client import open_client
from libs.market.calendar import exchange_calendar
from libs.market.sources import fills_of, market_of, rates_of
from libs.postgres.pool import (
    CONSOLE_ROLE,
    EXECUTION_ROLE,
    ORCHESTRATOR_ROLE,
    dsn_for,
    open_pool,
)
from libs.quant.risk.evaluation import proposal_hash
from libs.runtime import ids
from libs.runtime.settings import Settings
from libs.telemetry.logging import configure_logging
from services import launcher
from services.execution.handler import Trading, execute_decisions, open_books
from services.execution.reads import Reads
from tests.fakes.on_record import put_on_record

POSITIONS: Final = 500
BOUGHT, BEFORE, AS_OF = date(2012, 9, 28), date(2012, 10, 26), date(2012, 10, 31)
FIRST, LAST = date(2012, 3, 1), date(2012, 11, 2)
CASH: Final = Decimal(100_000_000)
SHARES: Final = Decimal(100)
BOUGHT_AT_ONCE: Final = 50
ACCOUNT: Final = "main"
CYCLE_TIME_MAX_S: Final = 300.0
MEGABYTE: Final = 1e6


def write_prices(folder: Path, tickers: list[str]) -> None:
    """Recorded prices: seven months up, then one down by a tenth."""
    sessions = exchange_calendar().sessions(FIRST, LAST)
    for ticker in tickers:
        chance = random.Random(ticker)
        price, rows = 80 + 40 * chance.random(), ["date,open,high,low,close,volume"]
        for day in sessions:
            drift = -0.005 if (day.year, day.month) == (2012, 10) else 0.001
            price *= 1 + drift + 0.004 * (chance.random() - 0.5)
            rows.append(
                f"{day},{price:.2f},{price * 1.001:.2f},{price * 0.999:.2f},{price:.2f},1000"
            )
        (folder / f"{ticker}.csv").write_text("\n".join(rows) + "\n")


async def bought(settings: Settings, tickers: list[str]) -> None:
    """Buy all of them as execution does, and bring the account to the session before."""
    market = market_of(settings)
    dsns = [
        dsn_for(settings.postgres_address, role, settings.secrets_path)
        for role in (EXECUTION_ROLE, ORCHESTRATOR_ROLE)
    ]
    async with open_pool(dsns[0]) as pool, open_pool(dsns[1]) as orchestrator:
        reads = Reads(market, fills_of(settings), rates_of(settings))
        trading = Trading(pool, reads, PaperBroker(Decimal(5), Decimal(5)), CASH)
        opened = books(BOUGHT)
        await open_books(opened, await put_on_record(orchestrator, opened), trading=trading)
        for first in range(0, len(tickers), BOUGHT_AT_ONCE):
            prices = {
                ticker: Decimal(str((await market.bars(ticker, BOUGHT, 1))["close"][-1]))
                for ticker in tickers[first : first + BOUGHT_AT_ONCE]
            }
            bought = purchase(prices)
            journal = await put_on_record(orchestrator, bought)
            await execute_decisions(bought, journal, trading=trading)
        later = books(BEFORE)
        await open_books(later, await put_on_record(orchestrator, later), trading=trading)


def envelope(step: str, as_of: date) -> dict[str, Any]:
    """What every command says."""
    return {
        "cycle_id": uuid4(),
        "op_id": uuid4(),
        "as_of": as_of,
        "now": datetime.now(UTC),
        "pipeline": Pipeline(name="rules", account=ACCOUNT),
        "state": step,
        "step": step,
        "workflow_version": 1,
        "seed": 0,
    }


def books(as_of: date) -> OpenBooks:
    """The account brought to a session."""
    request = CycleRequest(idempotency_key="bench", budgets=Budgets())
    return OpenBooks(**envelope("books", as_of), request=request)


def purchase(prices: Mapping[str, Decimal]) -> ExecuteDecisions:
    """An order for SHARES of each."""
    decisions = tuple(
        PortfolioDecision(
            action=DecisionAction.BUY,
            asset=ticker,
            quantity=SHARES,
            price=Money(amount=price),
            allocation_pct=Decimal("0.2"),
            confidence=0.5,
            reasoning="a position to exit",
            strategy_used="benchmark",
        )
        for ticker, price in prices.items()
    )
    given = envelope("execute", BOUGHT)
    validation = DecisionValidation(
        cycle_id=given["cycle_id"],
        op_id=given["op_id"],
        as_of=BOUGHT,
        passed=True,
        decisions=decisions,
        proposal_hash=proposal_hash(decisions),
        proposals=tuple(
            StockPick(
                ticker=each.asset,
                allocation_pct=each.allocation_pct,
                confidence=each.confidence,
                reasons=(Reason(fact=f"{each.asset}.close", speaks=Speaks.FOR, about=each.asset),),
                reasoning=each.reasoning,
            )
            for each in decisions
        ),
        evidence=tuple(
            Evidence(
                ticker=each, sector=f"of {each}", risk_score=1.0, measured_risk=1.0, price=price
            )
            for each, price in prices.items()
        ),
        limits=AccountLimits(),
        budget=Money(amount=CASH),
    )
    return ExecuteDecisions(**given, decision_validation=validation)


async def exited(settings: Settings) -> tuple[float, CycleView, OperationsPage]:
    """One exit cycle: seconds from the request to its end, and what it made."""
    async with open_client(settings.nats_address, settings.secrets_path) as client:
        request = CycleRequest(
            idempotency_key=uuid4().hex, kind=EXIT, as_of=AS_OF, timeout_s=CYCLE_TIME_MAX_S
        )
        cycle_id = ids.cycle_id("cli", request.idempotency_key)
        async with client.events(cycle_id) as events:
            began = time.perf_counter()
            await client.ask(REQUEST_CYCLE, request)
            async with asyncio.timeout(CYCLE_TIME_MAX_S):
                async for event in events:
                    if event.type == "cycle_ended":
                        break
            took_s = time.perf_counter() - began
        view = await client.ask(CYCLE, CycleQuery(cycle_id=str(cycle_id)), timeout_s=60)
        page = await client.ask(OPERATIONS, OperationsQuery(cycle_id=cycle_id))
    return took_s, view, page


async def measured(settings: Settings, tickers: list[str]) -> None:
    """Measure and print."""
    async with launcher.desk(settings) as desk:
        await bought(desk.settings, tickers)
        before = resource.getrusage(resource.RUSAGE_SELF)
        took_s, view, page = await exited(desk.settings)
        after = resource.getrusage(resource.RUSAGE_SELF)
        dsn = dsn_for(desk.settings.postgres_address, CONSOLE_ROLE, desk.secrets_dir)
        async with open_pool(dsn) as pool:
            largest = await pool.fetchval(
                "select max(greatest(length(command), length(result))) from operations"
            )
            rows = await pool.fetch(
                "select type, status, count(*) from orders where side = 'sell'"
                " group by 1, 2 order by 1, 2"
            )
    print(f"{len(tickers)} positions: {view.status} in {took_s:.2f} s {view.reason}")
    for each in page.operations:
        if each.type == "operation" and each.started_at and each.finished_at:
            span_s = (each.finished_at - each.created_at).total_seconds()
            print(f"  {each.name:<16} {span_s:6.2f} s")
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    peak, grown = after.ru_maxrss * 1024, (after.ru_maxrss - before.ru_maxrss) * 1024
    print(
        f"  {cpu_s:.2f} CPU-s of the desk; peak {peak / MEGABYTE:.0f} MB, +{grown / MEGABYTE:.0f}"
    )
    print(f"  largest message {largest / 1000:.0f} kB of {MESSAGE_BYTES_MAX / 1000:.0f}")
    print("  " + ", ".join(f"{row['count']} {row['type']} {row['status']}" for row in rows))


def main(count: int) -> None:
    """Make the prices and the desk, and measure."""
    configure_logging("error", "json")
    tickers = [f"T{number:03d}" for number in range(count)]
    with tempfile.TemporaryDirectory(prefix="deskbus-bench-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "prices").mkdir()
        write_prices(folder / "prices", tickers)
        rules = folder / "exit_signals.toml"
        rules.write_text("[default]\nstop_pct = 8\n")
        settings = Settings(
            data_dir=folder / "data",
            replay_dir=folder / "prices",
            starting_cash_usd=CASH,
            exit_rules_file=rules,
            log_level="error",
        )
        asyncio.run(measured(settings, tickers))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else POSITIONS)
