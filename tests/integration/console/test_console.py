"""What people ask of the desk, answered from a real Postgres over a real bus."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from contracts.account import Side
from contracts.account_query import AccountQuery, EquityQuery
from contracts.audit import EventsAfter
from contracts.cycle_query import CycleQuery, CyclesQuery, RecordingQuery
from contracts.message import MESSAGE_BYTES_MAX
from contracts.operation import OperationQuery, OperationsQuery, OperationStatus
from contracts.performance import PerformanceQuery
from contracts.report import ReportQuery
from contracts.subjects.accounts import ACCOUNT, EQUITY, PERFORMANCE
from contracts.subjects.cycles import CYCLE, CYCLES, RECORDING
from contracts.subjects.events import EVENTS_AFTER
from contracts.subjects.operations import OPERATION, OPERATIONS
from contracts.subjects.reports import REPORT
from contracts.types import Usage
from libs.bus.client import Client, DeskNotReachable, open_client
from libs.postgres.pool import CONSOLE_ROLE, PoolConnection, PostgresError, open_pool
from libs.runtime import ids
from libs.servers.embedded import Servers
from services.cli.shell.recordings import fetch
from services.console.store import sql

if TYPE_CHECKING:
    from tests.integration.console.conftest import Made

AS_OF = date(2012, 6, 29)
PLAN = {"assets": ["AAPL"], "objective": "a trend"}


# --- cycles -------------------------------------------------------------------------------------


async def test_a_cycle_comes_with_its_own_contracts_and_the_shared_ones(
    client: Client, made: Made
) -> None:
    digest = await made.operation("scanning", "digest", pipeline="shared", result={"n": 1})
    plan = await made.operation("planning", "plan", result=PLAN)
    await made.lanes(shared={"signal_digest": digest}, rules={"plan": plan})

    view = await client.ask(CYCLE, CycleQuery(cycle_id=str(made.cycle_id)))

    assert view.found
    assert (view.kind, view.as_of, view.status) == ("decision", AS_OF, "completed")
    assert (view.tokens, view.cost_usd) == (300, Decimal("1.5"))
    # This row was written before sorts were kept: what is of no known one is said to be.
    assert view.usage == Usage(unsorted_tokens=300, cost_usd=Decimal("1.5"))
    assert view.pipelines[0].contracts == {"signal_digest": {"n": 1}, "plan": PLAN}


async def test_a_cycle_is_found_by_the_beginning_of_its_id(client: Client, made: Made) -> None:
    view = await client.ask(CYCLE, CycleQuery(cycle_id=str(made.cycle_id)[:13]))

    assert view.cycle_id == made.cycle_id


@pytest.mark.parametrize("text", ["", "zz", "abc", "x" * 300, "%", "'; drop table cycles; --"])
async def test_what_is_no_id_is_not_found_with_a_sentence(client: Client, text: str) -> None:
    view = await client.ask(CYCLE, CycleQuery(cycle_id=text))

    assert not view.found
    assert view.message


async def test_a_beginning_that_fits_two_cycles_is_not_guessed(
    client: Client, made: Made, db: PoolConnection
) -> None:
    twin = str(made.cycle_id)[:-1] + ("0" if str(made.cycle_id)[-1] != "0" else "1")
    await db.execute(
        "create temp table twin as select * from cycles where cycle_id = $1", made.cycle_id
    )
    await db.execute("update twin set cycle_id = $1::text::uuid", twin)
    await db.execute("insert into cycles select * from twin")

    view = await client.ask(CYCLE, CycleQuery(cycle_id=str(made.cycle_id)[:30]))

    assert not view.found
    assert "more than one" in view.message


async def test_a_cycle_too_large_for_one_message_loses_its_largest_contract_and_says_so(
    client: Client, made: Made
) -> None:
    large = await made.operation("planning", "plan", result={"text": "x" * 600_000})
    small = await made.operation("analyzing", "quant", result={"signal": "bullish"})
    await made.lanes(shared={}, rules={"plan": large, "quant_report": small})

    view = await client.ask(CYCLE, CycleQuery(cycle_id=str(made.cycle_id)))

    contracts = view.pipelines[0].contracts
    assert contracts["quant_report"] == {"signal": "bullish"}
    assert contracts["plan"]["cut"] is True
    assert contracts["plan"]["size_bytes"] > MESSAGE_BYTES_MAX
    assert "rules/plan" in view.message


async def test_the_newest_cycles_come_first_and_without_contracts(
    client: Client, made: Made
) -> None:
    plan = await made.operation("planning", "plan", result=PLAN)
    await made.lanes(shared={}, rules={"plan": plan})

    page = await client.ask(CYCLES, CyclesQuery(limit=1))

    assert [view.cycle_id for view in page.cycles] == [made.cycle_id]
    assert page.cycles[0].pipelines[0].contracts == {}


async def test_a_long_reason_is_cut_in_lists_which_shows_and_is_whole_in_its_cycle(
    client: Client, db: PoolConnection, made: Made
) -> None:
    why = " ".join(["too late"] * 100)
    await db.execute("update cycles set reason = $2 where cycle_id = $1", made.cycle_id, why)

    page = await client.ask(CYCLES, CyclesQuery(limit=1))
    view = await client.ask(CYCLE, CycleQuery(cycle_id=str(made.cycle_id)))

    assert page.cycles[0].reason.endswith("…")
    assert len(page.cycles[0].reason) <= 400
    assert view.reason == why


# --- operations -----------------------------------------------------------------------------------


async def test_a_cycles_operations_are_a_tree_down_to_single_calls(
    client: Client, made: Made
) -> None:
    op_id = await made.operation("planning", "plan", result=PLAN, calls=2)

    page = await client.ask(OPERATIONS, OperationsQuery(cycle_id=made.cycle_id))

    nodes = {node.op_id: node for node in page.operations}
    call = nodes[ids.call_id(op_id, 1)]
    pipeline = ids.pipeline_id(made.cycle_id, "rules")
    assert call.parent_id == op_id
    assert nodes[op_id].parent_id == pipeline
    assert nodes[pipeline].parent_id == made.cycle_id
    assert nodes[made.cycle_id].parent_id is None
    assert [node.type for node in page.operations] == [
        "cycle",
        "pipeline",
        "operation",
        "tool",
        "tool",
    ]
    assert (call.name, call.metadata["duration_ms"]) == ("tool 1", 2.0)
    assert nodes[op_id].result_summary == PLAN
    assert nodes[pipeline].tokens == 100


async def test_calls_that_do_not_fit_are_counted_on_their_operation(
    client: Client, made: Made
) -> None:
    op_id = await made.operation("planning", "plan", calls=1_500)

    page = await client.ask(OPERATIONS, OperationsQuery(cycle_id=made.cycle_id))

    operation = next(node for node in page.operations if node.op_id == op_id)
    calls = [node for node in page.operations if node.type == "tool"]
    assert 0 < len(calls) < 1_500
    assert operation.metadata["calls_cut"] == 1_500 - len(calls)


async def test_operations_are_listed_by_status_with_their_reason(
    client: Client, made: Made
) -> None:
    failure = {"code": "not_a_session", "message": "2012-06-30 is a weekend", "field": None}
    op_id = await made.operation("scanning", "digest", status="failed", failure=failure)
    await made.operation("planning", "plan", result=PLAN)

    query = OperationsQuery(status=OperationStatus.FAILED, type="operation", limit=1)
    page = await client.ask(OPERATIONS, query)

    assert [node.op_id for node in page.operations] == [op_id]
    assert page.operations[0].error_message == "2012-06-30 is a weekend"
    assert page.operations[0].metadata == {"code": "not_a_session"}


async def test_one_operation_comes_with_its_command_result_and_calls(
    client: Client, made: Made
) -> None:
    op_id = await made.operation("planning", "plan", command={"a": 1}, result=PLAN, calls=3)

    detail = await client.ask(OPERATION, OperationQuery(op_id=op_id))

    assert (detail.command, detail.result) == ({"a": 1}, PLAN)
    assert [entry.index for entry in detail.journal] == [0, 1, 2]
    assert detail.journal[0].reply == "x" * 10


async def test_large_bodies_of_an_operation_are_cut_with_their_size(
    client: Client, made: Made
) -> None:
    command = {"text": "y" * 400_000}
    op_id = await made.operation("planning", "plan", command=command, calls=40, call_chars=30_000)

    detail = await client.ask(OPERATION, OperationQuery(op_id=op_id))

    assert detail.command["cut"] is True
    assert detail.command["size_bytes"] == 400_011
    assert len(detail.journal) == 40
    assert detail.journal[0].reply["size_bytes"] == 30_002


async def test_an_operation_that_does_not_exist_is_not_found(client: Client) -> None:
    detail = await client.ask(OPERATION, OperationQuery(op_id=uuid4()))

    assert not detail.found


# --- recordings -----------------------------------------------------------------------------------


async def test_a_record_is_whole_however_large_its_journal(client: Client, made: Made) -> None:
    first = await made.operation("planning", "plan", command={"a": 1}, result=PLAN, calls=1)
    second = await made.operation("analyzing", "analyst", calls=60, call_chars=30_000)

    one = await client.ask(RECORDING, RecordingQuery(cycle_id=made.cycle_id))
    whole = await fetch(client, made.cycle_id)

    assert (one.op_id, one.command, one.result, one.more) == (first, {"a": 1}, PLAN, True)
    assert [each.op_id for each in whole] == [first, second]
    assert [entry.index for entry in whole[1].journal] == list(range(60))
    assert all(entry.reply == "x" * 30_000 for entry in whole[1].journal)


async def test_past_the_end_of_a_record_nothing_is_found(client: Client, made: Made) -> None:
    await made.operation("planning", "plan")
    query = RecordingQuery(cycle_id=made.cycle_id, index=1)

    past = await client.ask(RECORDING, query)
    unknown = await client.ask(RECORDING, RecordingQuery(cycle_id=uuid4()))

    assert not past.found
    assert not unknown.found


# --- events ---------------------------------------------------------------------------------------


async def test_events_are_numbered_from_1_and_given_after_any_of_them(
    client: Client, made: Made
) -> None:
    for number in range(5):
        await made.event(number, step=f"s{number}")

    query = EventsAfter(cycle_id=made.cycle_id, sequence=1, limit=3)
    page = await client.ask(EVENTS_AFTER, query)

    assert [event.sequence for event in page.events] == [2, 3, 4]
    assert [event.data["step"] for event in page.events] == ["s1", "s2", "s3"]
    assert page.events[0].event_id == ids.event_id(made.cycle_id, 1)
    assert page.more


async def test_events_too_large_for_one_message_come_in_several(client: Client, made: Made) -> None:
    for number in range(4):
        await made.event(number, "decision", text="x" * 200_000)

    seen: list[int] = []
    more = True
    while more:
        query = EventsAfter(cycle_id=made.cycle_id, sequence=len(seen))
        page = await client.ask(EVENTS_AFTER, query)
        seen += [event.sequence for event in page.events]
        more = page.more

    assert seen == [1, 2, 3, 4]


async def test_an_event_below_an_open_transaction_waits_so_that_no_number_changes(
    client: Client, made: Made, servers: Servers
) -> None:
    """The later row commits first; numbered now, it would lose its number to the earlier one."""
    async with open_pool(servers.postgres_dsn("deskbus_owner"), size_max=2) as pool:
        async with pool.acquire() as slow, slow.transaction():
            await replace(made, db=slow).event(0, step="early")
            await made.event(1, step="late")
            before = await client.ask(EVENTS_AFTER, EventsAfter(cycle_id=made.cycle_id))
        after = await client.ask(EVENTS_AFTER, EventsAfter(cycle_id=made.cycle_id))

    assert before.events == ()
    assert [event.data["step"] for event in after.events] == ["early", "late"]


# --- accounts -------------------------------------------------------------------------------------


async def _account(db: PoolConnection, name: str, plan: str | None = None) -> None:
    """100,000 of cash, of which 39 AAPL were bought at 585.03 on the session after AS_OF."""
    await db.execute(
        "insert into accounts (account, currency, clock, starting_cash, limits, opened_on)"
        " values ($1, 'USD', $2, 100000, '{}', $2)",
        name,
        AS_OF,
    )
    monday, order_id = date(2012, 7, 2), uuid4()
    await db.execute(
        "insert into orders (order_id, account, cycle_id, started_on, op_id, pipeline, ticker,"
        " sector, side, type, quantity, hold, status, as_of, plan, thesis) values ($1, $2, $3, $4,"
        " $3, 'rules', 'AAPL', 'technology', 'buy', 'market', 39, 0, 'filled', $4, $5::text::jsonb,"
        " 'the trend')",
        order_id,
        name,
        uuid4(),
        AS_OF,
        plan,
    )
    async with db.transaction():
        await _post(
            db, name, "open", AS_OF, [("cash", None, 100_000, 0), ("capital", None, -100_000, 0)]
        )
        entry = await _post(
            db,
            name,
            f"fill/{order_id}",
            monday,
            [
                ("position", "AAPL", Decimal("22816.17"), 39),
                ("fees", None, Decimal("11.41"), 0),
                ("cash", None, Decimal("-22827.58"), 0),
            ],
        )
        await db.execute(
            "insert into fills (order_id, entry_id, price, quantity, fee, session)"
            " values ($1, $2, 585.03, 39, 11.41, $3)",
            order_id,
            entry,
            monday,
        )
    await _snapshot(db, name, AS_OF, 100_000)


async def _snapshot(
    db: PoolConnection,
    account: str,
    session: date,
    cash: Any,
    held: Any = 0,
    gain: Any = 0,
    closes: str = "[]",
) -> None:
    """The account at a session's close, as execution leaves it when the clock gets there."""
    await db.execute(
        "insert into snapshots (account, session, cash, positions, equity, realised, unrealised,"
        " dividends, fees, exposure_gross, exposure_net, closes, paid_in)"
        " select account, $2, $3::numeric, $4::numeric, $3::numeric + $4::numeric, 0, $5, 0, 0,"
        " $4::numeric, $4::numeric, $6::text::jsonb, starting_cash"
        " from accounts where account = $1",
        account,
        session,
        Decimal(cash),
        Decimal(held),
        Decimal(gain),
        closes,
    )


