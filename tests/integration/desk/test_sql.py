"""The views for readers with SQL: what docs/sql.md says of them, tried with psql as its reader."""

import asyncio
import os
import re
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from uuid import UUID, uuid4

import asyncpg
import pytest

from deploy.reference.views_page import views
from libs.postgres.pool import CONSOLE_ROLE, dsn_for
from libs.servers.binaries import find_postgres_bindir
from tests.integration.conftest import OwnEnvironmentIn
from tests.integration.desk.caller import Caller, Json, account_of, wish
from tests.integration.desk.conftest import Desk, desk_in

PAGE = Path(__file__).parents[3] / "docs/sql.md"
QUESTIONS = re.findall(
    r"^### ([^\n]+\?)\n\n```sql\n(.*?)```\n\n```\n(.*?)```",
    PAGE.read_text(),
    re.MULTILINE | re.DOTALL,
)
"""Of the page: the question, its SQL, its output."""
DECIDED, VALUED, CHECKED = "2010-05-06", "2010-05-28", "2010-08-31"
CATALOG = """
select c.relname as view, obj_description(c.oid) as about, a.attname as column,
       col_description(c.oid, a.attnum) as meaning, format_type(a.atttypid, null) as type
from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0
where c.relnamespace = 'desk'::regnamespace
order by c.relname, a.attnum
"""
STRATEGY_TYPES = {
    "strategy": "agent_research",
    "design": "agent_design",
    "train": "training",
    "backtest": "backtesting",
    "assess": "agent_assessment",
}
"""By kind and step: the types of the seed's operations."""


@pytest.fixture(scope="module")
def desk(make_open_dir: Callable[[], Path], own_environment_in: OwnEnvironmentIn) -> Iterator[Desk]:
    """A desk with the limits that readers of the page have, not with those of the other tests."""
    with pytest.MonkeyPatch.context() as patched:
        patched.delenv("DESKBUS_LIMITS")
        with desk_in(make_open_dir(), own_environment_in) as running:
            yield running


@pytest.fixture(scope="module")
def account(desk: Desk) -> str:
    """An account with the decision that the page is about, and a later check of its exits."""
    return asyncio.run(traded(desk, "exit", CHECKED))


async def traded(desk: Desk, later: str, on: str) -> str:
    """An account with that decision, and a later cycle of another kind."""
    async with desk.calling("user") as user:
        body = wish(as_of=DECIDED)
        await user.run(body)
        await user.run(wish(as_of=on, kind=later, pipelines=body["pipelines"]))
    return account_of(body)


@pytest.fixture
async def reader(desk: Desk) -> AsyncIterator["asyncpg.Connection[asyncpg.Record]"]:
    """A connection as the role that may only read."""
    db = await asyncpg.connect(
        dsn_for(desk.settings.postgres_address, CONSOLE_ROLE, desk.secrets_dir)
    )
    yield db
    await db.close()


def psql(desk: Desk, sql: str) -> str:
    """What psql prints for a reader who connects as the page says."""
    password = (desk.secrets_dir / f"postgres_{CONSOLE_ROLE}.password").read_text().strip()
    kept = {name: text for name, text in os.environ.items() if not name.startswith("PG")}
    done = subprocess.run(
        [
            find_postgres_bindir(None) / "psql",
            "--no-psqlrc",
            "--no-password",
            desk.settings.postgres_public,
            f"--username={CONSOLE_ROLE}",
            f"--command={sql}",
        ],
        env={**kept, "PGPASSWORD": password, "PGCLIENTENCODING": "UTF8"},
        capture_output=True,
        text=True,
        check=True,
    )
    return "\n".join(line.rstrip() for line in done.stdout.strip("\n").splitlines())


def test_the_page_has_five_questions() -> None:
    assert len(QUESTIONS) == 5


@pytest.mark.parametrize(
    ("sql", "output"), [row[1:] for row in QUESTIONS], ids=[row[0] for row in QUESTIONS]
)
def test_a_question_has_the_answer_that_the_page_shows(
    desk: Desk, account: str, sql: str, output: str
) -> None:
    assert "'main'" in sql
    printed = psql(desk, sql.replace("'main'", f"'{account}'"))

    assert printed == "\n".join(line.rstrip() for line in output.strip("\n").splitlines())
    assert "(0 rows)" not in printed


