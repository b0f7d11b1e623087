"""What every identity and every role tries that it may not do.

On NATS: every subject of the desk, of JetStream and of other people's inboxes, less its own. In
Postgres: every kind of statement on every table; what went through must be the table below, which
is written by hand: a new grant is a decision, not an accident.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import asyncpg

from contracts.subjects.commands import COMMANDS
from contracts.subjects.subject import PREFIX
from contracts.subjects.table import QUERIES, REQUESTS
from libs.bus.permissions import permissions
from libs.bus.streams import streams
from libs.postgres.pool import CONSOLE_ROLE, EXECUTION_ROLE, ORCHESTRATOR_ROLE, STUDY_ROLE

ALL = permissions()
IDENTITIES = sorted(ALL)
SERVICES = sorted({row.owner for row in COMMANDS})
STREAM_CALLS = (
    "CREATE",
    "UPDATE",
    "DELETE",
    "PURGE",
    "INFO",
    "MSG.GET",
    "MSG.DELETE",
    "SNAPSHOT",
    "RESTORE",
    "LEADER.STEPDOWN",
    "PEER.REMOVE",
)
CONSUMER_CALLS = ("DELETE", "INFO", "CREATE", "DURABLE.CREATE", "PAUSE", "LEADER.STEPDOWN")
SERVER_CALLS = (
    "$JS.API.STREAM.NAMES",
    "$JS.API.STREAM.LIST",
    "$JS.API.META.LEADER.STEPDOWN",
    "$JS.API.SERVER.REMOVE",
    "$JS.API.ACCOUNT.PURGE.$G",
    "$JS.API.STREAM.CREATE.MINE",
    "$SYS.REQ.SERVER.PING",
    "$SYS.REQ.ACCOUNT.PING.CONNZ",
    "$SRV.PING.forged",
    "$SRV.PING",
    "$SRV.INFO",
    "$SRV.STATS",
    "$SRV.STATS.deskbus-execution",
    "$KV.mine.key",
    "$O.mine.C.key",
    "anything",
)


def _subjects() -> Sequence[str]:
    """Whatever anybody says, and what could do harm."""
    names = [stream.name for stream in streams()]
    durables = [f"COMMANDS.{row.durable}" for row in COMMANDS]
    return [
        *(row.address for row in COMMANDS),
        *(row.by(caller) for row in (*QUERIES, *REQUESTS) for caller in IDENTITIES),
        *(f"{PREFIX}.evt.{owner}.decision.x" for owner in ("orchestrator", "execution")),
        *(f"{PREFIX}.{kind}.{owner}.cancel" for kind in ("ctl", "dlq") for owner in SERVICES),
        *(f"$JS.API.STREAM.{call}.{name}" for call in STREAM_CALLS for name in names),
        *(f"$JS.API.CONSUMER.{call}.{each}" for call in CONSUMER_CALLS for each in durables),
        *(f"$JS.API.CONSUMER.{call}.{name}" for call in ("CREATE", "LIST") for name in names),
        *(f"$JS.API.DIRECT.GET.{name}" for name in names),
        *(f"$JS.API.CONSUMER.MSG.NEXT.{each}" for each in durables),
        *(f"$JS.ACK.{each}.1.1.1.1.1" for each in durables),
        *(f"_INBOX_{each}.forged" for each in IDENTITIES),
        *SERVER_CALLS,
    ]


def not_to_say(identity: str) -> Sequence[str]:
    """Subjects that the server must refuse this identity to publish."""
    own = ALL[identity].publish
    return [each for each in _subjects() if not any(_covers(mine, each) for mine in own)]


def not_to_hear(identity: str) -> Sequence[str]:
    """Subjects that the server must refuse it to subscribe to."""
    own = ALL[identity].subscribe
    wanted = [
        ">",
        "$JS.>",
        "$SYS.>",
        f"{PREFIX}.>",
        f"{PREFIX}.cmd.>",
        f"{PREFIX}.dlq.>",
        "_INBOX.>",
        *(f"_INBOX_{each}.>" for each in IDENTITIES),
        *(f"{PREFIX}.{kind}.{owner}.>" for kind in ("cmd", "ctl", "qry") for owner in SERVICES),
        *(f"{PREFIX}.{kind}.orchestrator.>" for kind in ("req", "qry")),
    ]
    return [each for each in wanted if not any(_covers(mine, each) for mine in own)]


def _covers(pattern: str, subject: str) -> bool:
    """Whether every subject that `subject` means is one of the pattern's."""
    mine, theirs = pattern.split("."), subject.split(".")
    for place, token in enumerate(mine):
        if token == ">":
            return len(theirs) > place
        if place >= len(theirs) or theirs[place] == ">" or token not in ("*", theirs[place]):
            return False
    return len(mine) == len(theirs)