async def _post(db: PoolConnection, account: str, key: str, session: date, lines: Any) -> int:
    kind = key.partition("/")[0]
    entry: int = await db.fetchval(
        "insert into entries (account, key, kind, session, ticker) values ($1, $2, $3, $4, $5)"
        " returning entry_id",
        account,
        key,
        kind,
        session,
        next((ticker for _, ticker, _, _ in lines if ticker), None),
    )
    for number, (book, ticker, amount, quantity) in enumerate(lines):
        await db.execute(
            "insert into postings (entry_id, line, account, book, ticker, amount, quantity)"
            " values ($1, $2, $3, $4, $5, $6, $7)",
            entry,
            number,
            account,
            book,
            ticker,
            Decimal(amount),
            Decimal(quantity),
        )
    return entry


async def test_an_account_is_shown_as_its_books_stand_marked_by_the_newest_price_it_saw(
    client: Client, db: PoolConnection
) -> None:
    name = f"acc-{uuid4().hex[:8]}"
    await _account(db, name)

    view = await client.ask(ACCOUNT, AccountQuery(account=name))

    books = view.portfolio
    assert books is not None
    assert (books.as_of, books.cash.amount) == (date(2012, 7, 2), Decimal("77172.42"))
    held = books.positions[0]
    assert (held.ticker, held.quantity, held.sector) == ("AAPL", 39, "technology")
    assert (held.average_cost.amount, held.price.amount) == (Decimal("585.03"), Decimal("585.03"))
    assert books.equity.amount == Decimal("99988.59")
    assert view.starting_cash == 100_000
    assert [(fill.side, fill.quantity, fill.fee.amount) for fill in view.fills] == [
        (Side.BUY, 39, Decimal("11.41"))
    ]
    assert name in view.accounts