async def test_the_views_and_columns_are_those_that_the_page_describes(
    reader: "asyncpg.Connection[asyncpg.Record]",
) -> None:
    there: dict[str, tuple[str, dict[str, str]]] = {}
    for row in await reader.fetch(CATALOG):
        there.setdefault(row["view"], (row["about"], {}))[1][row["column"]] = row["meaning"]
        assert row["type"] != "bytea", f"{row['view']}.{row['column']} cannot be read"

    assert there == {view: (about, dict(columns)) for view, (about, columns) in views().items()}


async def test_operations_are_as_the_desk_shows_them(
    user: Caller, account: str, reader: "asyncpg.Connection[asyncpg.Record]"
) -> None:
    cycle_id = await reader.fetchval(
        "select cycle_id from desk.decisions where account = $1 and kind = 'decision'", account
    )
    nodes = (await user.query("operations", cycle_id=str(cycle_id)))["operations"]
    rows = await reader.fetch("select * from desk.operations where cycle_id = $1", cycle_id)

    def as_shown(node: Json) -> tuple[object, ...]:
        return (
            node["op_id"],
            node["type"],
            node["name"],
            node["status"],
            node["state"],
            node["service"],
            float(node["progress"]["percentage"]),
            node["tokens"],
        )

    shown = {as_shown(it) for it in nodes if it["type"] in {"cycle", "operation"}}
    assert shown == {
        (
            str(row["op_id"]),
            row["type"],
            row["name"],
            row["status"],
            row["state"],
            row["service"],
            float(row["progress_pct"]),
            row["tokens"],
        )
        for row in rows
    }
    assert {row["parent_id"] for row in rows if row["type"] == "operation"} == {cycle_id}
    calls = await reader.fetch(
        "select kind, name from desk.calls where cycle_id = $1 order by op_id, index", cycle_id
    )
    leaves = [it for it in nodes if it["type"] in {"model", "tool", "read"}]
    assert sorted((row["kind"], row["name"]) for row in calls) == sorted(
        (it["type"], it["name"]) for it in leaves
    )


async def test_every_text_that_a_model_was_sent_is_there_in_order(
    user: Caller, account: str, reader: "asyncpg.Connection[asyncpg.Record]"
) -> None:
    op_id: UUID = await reader.fetchval(
        "select op_id from desk.operations where account = $1 and name = 'quant'", account
    )
    (index,) = await reader.fetchrow(
        "select index from desk.model_calls where op_id = $1 order by index", op_id
    )
    sent = await user.query("sent", op_id=str(op_id), index=index)
    rows = await reader.fetch(
        "select part, text from desk.prompts where op_id = $1 and index = $2 order by place",
        op_id,
        index,
    )

    shown = [(it["role"], it["text"]) for it in sent["texts"] if it["role"] != "assistant"]
    assert [row["part"] for row in rows][:3] == ["system", "schema", "user"]
    for role in ("system", "schema"):
        assert [row["text"] for row in rows if row["part"] == role] == [
            text for part, text in shown if part == role
        ]
    assert "\n".join(row["text"] for row in rows if row["part"] == "user") == "\n".join(
        text for part, text in shown if part == "user"
    )


async def test_orders_and_ledger_come_to_the_books(
    desk: Desk, user: Caller, reader: "asyncpg.Connection[asyncpg.Record]"
) -> None:
    account = await traded(desk, "snapshot", VALUED)
    view = await user.query("account", account=account)
    row = await reader.fetchrow("select * from desk.accounts where account = $1", account)
    moved = await reader.fetchval("select sum(cash) from desk.orders where account = $1", account)
    lines = await reader.fetch(
        "select entry_id, sum(amount) as total from desk.ledger where account = $1 group by 1",
        account,
    )
    newest = await reader.fetchrow(
        "select * from desk.equity where account = $1 order by session desc limit 1", account
    )
    positions = await reader.fetch("select * from desk.positions where account = $1", account)

    assert row["cash"] == Decimal(view["portfolio"]["cash"]["amount"])
    assert row["starting_cash"] + moved == row["cash"], "no dividend was paid meanwhile"
    assert {line["total"] for line in lines} == {0}
    assert newest["session"].isoformat() == VALUED == row["clock"].isoformat()
    assert newest["cash"] + newest["positions"] == newest["equity"]
    assert sum(it["value"] for it in positions) == newest["positions"] > 0
    assert {(it["ticker"], it["quantity"], it["price"]) for it in positions} == {
        (it["ticker"], Decimal(it["quantity"]), Decimal(it["price"]["amount"]))
        for it in view["portfolio"]["positions"]
    }