def told(errors: Sequence[str], what: str) -> set[str]:
    """The subjects of the server's refusals, in lower case as nats-py tells them."""
    mark = f'violation for {what} to "'
    lower = [error.lower() for error in errors]
    return {error.partition(mark)[2].partition('"')[0] for error in lower if mark in error}


# --- Postgres -----------------------------------------------------------------------------------

READS = (
    "account_clocks",
    "accounts",
    "balances",
    "blocks",
    "bodies",
    "commands_on_record",
    "cycles",
    "day_budgets",
    "desk_clock",
    "entries",
    "executions",
    "fills",
    "halt_changes",
    "halts",
    "journal",
    "letter_cursor",
    "limit_changes",
    "looks",
    "notifications",
    "operations",
    "outages",
    "journal_calls",
    "orders",
    "paces",
    "postings",
    "prompt_texts",
    "relay_cursor",
    "schedule_jobs",
    "schedule_slots",
    "schema_migrations",
    "snapshots",
    "state_events",
    "strategies",
    "studies",
    "study_answers",
    "study_cells",
    "study_cells_now",
    "venue_moves",
    "venue_order_changes",
    "venue_orders",
)
VIEWS = (
    "accounts",
    "approvals",
    "calls",
    "checks",
    "cycles",
    "decisions",
    "equity",
    "events",
    "ledger",
    "model_calls",
    "not_bought",
    "operations",
    "orders",
    "positions",
    "prompts",
    "proposals",
)
"""Of the schema for readers with SQL (docs/sql.md)."""
LEDGER = ("entries", "executions", "fills", "halt_changes", "limit_changes", "postings")
"""Written once, never changed."""

MAY: Mapping[str, Mapping[str, str]] = {
    ORCHESTRATOR_ROLE: {
        **dict.fromkeys(("cycles", "operations", "day_budgets", "paces"), "select insert update"),
        **dict.fromkeys(("schedule_jobs", "schedule_slots", "strategies"), "select insert update"),
        **dict.fromkeys(("journal", "state_events", "bodies", "outages"), "select insert"),
        "prompt_texts": "select insert",
        **dict.fromkeys(("relay_cursor", "desk_clock", "letter_cursor"), "select update"),
        "study_answers": "select insert delete",
        "notifications": "select insert update delete",
        **dict.fromkeys(("account_clocks", "schema_migrations"), "select"),
    },
    EXECUTION_ROLE: {
        **dict.fromkeys((*LEDGER, "snapshots", "accounts", "orders"), "select insert"),
        **dict.fromkeys(("venue_orders", "looks", "venue_moves"), "select insert"),
        **dict.fromkeys(("balances", "blocks", "halts", "schema_migrations"), "select"),
        "venue_order_changes": "select",
        "commands_on_record": "select",
        "state_events": "select insert",
        "halt_lock": "update",
    },
    STUDY_ROLE: {
        "studies": "select insert update",
        **dict.fromkeys(("study_cells", "study_cells_now", "cycles", "operations"), "select"),
        **dict.fromkeys(("journal", "accounts", "snapshots", "strategies"), "select"),
        "schema_migrations": "select",
    },
    CONSOLE_ROLE: dict.fromkeys((*READS, *(f"desk.{view}" for view in VIEWS)), "select"),
}
"""By role and table. Updates of single columns (an order's end, an account's clock) are not among
them: what is tried is a change of the key."""