async def test_a_position_is_shown_with_the_plan_that_it_was_bought_with(
    client: Client, db: PoolConnection
) -> None:
    name = f"acc-{uuid4().hex[:8]}"
    plan = {"horizon_sessions": 60, "risk": {"amount": "500"}, "risk_pct": "0.5"}
    await _account(db, name, plan=json.dumps({**plan, "review_by": "2012-09-25"}))

    view = await client.ask(ACCOUNT, AccountQuery(account=name))

    assert view.portfolio is not None
    held = view.portfolio.positions[0]
    assert held.opened_on == date(2012, 7, 2)
    assert held.plan is not None
    assert (held.plan.thesis, held.plan.since) == ("the trend", date(2012, 7, 2))
    assert (held.plan.review_by, held.plan.risk.amount) == (date(2012, 9, 25), 500)


def _kept(ticker: str, price: str, priced_on: str | None = None) -> str:
    """A snapshot's `closes`: what its position was valued at."""
    close = {"ticker": ticker, "price": price, "currency": "USD", "amount": price}
    return json.dumps([{**close, "rate": None, "rate_on": None, "priced_on": priced_on}])


async def _closed(db: PoolConnection, name: str, session: date, price: str, **kept: str) -> None:
    """The clock has moved on to the session, whose close is written."""
    held = 39 * Decimal(price)
    gain = held - Decimal("22816.17")
    await _snapshot(db, name, session, "77172.42", held, gain, closes=_kept("AAPL", price, **kept))
    await db.execute("update accounts set clock = $2 where account = $1", name, session)


