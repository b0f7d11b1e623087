"""Files that are appended to, replaced and cut off under a desk while its cycles run.

    python -m tests.chaos.changing_files --cycles 150 [--seed 7]

A desk of a process a service, on a folder of its own. Each state of a file has its own number in
the last two of four decimals of every close, so that whatever a service read says which state that
was. No cycle may have read two states of a file, or another one than that of its version; one that
fails must fail as `data_changed`; and nothing that was booked may change. Exits 1 where not.
"""

import argparse
import asyncio
import random
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import TypeAlias

import asyncpg

from contracts.cycle import CycleRequest
from contracts.message import Pipeline
from contracts.subjects.cycles import REQUEST_CYCLE
from libs.market.calendar import exchange_calendar
from libs.market.replay.kept import KeptVersions
from libs.market.sources import VERSIONS_DIR
from libs.telemetry.logging import configure_logging
from tests.chaos.desk import QUICK
from tests.chaos.load import User, user_of
from tests.chaos.outages import OwnDesk, desk_on, own_servers
from tests.open_folder import open_folder

BASES = {"AAA": 1_000, "BBB": 3_000, "CCC": 5_000}
SESSIONS = exchange_calendar().sessions(date(2010, 1, 4), date(2012, 12, 31))
FIRST = 300
"""Sessions before the first cycle: enough for every figure."""
STATES_MAX = 99
HEADER = "date,open,high,low,close,volume\n"
BOOKED = ("entries", "postings", "fills", "snapshots")
PAUSE_S = (0.0, 3.0)
"""Between two changes: shorter and longer than a file must rest to count."""
TYPED = "data_changed"
ACCOUNTS = 3

Database: TypeAlias = "asyncpg.Connection[asyncpg.Record]"


@dataclass
class Outcome:
    """What a run did, and every promise that it found broken."""

    cycles: Counter[str] = field(default_factory=Counter)
    changes: Counter[str] = field(default_factory=Counter)
    versions: set[str] = field(default_factory=set)
    read: int = 0
    """Closes that said which state they are of."""
    booked: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    broken: list[str] = field(default_factory=list)


def rows_of(ticker: str, state: int, first: int, end: int) -> str:
    """The rows of some sessions, in one state."""
    rows = []
    for at, day in enumerate(SESSIONS[first:end], first):
        close = f"{BASES[ticker] + at}.{state:04d}"
        rows.append(f"{day},{close},{float(close) + 1:.4f},{float(close) - 1:.4f},{close},900000\n")
    return "".join(rows)


class Folder:
    """The files, and how they change."""

    def __init__(self, path: Path, sessions: int, rng: random.Random, outcome: Outcome) -> None:
        self._path, self._rng, self._outcome = path, rng, outcome
        self._sessions = dict.fromkeys(BASES, sessions)
        self._states = dict.fromkeys(BASES, 1)
        path.mkdir()
        for ticker in BASES:
            (path / f"{ticker}.csv").write_text(self._text(ticker))

    def _text(self, ticker: str) -> str:
        return HEADER + rows_of(ticker, self._states[ticker], 0, self._sessions[ticker])

    def change(self) -> None:
        """Do one thing to one file."""
        ticker = self._rng.choice([*BASES])
        path = self._path / f"{ticker}.csv"
        is_there = path.exists()
        kind = self._rng.choice(["replaced", "written in place", "cut off", "appended", "removed"])
        match kind if is_there else "replaced":
            case "replaced" | "written in place":
                self._states[ticker] = self._states[ticker] % STATES_MAX + 1
                target = path.with_suffix(".part") if kind == "replaced" else path
                target.write_text(self._text(ticker))
                target.replace(path)
            case "cut off":
                text = path.read_text()
                path.write_text(text[: self._rng.randrange(len(text) + 1)])
            case "appended":
                end = self._sessions[ticker] = self._sessions[ticker] + 1
                with path.open("a") as file:
                    file.write(rows_of(ticker, self._states[ticker], end - 1, end))
            case "removed" if ticker != "AAA":
                path.unlink()
        self._outcome.changes[kind] += 1


_NUMBER = re.compile(rb"(?<![0-9.])([0-9]{4})\.00([0-9]{2})0*(?![0-9])")


def states_in(body: bytes, at: int) -> Iterator[tuple[str, int]]:
    """The closes of a session in a record: the ticker of each, and the state of its file."""
    for whole, state in _NUMBER.findall(body):
        for ticker, base in BASES.items():
            if int(whole) == base + at and int(state):
                yield ticker, int(state)