CALLS: Mapping[str, str] = {
    "can_commit": f"{CONSOLE_ROLE} {EXECUTION_ROLE} {ORCHESTRATOR_ROLE} {STUDY_ROLE}",
    "desk_now": ORCHESTRATOR_ROLE,
    "ensure_partitions": ORCHESTRATOR_ROLE,
    "hold_halts": EXECUTION_ROLE,
    "is_bound": EXECUTION_ROLE,
    "change_halts": EXECUTION_ROLE,
    "cost": f"{CONSOLE_ROLE} {STUDY_ROLE}",
    "limits_of": f"{CONSOLE_ROLE} {EXECUTION_ROLE}",
    "live_at_work": f"{ORCHESTRATOR_ROLE} {STUDY_ROLE}",
}
"""By function, who may call it. What triggers run, and large objects: nobody."""


async def callable_by(db: "asyncpg.Connection[asyncpg.Record]") -> Mapping[str, str]:
    """Who may call each function of the desk, and those of large objects; found in the catalog."""
    rows = await db.fetch(
        "select p.proname, r.rolname from pg_proc p, pg_roles r"
        " where (p.pronamespace in ('public'::regnamespace, 'desk'::regnamespace)"
        " or p.proname ~ '^lo(_|read$|write$)')"
        " and r.rolname = any($1) and has_function_privilege(r.oid, p.oid, 'execute')"
        " order by 1, 2",
        list(MAY),
    )
    found: dict[str, list[str]] = {}
    for function, role in rows:
        found.setdefault(function, []).append(role)
    return {function: " ".join(roles) for function, roles in found.items()}


NOBODYS = (
    "create table mine (a int)",
    "create schema mine",
    "create function mine() returns int language sql as 'select 1'",
    "create role mine",
    "alter role current_user superuser",
    "set role deskbus_owner",
    "set role postgres",
    "set session authorization deskbus_owner",
    "set session_replication_role = replica",
    "alter table entries disable trigger all",
    "alter system set fsync = off",
    "copy (select 1) to program 'true'",
    "copy (select 1) to '/tmp/deskbus-forbidden'",
    "select pg_read_file('PG_VERSION')",
    "select rolpassword from pg_authid",
    "select lo_import('/etc/hostname')",
    "drop database deskbus",
    "select pg_reload_conf()",
    "select lo_create(0)",
    "select lo_from_bytea(0, 'x')",
    "select lo_unlink(1)",
)


async def granted(db: "asyncpg.Connection[asyncpg.Record]") -> Mapping[str, str]:
    """What this role can do with each table, as `MAY` says it; found by trying."""
    tables = await db.fetch(
        "select case nspname when 'public' then relname else nspname || '.' || relname end as name,"
        " c.relkind::text as kind, a.attname as key from pg_class c"
        " join pg_namespace n on n.oid = c.relnamespace"
        " join pg_attribute a on a.attrelid = c.oid and a.attnum = 1"
        " where nspname in ('public', 'desk') and c.relkind in ('r', 'p', 'v')"
        " and not c.relispartition order by 1"
    )
    found: dict[str, str] = {}
    for name, kind, key in tables:
        tried = {"select": f"select from {name} limit 0"}
        if kind != "v":
            tried |= {
                "insert": f"insert into {name} default values",
                "update": f"update {name} set {key} = default where false",
                "delete": f"delete from {name} where false",
                "truncate": f"truncate {name}",
                "alter": f"alter table {name} add column mine int",
                "drop": f"drop table {name}",
            }
        done = [what for what, statement in tried.items() if await may(db, statement)]
        if done:
            found[name] = " ".join(done)
    return found


async def may(db: "asyncpg.Connection[asyncpg.Record]", statement: str) -> bool:
    """Whether the server would do it: refused only for want of a right. Nothing of it stays."""
    transaction: Any = db.transaction()
    await transaction.start()
    try:
        return await _does(db, statement)
    except asyncpg.ActiveSQLTransactionError:
        pass
    finally:
        await transaction.rollback()
    return await _does(db, statement)


async def _does(db: "asyncpg.Connection[asyncpg.Record]", statement: str) -> bool:
    try:
        await db.execute(statement)
    except asyncpg.InsufficientPrivilegeError:
        return False
    except asyncpg.ActiveSQLTransactionError:
        raise  # it runs alone or not at all
    except asyncpg.PostgresError:
        return True  # such as a missing value: the right was there
    return True