async def test_a_strategy_cycles_operations_have_the_seeds_types(desk: Desk) -> None:
    """Rows written here and rolled back: to train one takes minutes."""
    cycle_id = uuid4()
    async with desk.postgres() as db:
        tried = db.transaction()
        await tried.start()
        await db.execute(
            "insert into cycles (cycle_id, kind, workflow_version, requester, idempotency_key,"
            " body_sha256, request, as_of, started_on, status, reason, state, accepted_at,"
            " deadline_at, tokens_max, cost_usd_max, unpriced) values ($1, 'strategy', 1, 'cli',"
            " $2, '', '{}', current_date, current_date, 'expired', 'no answer', '{}', now(), now(),"
            " 1, 1, true)",
            cycle_id,
            str(cycle_id),
        )
        for step in (*list(STRATEGY_TYPES)[1:], "plan"):
            await db.execute(
                "insert into operations (op_id, cycle_id, started_on, pipeline, account, state,"
                " step, service, attempt, as_of, status, claimed, must_answer, command, due_at,"
                " created_at, progress, failure) values ($1, $2, current_date, 'rules', 'main',"
                " 's', $3, 'research', 1, current_date, 'failed', true, false, '{}', now(), now(),"
                ' \'{"percentage": 40, "step": "epoch 4"}\', \'{"message": "no data"}\')',
                uuid4(),
                cycle_id,
                step,
            )
        rows = await db.fetch("select * from desk.operations where cycle_id = $1", cycle_id)
        await tried.rollback()

    assert {row["name"]: row["type"] for row in rows} == {**STRATEGY_TYPES, "plan": "operation"}
    parent = next(row for row in rows if row["name"] == "strategy")
    assert (parent["status"], parent["error_message"]) == ("failed", "no answer")
    assert parent["cost_usd"] is None, "a model without a price was asked"
    child = next(row for row in rows if row["name"] == "train")
    assert (child["parent_id"], child["error_message"]) == (cycle_id, "no data")
    assert (child["progress_pct"], child["progress_step"]) == (40, "epoch 4")


LOGINS = {
    block.split()[2]: block
    for block in re.findall(r"```sql\n(create role .*?)```", PAGE.read_text(), re.DOTALL)
}
"""By role: the statements of the page that make it."""
WRITES = (
    "delete from desk.orders",
    "update desk.accounts set currency = 'EUR'",
    "insert into public.outages values (now(), now())",
    "create view desk.mine as select 1",
)


@pytest.mark.parametrize(
    ("role", "reads", "refused"),
    [
        ("analyst", tuple(views()), WRITES),
        (
            "bookkeeper",
            ("accounts", "orders", "positions", "ledger", "equity"),
            (*WRITES, "select from desk.prompts", "select from public.orders"),
        ),
    ],
)
async def test_a_login_of_another_person_reads_what_the_page_says_and_writes_nothing(
    desk: Desk, account: str, role: str, reads: Sequence[str], refused: Sequence[str]
) -> None:
    async with desk.postgres() as db:
        tried = db.transaction()
        await tried.start()
        await db.execute(LOGINS[role])
        await db.execute(f"set local role {role}")
        for view in reads:
            await db.fetch(f"select * from desk.{view} limit 3")
        count = "select count(*) from desk.orders where account = $1"
        assert await db.fetchval(count, account) > 0
        for statement in refused:
            savepoint = db.transaction()
            await savepoint.start()
            with pytest.raises(
                (asyncpg.InsufficientPrivilegeError, asyncpg.ObjectNotInPrerequisiteStateError)
            ):
                await db.execute(statement)
            await savepoint.rollback()
        await tried.rollback()
