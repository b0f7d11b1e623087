"""A trading year of one account: `python -m benchmarks.year [--sessions 250] [--rounds 3]`.

`deskbus up` on a new data directory (all services in one process, embedded servers), the bundled
prices and the rules provider. One decision cycle a session, each asked for when the one before has
ended, all on one account; the session after the last one is in the data, so that every order fills.

After each cycle the ledger is looked at under the console's read-only role, and a cent too many or
too few ends the run: every entry sums to zero, the balances are the sums of the postings, and what
is held is what was filled. The looking is not part of the time.

The size on disk is what the database and the streams grow by; NATS may write it a moment later.

CPU time is user + system of the desk's process, NATS and Postgres, so it holds on a busy machine
too; this program's own is left out, and so is what Postgres spends on the looking. Linux only: it
reads /proc.
"""

import argparse
import asyncio
import json
import shlex
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any, Final

import asyncpg
import orjson
from nats.aio.client import Client
from nats.aio.msg import Msg

from benchmarks import processes
from benchmarks.footprint import MEGABYTE, RUNTIME_FILE, started
from benchmarks.report import spread, table
from contracts.audit import EventType
from contracts.cycle import CycleRequest, RequestAnswer
from contracts.message import Pipeline
from contracts.subjects.events import EVENTS
from contracts.subjects.table import REQUESTS
from libs.bus.codec import decode, encode
from libs.bus.connection import connect
from libs.market.calendar import exchange_calendar
from libs.postgres.pool import CONSOLE_ROLE, dsn_for
from libs.runtime.loop import run

ACCOUNT: Final = "year"
STREAMS_DIR: Final = "servers/nats/jetstream"
"""Where the embedded NATS keeps its streams, below the data directory."""
LAST_SESSION: Final = date(2013, 2, 28)
"""The bundled prices end a session later."""
SESSIONS: Final = 250
SETTLED_AFTER: Final = 50
"""Cycles after which memory is weighed for the first time: everything has been loaded by then."""
CYCLE_MAX_S: Final = 60.0
GOAL_S: Final = 20.0
GOAL_POSTGRES_KB: Final = 80.0
GOAL_NATS_KB: Final = 20.0
KILOBYTE: Final = 1e3
MEMORY_GROWTH_MAX_MB: Final = 10.0
"""Of the desk's process from the 50th to the last cycle: less is called flat."""

UNBALANCED: Final = """
select 'entry ' || entry_id from postings where account = $1
group by entry_id having sum(amount) <> 0
union all
select 'balance of ' || book || ' ' || b.ticker
from (select book, ticker, amount, quantity from balances where account = $1) b
full join (
    select book, coalesce(ticker, '') as ticker, sum(amount) as amount, sum(quantity) as quantity
    from postings where account = $1 group by 1, 2
) p using (book, ticker)
where (b.amount, b.quantity) is distinct from (p.amount, p.quantity)
union all
select 'shares of ' || h.ticker
from (select ticker, quantity from balances where account = $1 and book = 'position') h
full join (
    select o.ticker, sum(case o.side when 'buy' then f.quantity else -f.quantity end) as quantity
    from fills f join orders o using (order_id) where o.account = $1 group by 1
) t using (ticker)
where coalesce(h.quantity, 0) <> coalesce(t.quantity, 0)
  and not exists (select from entries where account = $1 and kind = 'split')
"""
"""What is wrong in an account's books, a row each. Splits change what is held without a fill."""

STEPS: Final = """
select step, count(*) as cycles,
       avg(extract(epoch from finished_at - created_at)) * 1000 as ms
from operations where account = $1 and status = 'completed' group by step order by ms desc
"""

PROMPTS: Final = """
select coalesce(sum(pg_total_relation_size(relid)), 0)::bigint
from pg_partition_tree(to_regclass('prompt_texts'))
"""