async def test_once_the_clock_has_moved_on_the_close_of_its_session_marks_the_account(
    client: Client, db: PoolConnection
) -> None:
    name = f"acc-{uuid4().hex[:8]}"
    await _account(db, name)
    await _closed(db, name, date(2012, 7, 3), "599.41")

    view = await client.ask(ACCOUNT, AccountQuery(account=name))

    assert view.portfolio is not None
    assert view.portfolio.as_of == view.closed_on == date(2012, 7, 3)
    assert view.portfolio.positions[0].price.amount == Decimal("599.41")
    assert view.held[0].value == 39 * Decimal("599.41")


async def test_a_fill_after_the_close_is_in_the_books_and_in_no_figure_yet(
    client: Client, db: PoolConnection
) -> None:
    name = f"acc-{uuid4().hex[:8]}"
    await _account(db, name)

    view = await client.ask(ACCOUNT, AccountQuery(account=name))
    did = await client.ask(PERFORMANCE, PerformanceQuery(account=name, benchmark="cash"))

    assert view.portfolio is not None
    assert [held.quantity for held in view.portfolio.positions] == [39]
    assert view.closed_on == did.last == date(2012, 6, 29)
    assert view.not_counted.fills == did.not_counted.fills == 1
    assert (view.cash, view.equity, view.fees, view.held) == (100_000, 100_000, 0, ())
    assert (did.trips, did.trades.open, did.equity) == ((), 0, 100_000)