class Run:
    """Cycles and changes side by side."""

    def __init__(self, desk: OwnDesk, user: User, folder: Folder, outcome: Outcome) -> None:
        self._desk, self._user, self._folder, self.outcome = desk, user, folder, outcome
        self._kept = KeptVersions(desk.settings.data_dir / VERSIONS_DIR)

    async def __call__(self, cycles: int, rng: random.Random) -> None:
        """Run so many cycles while files change, and judge each."""
        changing = asyncio.create_task(self._change(rng))
        booked: dict[str, set[str]] = {table: set() for table in BOOKED}
        try:
            for number in range(cycles):
                at = FIRST + number // ACCOUNTS
                request = CycleRequest(
                    idempotency_key=f"{self._user.run_name}-{number}",
                    kind="exit" if number // ACCOUNTS % 3 == 2 else "decision",
                    as_of=SESSIONS[at],
                    pipelines=(Pipeline(name="rules", account=f"a{number % ACCOUNTS}"),),
                    timeout_s=300.0,
                )
                answer = await self._user.ask(REQUEST_CYCLE, request)
                if (
                    answer.code == "no_history"
                ):  # each file there is was cut off before this session
                    self.outcome.cycles["refused"] += 1
                    continue
                status = await self._user.run(request)
                self.outcome.cycles[status.value if status else "unknown"] += 1
                async with self._desk.database() as db:
                    await self._judge(db, at, request)
                    booked = await self._still_booked(db, booked)
                if number % ACCOUNTS == 0:  # a fast machine would be done before a file counts
                    await asyncio.sleep(rng.uniform(*PAUSE_S))
        finally:
            changing.cancel()
        self.outcome.broken += self._desk.ended()

    async def _change(self, rng: random.Random) -> None:
        while True:
            await asyncio.sleep(rng.uniform(*PAUSE_S))
            self._folder.change()

    async def _judge(self, db: Database, at: int, request: CycleRequest) -> None:
        """That the newest cycle read one version, or failed typed."""
        cycle = await db.fetchrow("select * from cycles order by accepted_at desc limit 1")
        assert cycle is not None
        if cycle["status"] != "completed":
            failures = await db.fetch(
                "select failure->>'code' from operations where cycle_id = $1 and status = 'failed'",
                cycle["cycle_id"],
            )
            codes = {row[0] for row in failures}
            self.outcome.failures.update(codes)
            if codes != {TYPED}:
                why = f"{cycle['cycle_id']} {request.as_of}: {codes} {cycle['reason']}"
                self.outcome.broken.append(why)
        self.outcome.versions.add(cycle["data_version"])
        manifest = self._kept.manifest(cycle["data_version"])
        assert manifest is not None
        wanted: dict[str, set[int]] = {}
        for ticker, entry in manifest.files.items():
            content = self._kept.content(entry)
            text = b"" if content is None else content.read_bytes()
            wanted[ticker] = {state for name, state in states_in(text, at) if name == ticker}
        bodies = await db.fetch(
            "select service, convert_from(result, 'utf8') as body from operations"
            " where cycle_id = $1 and result is not null"
            " union all select 'journal', convert_from(entry, 'utf8') from journal"
            " where op_id in (select op_id from operations where cycle_id = $1)",
            cycle["cycle_id"],
        )
        for service, body in bodies:
            for ticker, state in states_in((body or "").encode(), at):
                self.outcome.read += 1
                if state not in wanted.get(ticker, set()):
                    why = f"{service} read state {state} of {ticker}, of {wanted.get(ticker)}"
                    self.outcome.broken.append(f"{cycle['cycle_id']} {request.as_of}: {why}")

    async def _still_booked(self, db: Database, before: dict[str, set[str]]) -> dict[str, set[str]]:
        """The rows of the books, where all earlier ones are still the same."""
        now = {}
        for table in BOOKED:
            rows = await db.fetch(f"select t::text as row from {table} t")
            now[table] = {row["row"] for row in rows}
            changed = before[table] - now[table]
            self.outcome.broken += [f"{table} changed: {row[:200]}" for row in sorted(changed)[:3]]
            self.outcome.booked = max(self.outcome.booked, len(now["entries"]))
        return now


async def changing_files(cycles: int, seed: int, folder: Path) -> Outcome:
    """Bring servers and desk up below `folder`, run, judge."""
    outcome, rng = Outcome(), random.Random(seed)
    files = Folder(folder / "prices", FIRST + cycles // ACCOUNTS + 3, rng, outcome)
    settings = {**QUICK, "market_replay_dir": folder / "prices"}
    async with (
        own_servers(folder) as servers,
        desk_on(servers, folder, settings, processes=True) as desk,
        user_of(desk.settings) as user,
    ):
        await Run(desk, user, files, outcome)(cycles, rng)
    if outcome.cycles["refused"] > cycles // 3:
        outcome.broken.append("more than a third of the cycles was refused")
    if not outcome.read or not outcome.booked or len(outcome.versions) < cycles // 10:
        outcome.broken.append("the run has seen too little to say anything")
    return outcome


def told(outcome: Outcome) -> str:
    """The run, for people."""
    return (
        f"cycles: {dict(outcome.cycles)}, failures: {dict(outcome.failures)}, on "
        f"{len(outcome.versions)} versions; {outcome.read:,} closes read, {outcome.booked} entries "
        f"booked; files {dict(outcome.changes)}; {len(outcome.broken)} promises broken"
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Run and tell."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.changing_files")
    parser.add_argument("--cycles", type=int, default=150)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args(arguments)
    configure_logging("error")
    with open_folder("deskbus-files-") as folder:
        outcome = asyncio.run(changing_files(given.cycles, given.seed, folder))
    sys.stdout.write(f"{told(outcome)}\n")
    for each in outcome.broken:
        sys.stderr.write(f"BROKEN: {each}\n")
    sys.exit(1 if outcome.broken else 0)


if __name__ == "__main__":
    main()