@dataclass
class Year:
    """One run: seconds of each cycle, its CPU seconds by program, memory on the way."""

    cycle_s: list[float] = field(default_factory=list)
    cpu_s: list[dict[str, float]] = field(default_factory=list)
    settled_mb: dict[str, float] = field(default_factory=dict)
    last_mb: dict[str, float] = field(default_factory=dict)
    step_ms: dict[str, float] = field(default_factory=dict)
    orders: int = 0
    stored_bytes: dict[str, int] = field(default_factory=dict)

    def summary(self) -> dict[str, float]:
        """The figures of the run by name."""
        cycles = len(self.cycle_s)
        tenth = max(cycles // 10, 1)
        grown = self.last_mb["deskbus"] - self.settled_mb["deskbus"]
        return {
            "whole, s": sum(self.cycle_s),
            "a cycle, ms": 1e3 * sum(self.cycle_s) / cycles,
            "first tenth, ms a cycle": 1e3 * sum(self.cycle_s[:tenth]) / tenth,
            "last tenth, ms a cycle": 1e3 * sum(self.cycle_s[-tenth:]) / tenth,
            "CPU, ms a cycle": 1e3 * sum(sum(each.values()) for each in self.cpu_s) / cycles,
            **{f"- {name}": 1e3 * spent for name, spent in _mean(self.cpu_s)},
            **{f"- {name}, last tenth": 1e3 * s for name, s in _mean(self.cpu_s[-tenth:])},
            f"memory of the desk after {SETTLED_AFTER}, MB": self.settled_mb["deskbus"],
            "memory of the desk at the end, MB": self.last_mb["deskbus"],
            "grown, MB": grown,
            "orders": float(self.orders),
            **{
                f"{name} on disk, kB a cycle": size / cycles / KILOBYTE
                for name, size in self.stored_bytes.items()
            },
        }


@dataclass(frozen=True)
class Running:
    """The desk's process and the ways to ask it."""

    pid: int
    data_dir: Path
    client: Client
    db: "asyncpg.Connection[asyncpg.Record]"
    ended: "defaultdict[str, asyncio.Future[str]]"
    """By cycle: how it ended."""

    async def cycle(self, session: date, account: str = ACCOUNT) -> float:
        """One cycle to its end, also beside others; its seconds. Exits where it fails."""
        request = CycleRequest(
            idempotency_key=f"{account}/{session}",
            as_of=session,
            pipelines=(Pipeline(name="rules", account=account),),
        )
        began = time.perf_counter()
        reply = await self.client.request(REQUESTS[0].by("cli"), encode(request), timeout=10)
        answer = decode(RequestAnswer, reply.data)
        if answer.outcome != "accepted":
            sys.exit(f"the cycle of {session} was refused: {answer.message}")
        status = await asyncio.wait_for(self.ended[str(answer.cycle_id)], CYCLE_MAX_S)
        took = time.perf_counter() - began
        del self.ended[str(answer.cycle_id)]
        if status != "completed":
            sys.exit(f"the cycle of {session} ended {status}")
        return took

    async def require_balance(self, session: date) -> None:
        """Exit where the account's books are not what they must be."""
        wrong = [row[0] for row in await self.db.fetch(UNBALANCED, ACCOUNT)]
        if wrong:
            sys.exit(f"after {session} the ledger is not balanced: {', '.join(wrong)}")

    async def stored_bytes(self) -> dict[str, int]:
        """The size of the database and of the streams; growth alone says what cycles take."""
        database = await self.db.fetchval("select pg_database_size(current_database())")
        streams = (self.data_dir / STREAMS_DIR).rglob("*")
        return {
            "Postgres": database,
            "- what models were sent": await self.db.fetchval(PROMPTS),
            "NATS": sum(path.stat().st_size for path in streams if path.is_file()),
        }

    def cpu_s(self) -> dict[str, float]:
        """CPU seconds so far, by program."""
        spent: dict[str, float] = defaultdict(float)
        for process in processes.tree(self.pid):
            spent[_program(process.name)] += process.cpu_s
        return spent

    def memory_mb(self) -> dict[str, float]:
        """Resident memory now, by program."""
        found: dict[str, float] = defaultdict(float)
        for process in processes.tree(self.pid):
            found[_program(process.name)] += process.rss_bytes / MEGABYTE
        return found


def main() -> None:
    """Measure and print; exits 1 where a cycle fails or the books are not balanced."""
    arguments = _parse()
    sessions = sessions_before(LAST_SESSION, arguments.sessions)
    years = []
    for number in range(1, arguments.rounds + 1):
        years.append(_year(arguments.deskbus, sessions))
        print(f"round {number}: {sum(years[-1].cycle_s):.2f} s", file=sys.stderr, flush=True)
    found = [year.summary() for year in years]
    steps = {name: [year.step_ms[name] for year in years] for name in years[0].step_ms}
    if arguments.json:
        print(json.dumps({"sessions": len(sessions), "rounds": found, "step_ms": steps}))
    else:
        print(_render(found, steps, len(sessions)))


def _parse() -> argparse.Namespace:
    beside = Path(sys.executable).parent / "deskbus"
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--deskbus", type=shlex.split, default=[str(beside)], metavar="COMMAND")
    parser.add_argument("--sessions", type=int, default=SESSIONS)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def sessions_before(last: date, count: int) -> Sequence[date]:
    """`count` consecutive sessions that end with `last`, in order."""
    calendar = exchange_calendar()
    found = [last]
    while len(found) < count:
        found.append(calendar.previous_session(found[-1]))
    return found[::-1]


def _year(deskbus: Sequence[str], sessions: Sequence[date]) -> Year:
    with tempfile.TemporaryDirectory(prefix="year-") as folder:
        # Started by root, the servers drop its rights, and have to come in all the same.
        Path(folder).chmod(0o711)
        data = Path(folder) / "data"
        with started([*deskbus, "up", "--port", "0"], data) as (process, _):
            return run(_lived(process.pid, data, sessions))


async def _lived(pid: int, data: Path, sessions: Sequence[date]) -> Year:
    async with running(pid, data) as desk:
        return await _measured(desk, sessions)


async def _measured(desk: Running, sessions: Sequence[date]) -> Year:
    year = Year()
    empty = await desk.stored_bytes()
    for number, session in enumerate(sessions, start=1):
        before = desk.cpu_s()
        year.cycle_s.append(await desk.cycle(session))
        spent = desk.cpu_s()
        year.cpu_s.append({name: s - before.get(name, 0.0) for name, s in spent.items()})
        if number == min(SETTLED_AFTER, len(sessions)):
            year.settled_mb = desk.memory_mb()
        await desk.require_balance(session)
    year.last_mb = desk.memory_mb()
    full = await desk.stored_bytes()
    year.stored_bytes = {name: size - empty[name] for name, size in full.items()}
    rows = await desk.db.fetch(STEPS, ACCOUNT)
    year.step_ms = {row["step"]: float(row["ms"]) for row in rows}
    year.orders = await desk.db.fetchval("select count(*) from orders where account = $1", ACCOUNT)
    return year


@asynccontextmanager
async def running(pid: int, data: Path) -> AsyncIterator[Running]:
    """The desk of a data directory, as the command line's key and the console's role reach it."""
    place = json.loads((data / RUNTIME_FILE).read_bytes())
    secrets = Path(place["secrets_dir"])
    ended = defaultdict[str, "asyncio.Future[str]"](asyncio.get_running_loop().create_future)

    async def on_end(message: Msg) -> None:
        event_ = orjson.loads(message.data)
        if not ended[event_["cycle_id"]].done():
            ended[event_["cycle_id"]].set_result(event_["data"]["status"])

    client = await connect(place["nats_url"], "cli", secrets)
    db = await asyncpg.connect(dsn_for(place["postgres_dsn"], CONSOLE_ROLE, secrets))
    try:
        ended_row = next(row for row in EVENTS if row.what == EventType.CYCLE_ENDED)
        await client.subscribe(ended_row.by("*"), cb=on_end)
        await client.flush()
        yield Running(pid, data, client, db, ended)
    finally:
        await db.close()
        await client.close()


def _mean(cycles: Sequence[dict[str, float]]) -> list[tuple[str, float]]:
    """Each program's CPU seconds a cycle, by name."""
    names = sorted({name for cycle in cycles for name in cycle})
    return [(name, sum(each.get(name, 0.0) for each in cycles) / len(cycles)) for name in names]


def _program(name: str) -> str:
    """A process's program; the desk's own is Python's, whatever it calls itself."""
    return name if name in {"postgres", "nats-server"} else "deskbus"


def _render(rounds: Sequence[dict[str, Any]], steps: dict[str, list[float]], sessions: int) -> str:
    rows = [[name, spread(each[name] for each in rounds)] for name in rounds[0]]
    limit = (
        f"goals: {GOAL_S:g} s for {SESSIONS}, {GOAL_POSTGRES_KB:g} kB of Postgres and "
        f"{GOAL_NATS_KB:g} kB of NATS a cycle; flat means less than {MEMORY_GROWTH_MAX_MB:g} MB"
    )
    head = [f"{sessions} cycles, {len(rounds)} rounds", "median (lowest-highest)"]
    waits = [[name, spread(values)] for name, values in steps.items()]
    return "\n\n".join(
        [
            table(head, rows),
            limit,
            table(["step, from its order to its end", "ms, mean of a round"], waits),
        ]
    )


if __name__ == "__main__":
    main()