async def test_what_has_no_price_any_more_counts_at_what_its_snapshot_kept(
    client: Client, db: PoolConnection
) -> None:
    name, after_the_data = f"acc-{uuid4().hex[:8]}", date(2013, 3, 4)
    await _account(db, name)
    held = 39 * Decimal("430.47")
    await _closed(db, name, after_the_data, "430.47", priced_on="2013-03-01")

    view = await client.ask(ACCOUNT, AccountQuery(account=name))
    told = await client.ask(REPORT, ReportQuery(account=name))

    assert view.portfolio is not None
    (position,) = view.portfolio.positions
    assert (position.price.amount, position.priced_on) == (Decimal("430.47"), date(2013, 3, 1))
    assert told.report is not None
    (line,) = told.report.held
    assert (line.value, line.priced_on) == (held, date(2013, 3, 1))
    (attention,) = [each for each in told.report.attention if each.what == "no_price"]
    assert (
        "AAPL had no price at the close: it is valued at the price of 2013-03-01" in attention.text
    )


async def test_the_parts_of_the_gain_and_the_exposure_are_those_of_the_prices_shown(
    client: Client, db: PoolConnection
) -> None:
    name = f"acc-{uuid4().hex[:8]}"
    await _account(db, name)
    await _closed(db, name, date(2012, 7, 3), "599.41")

    view = await client.ask(ACCOUNT, AccountQuery(account=name))

    value = 39 * Decimal("599.41")
    assert view.exposure_gross == view.exposure_net == value
    assert view.unrealised == value - Decimal("22816.17")
    assert view.portfolio is not None
    assert view.equity == view.portfolio.equity.amount == Decimal("77172.42") + value


async def test_equity_is_the_snapshots_up_to_the_newest_one(
    client: Client, db: PoolConnection
) -> None:
    name = f"acc-{uuid4().hex[:8]}"
    await _account(db, name)

    at_first = await client.ask(EQUITY, EquityQuery(account=name))
    closes = {2: Decimal("592.52"), 3: Decimal("599.41"), 5: Decimal("609.94")}
    for day, close in closes.items():
        await _closed(db, name, date(2012, 7, day), str(close))
    later = await client.ask(EQUITY, EquityQuery(account=name))
    few = await client.ask(EQUITY, EquityQuery(account=name, points=2))
    view = await client.ask(ACCOUNT, AccountQuery(account=name))

    # Monday's close is not known at Friday's clock: its fill does not count yet.
    assert [(each.session.day, each.equity) for each in at_first.points] == [(29, 100_000)]
    assert [each.session.day for each in later.points] == [29, 2, 3, 5]
    assert later.points[2].equity == Decimal("77172.42") + 39 * Decimal("599.41")
    assert later.points[2].unrealised == 39 * Decimal("599.41") - Decimal("22816.17")
    assert later.points[-1].equity == few.points[-1].equity == view.equity


async def test_the_max_drawdown_is_of_all_sessions_also_of_those_without_a_point(
    client: Client, db: PoolConnection
) -> None:
    name = f"acc-{uuid4().hex[:8]}"
    await _account(db, name)
    for day, close in {2: Decimal("580.00"), 3: Decimal("599.41"), 5: Decimal("609.94")}.items():
        await _closed(db, name, date(2012, 7, day), str(close))

    every = await client.ask(EQUITY, EquityQuery(account=name))
    few = await client.ask(EQUITY, EquityQuery(account=name, points=2))

    fall = Decimal("0.2076")  # from 100,000.00 to 99,792.42
    assert [each.drawdown_pct for each in every.points] == [0, fall, 0, 0]
    assert [each.drawdown_pct for each in few.points] == [0, 0]
    for view in (every, few):
        assert (view.max_drawdown_pct, view.max_drawdown_on) == (fall, date(2012, 7, 2))


async def test_the_equity_of_no_account_is_not_found(client: Client) -> None:
    view = await client.ask(EQUITY, EquityQuery(account="nobody"))

    assert (view.found, view.points) == (False, ())


async def test_an_account_that_was_never_opened_is_not_found_but_the_others_are_named(
    client: Client, db: PoolConnection
) -> None:
    name = f"acc-{uuid4().hex[:8]}"
    await _account(db, name)

    view = await client.ask(ACCOUNT, AccountQuery(account="nobody"))

    assert not view.found
    assert name in view.accounts


# --- what it may not do ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "statement",
    [
        "insert into day_budgets (day) values ('2026-01-01')",
        "update cycles set status = 'failed'",
        "delete from state_events",
        "truncate journal",
        "select ensure_partitions('2026-01-01')",
        "create table mine (a int)",
    ],
)
async def test_the_consoles_role_may_only_select(servers: Servers, statement: str) -> None:
    async with open_pool(servers.postgres_dsn(CONSOLE_ROLE), size_max=1) as pool:
        with pytest.raises(PostgresError, match="permission denied"):
            await pool.execute(statement)


# --- the client -----------------------------------------------------------------------------------


async def test_a_question_that_nobody_hears_is_not_reachable(servers: Servers) -> None:
    async with open_client(servers.nats_url, servers.secrets_dir, "user") as alone:
        with pytest.raises(DeskNotReachable, match="no console hears"):
            await alone.ask(CYCLES, CyclesQuery())


async def test_a_server_that_is_not_there_is_not_reachable(tmp_path: Path) -> None:
    async with asyncio.timeout(5):
        with pytest.raises(DeskNotReachable):
            async with open_client("nats://127.0.0.1:1", tmp_path, timeout_s=0.5):
                pass


async def test_who_listens_is_not_left_waiting_when_the_connection_is_closed(
    client: Client,
) -> None:
    async with client.events() as events:
        coming = asyncio.ensure_future(anext(events, None))
        await client._connection.close()
        async with asyncio.timeout(5):
            assert await coming is None


async def test_the_newest_decisions_are_found_by_their_index(
    db: PoolConnection, made: Made
) -> None:
    await db.execute("set enable_seqscan = off")
    rows = await db.fetch(f"explain {sql.newest_decisions}", 20)
    await db.execute("reset enable_seqscan")
    plan = "\n".join(row[0] for row in rows)
    assert "using operations_decided" in plan, plan
    assert "Sort" not in plan, plan
