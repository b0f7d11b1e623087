"""The crash matrix: a cycle of 14 paid calls and 12 tool calls, hit at every point of it.

    python -m tests.chaos.crash_matrix [--every N] [--one-process]

A run without faults says which points a cycle passes: around each claim, record and result, each
call of a model (also while it is in flight) and each tool. Then a cycle a point is hit there. Its
service is killed at every point; the orchestrator and the servers in the middle of its questions;
at every point of the trader and the analyst the service is frozen until another instance has the
work, or is done with it, then thawed. The model is a process that no fault touches; it counts.
Exits 1 where a call on record was begun again, a cycle came to another decision, or an order was
placed twice. `--every 5` takes every fifth point. With `--one-process` the desk is one process, as
`deskbus up` has it: claims, records and results are calls, and who kills a service kills all.
"""

import argparse
import asyncio
import json
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from datetime import date
from enum import StrEnum
from itertools import groupby
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import orjson
from pydantic import SecretStr

from contracts.cycle import CycleRequest
from contracts.message import Pipeline
from contracts.subjects.subject import BACKBONE, SERVICES
from libs.bus.permissions import permissions
from libs.postgres.migrate import migrate
from libs.postgres.pool import OWNER_ROLE, ROLES
from libs.runtime import ids
from libs.runtime.model_settings import NO_RATE, EndpointSettings, Rate
from libs.runtime.settings import Settings
from libs.servers.embedded import Servers, embedded_servers
from libs.servers.supervisor import Child, Supervisor
from libs.telemetry.logging import configure_logging
from services.launcher import READY_FILE_VARIABLE, service_children, service_running
from tests.chaos.desk import POSTGRES_GONE, QUICK, REPOSITORY
from tests.chaos.load import User, user_of
from tests.fakes import model_process
from tests.fakes.model_process import Manner, ModelProcess
from tests.fakes.mortal import DESK, FOLDER_VARIABLE, MODEL_LOG_VARIABLE, Plan
from tests.fakes.rules_model import Appetite
from tests.flat_settings import settings_with
from tests.open_folder import open_folder

KEY = "planted-claude-0123456789"
PIPELINE = "claude"
UNIVERSE = ("AAPL", "MSFT")
MANNER = Manner(delay_s=0.1, appetites={"analyst": Appetite(tools_max=6, round_max=2)})
"""The analyst asks in three rounds; with them a cycle has its 14 calls and 12 tools."""
PAID_CALLS = 14
TOOL_CALLS = 12
THINKING = ("sentiment", "research", "trader", "risk", "assessment")
MORTAL = (*THINKING, "execution", "orchestrator", "study", DESK)
ALL_APART = {**dict.fromkeys((*BACKBONE, *SERVICES), 1), **dict.fromkeys(THINKING, 2)}
"""Each service as a process; two of those that think, since a frozen one's work goes to another."""
ONE_PROCESS = {DESK: 1}
"""All services in one process, with nobody beside it who could go on."""
READY_TIMEOUT_S = 120.0
CYCLE_TIMEOUT_S = 120.0
LOOK_S = 0.01
LEASE_S = 1.5
MATRIX_SETTINGS: Mapping[str, Any] = {
    **QUICK,
    "orchestrator_epochs_max": 50,
    "budget_day_tokens_max": 10**9,
    "budget_day_cost_usd_max": 10**6,
}


class Fault(StrEnum):
    """Who is hit."""

    SERVICE = "its service killed"
    ORCHESTRATOR = "the orchestrator killed"
    NATS = "NATS killed"
    POSTGRES = "Postgres killed"
    EVERYTHING = "all of them killed at once"
    FROZEN = "its service frozen until another has the work"
    FROZEN_LONG = "its service frozen until another is done"

    @property
    def freezes(self) -> bool:
        """Whether nobody dies."""
        return self in {Fault.FROZEN, Fault.FROZEN_LONG}


WHERE = {
    "hand": "before its command is handed over",
    "handed": "after its command is handed over",
    "claim": "before its claim",
    "claimed": "after its claim",
    "reserve": "before a call is reserved",
    "reserved": "after a call is reserved",
    "call": "right before a call",
    "in flight": "a call is in flight",
    "reply": "the reply is there",
    "record": "before the reply is recorded",
    "recorded": "after the reply is recorded",
    "tool": "before a tool runs",
    "told": "after a tool ran",
    "result": "before its result",
    "answered": "after its result",
}
ASKS = ("claim", "reserve", "record", "result")
"""The points right after which the orchestrator has a question."""
LATE_PAID = "call"
"""Between the lease's check and the call's first byte: who is frozen here calls when thawed, for
the operation that the point is of or for one beside it in its process. No promise covers it, and
the table counts it."""
FROZEN_STEPS = ("picks", "analyst")


@dataclass(frozen=True)
class Point:
    """The `number`-th `what` of the operation of a step's attempt."""

    lane: str
    state: str
    step: str
    what: str
    number: int
    attempt: int = 1

    def op_id(self, cycle_id: UUID) -> str:
        """The operation that passes it in a cycle."""
        return str(ids.operation_id(cycle_id, self.lane, self.state, self.step, self.attempt))


@dataclass(frozen=True)
class Story:
    """What a cycle came to, without ids and times: the same in every cycle, whatever was hit."""

    status: str
    decision: tuple[str, ...]
    orders: tuple[str, ...]
    calls: tuple[tuple[str, str], ...]
    substitutes: tuple[tuple[str, str, str], ...] = ()


@dataclass(frozen=True)
class Found:
    """One cycle that was hit: how many paid calls were begun again, which of them and of the tools
    although their replies were on record, whether whoever was frozen was about to send these, and
    how it ended."""

    fault: Fault
    point: Point
    calls_again: int
    repeated: tuple[str, ...]
    tools_repeated: tuple[str, ...]
    was_sending: bool
    same: bool
    refused: bool
    took_s: float

    @property
    def is_sound(self) -> bool:
        """Whether every promise was kept."""
        paid_once = self.was_sending or not self.repeated
        # Tools are free and only read: who wakes up may run some before it is refused.
        run_once = self.fault.freezes or not self.tools_repeated
        return self.same and self.refused and paid_once and run_once


class NotHit(Exception):
    """A cycle ended without passing its point: the matrix would say nothing."""


@dataclass
class MortalDesk:
    """A desk whose services can be hit at a point; the model that it pays; a user."""

    folder: Path
    servers: Servers
    supervisor: Supervisor
    model: ModelProcess
    user: User
    one_process: bool
    hits: int = 0

    @property
    def faults(self) -> Sequence[Fault]:
        """What can happen to it: in one process nobody takes over from who is frozen, and the
        orchestrator dies with each service."""
        if self.one_process:
            return (Fault.SERVICE, Fault.NATS, Fault.POSTGRES, Fault.EVERYTHING)
        return tuple(Fault)

    def victims(self, fault: Fault) -> tuple[int, ...]:
        """The pids of those that a fault kills beside or instead of the service."""
        match fault:
            case Fault.SERVICE | Fault.FROZEN | Fault.FROZEN_LONG:
                return ()
            case Fault.ORCHESTRATOR:
                return (self.supervisor.pid("orchestrator-1"),)
            case Fault.NATS | Fault.POSTGRES:
                return (self.servers.pid(fault.split()[0].lower()),)
            case Fault.EVERYTHING:
                singly = {Fault.ORCHESTRATOR, Fault.NATS, Fault.POSTGRES} & {*self.faults}
                return tuple(pid for each in singly for pid in self.victims(each))

    def passed(self, op_id: str) -> Iterator[Mapping[str, Any]]:
        """What the services wrote down about an operation so far."""
        path = self.folder / "passed.jsonl"
        for line in path.read_text().splitlines() if path.exists() else ():
            if op_id in line and line.endswith("}"):
                yield json.loads(line)

    async def first(self, op_id: str, fits: Callable[[Mapping[str, Any]], bool]) -> Any:
        """Wait for a line about an operation."""
        while True:
            for line in self.passed(op_id):
                if fits(line):
                    return line
            await asyncio.sleep(LOOK_S)

    @asynccontextmanager
    async def database(self) -> AsyncIterator["asyncpg.Connection[asyncpg.Record]"]:
        """A connection to Postgres, which may just be starting again."""
        while True:
            with suppress(*POSTGRES_GONE):
                db = await asyncpg.connect(self.servers.postgres_dsn(OWNER_ROLE), timeout=5)
                break
            await asyncio.sleep(0.1)
        try:
            yield db
        finally:
            await db.close()


@asynccontextmanager
async def mortal_desk(
    folder: Path,
    apart: Mapping[str, int],
    manner: Manner = MANNER,
    rate: Rate = NO_RATE,
    lease_s: float = LEASE_S,
    further: Sequence[str] = (),
    **given: Any,
) -> AsyncIterator[MortalDesk]:
    """A desk below `folder`, which every user must be able to enter.

    The services in `apart` are so many processes each; the others live in this one, without a bus
    inside it. `ONE_PROCESS` is a desk apart, with one. The same model answers the `further`
    providers, in OpenAI's format. `given` are further settings.
    """
    log = folder / "asked.jsonl"
    with model_process.running(log, [KEY], manner) as model:
        async with AsyncExitStack() as stack:
            servers = await stack.enter_async_context(
                embedded_servers(folder / "desk", permissions(), ROLES, database_owner=OWNER_ROLE)
            )
            await migrate(servers.postgres_dsn(OWNER_ROLE))
            endpoints = {PIPELINE: EndpointSettings(base_url=model.url, rate=rate)}
            for name in further:
                endpoints[name] = EndpointSettings(base_url=f"{model.url}/v1", rate=rate)
            for name in endpoints:
                (servers.secrets_dir / f"{name}.key").write_text(KEY)
            made = _settings(servers, endpoints, {"orchestrator_lease_s": lease_s, **given})
            one_process = DESK in apart
            children = _children(folder, made, apart, log)
            supervisor = await stack.enter_async_context(Supervisor(children))
            for name in (*BACKBONE, *SERVICES):
                if name not in apart and not one_process:
                    await stack.enter_async_context(service_running(name, made))
            await _ready(children)
            user = await stack.enter_async_context(user_of(made))
            yield MortalDesk(folder, servers, supervisor, model, user, one_process)


def _settings(
    servers: Servers, endpoints: dict[str, EndpointSettings], given: Mapping[str, Any]
) -> Settings:
    return settings_with(
        nats_url=servers.nats_url,
        postgres_dsn=SecretStr(servers.postgres_address),
        secrets_dir=servers.secrets_dir,
        data_dir=servers.data_dir,
        providers=endpoints,
        **{**MATRIX_SETTINGS, **given},
    )


def _children(
    folder: Path, settings: Settings, apart: Mapping[str, int], log: Path
) -> Sequence[Child]:
    own = {FOLDER_VARIABLE: str(folder), MODEL_LOG_VARIABLE: str(log)}
    return [
        replace(
            child,
            argv=(sys.executable, "-m", "tests.fakes.mortal", name)
            if name in MORTAL
            else child.argv,
            env={**(child.env or {}), **own},
            cwd=REPOSITORY,
        )
        for name, count in apart.items()
        for child in service_children(name, settings, count)
    ]


async def _ready(children: Sequence[Child]) -> None:
    """Wait until all processes take work."""
    files = [Path((child.env or {})[READY_FILE_VARIABLE]) for child in children]
    async with asyncio.timeout(READY_TIMEOUT_S):
        while not all(file.exists() for file in files):  # noqa: ASYNC110 - theirs
            await asyncio.sleep(LOOK_S)


class Matrix:
    """Hits one cycle after another on a desk that is up; each is asked for by a fresh `request`."""

    def __init__(self, desk: MortalDesk, request: Callable[[], CycleRequest] | None = None) -> None:
        self._desk = desk
        self._request = request or paid_cycle
        self.last: UUID | None = None
        self.points: Sequence[Point] = ()
        self.reference: Story | None = None

    async def calm(self) -> None:
        """A cycle without faults: the points there are, and what the others must come to."""
        cycle_id = await self._cycle(lambda _: _nothing())
        self.reference = await self._story(cycle_id)
        self.points = await self._points(cycle_id)

    def points_of(self, fault: Fault) -> Sequence[Point]:
        """Where a fault is to hit."""
        match fault:
            case Fault.SERVICE:
                return self.points
            case Fault.ORCHESTRATOR:
                return [point for point in self.points if point.what in ASKS]
            case Fault.FROZEN | Fault.FROZEN_LONG:
                frozen = [point for point in self.points if point.step in FROZEN_STEPS]
                return [point for point in frozen if point.what != "answered"]
            case _:
                return [point for point in self.points if point.what == "record"]

    async def hit(self, fault: Fault, point: Point) -> Found:
        """One cycle that is hit at one point."""
        desk, began = self._desk, time.monotonic()
        desk.hits += 1
        mark = f"hit-{desk.hits}"
        asked_before = len(desk.model.lines())
        refused = True

        async def meanwhile(cycle_id: UUID) -> None:
            nonlocal refused
            if fault.freezes:
                refused = await self._thaw(point, point.op_id(cycle_id), fault)

        def plan(cycle_id: UUID) -> Awaitable[None]:
            Plan(
                op_id=point.op_id(cycle_id),
                what=point.what,
                number=point.number,
                mark=mark,
                freeze=fault.freezes,
                self_too=fault in {Fault.SERVICE, Fault.EVERYTHING},
                victims=desk.victims(fault),
            ).write(desk.folder)
            return meanwhile(cycle_id)

        cycle_id = await self._cycle(plan)
        if not (desk.folder / mark).exists():
            raise NotHit(f"{fault} at {point}")
        lines = [line for line in desk.model.lines()[asked_before:] if line["what"] == "begin"]
        requests = Counter(line["request"] for line in lines)
        entries = await self._entries(cycle_id)
        repeated = repeated_of(entries, lines)
        return Found(
            fault=fault,
            point=point,
            calls_again=requests.total() - len(requests),
            repeated=repeated,
            was_sending=fault.freezes and self._was_sending(cycle_id, point, entries, repeated),
            tools_repeated=self._tools_repeated(entries),
            same=await self._story(cycle_id) == self.reference,
            refused=refused,
            took_s=time.monotonic() - began,
        )

    async def _cycle(self, plan: Callable[[UUID], Awaitable[None]]) -> UUID:
        """Run a cycle on an account of its own; `plan` gets its id before it is asked for."""
        request = self._request()
        self.last = self._desk.user.cycle_id(request)
        meanwhile = plan(self._desk.user.cycle_id(request))
        async with asyncio.timeout(CYCLE_TIMEOUT_S):
            await asyncio.gather(self._desk.user.run(request), meanwhile)
        return self._desk.user.cycle_id(request)

    async def _thaw(self, point: Point, op_id: str, fault: Fault) -> bool:
        """Thaw who is frozen once another is so far; whether nothing that it then says counts."""
        desk = self._desk
        here = {"what": point.what, "number": point.number}
        frozen = await desk.first(op_id, lambda line: here.items() <= line.items())
        pid = frozen["pid"]
        so_far = {"outcome": "granted"} if fault is Fault.FROZEN else {"what": "answered"}
        try:
            await desk.first(
                op_id, lambda line: line["pid"] != pid and so_far.items() <= line.items()
            )
        finally:
            os.kill(pid, signal.SIGCONT)
        await desk.first(op_id, lambda line: line["pid"] == pid and "left" in line)
        said = [
            line["outcome"]
            for line in desk.passed(op_id)
            if line["pid"] == pid and line.get("asked_at", 0) > frozen["at"]
        ]
        return not {"ok", "granted"} & {*said}

    def _was_sending(
        self,
        cycle_id: UUID,
        point: Point,
        entries: Sequence[Mapping[str, Any]],
        agents: Sequence[str],
    ) -> bool:
        """Whether the process that was frozen had come to a call of each agent, and no further."""
        here = {"what": point.what, "number": point.number}
        passed = self._desk.passed(point.op_id(cycle_id))
        frozen = next(line for line in passed if here.items() <= line.items())
        for agent in agents:
            op_id = next(
                entry["op_id"]
                for entry in entries
                if entry["kind"] == "model" and entry["request"]["agent"] == agent
            )
            before = [
                line["what"]
                for line in self._desk.passed(op_id)
                if "what" in line and line["pid"] == frozen["pid"] and line["at"] <= frozen["at"]
            ]
            if before[-1:] != [LATE_PAID]:
                return False
        return True

    async def _points(self, cycle_id: UUID) -> Sequence[Point]:
        """The points that a cycle has passed, in their order."""
        async with self._desk.database() as db:
            rows = await db.fetch(
                "select op_id, pipeline, state, step, attempt from operations where cycle_id = $1"
                " order by created_at, op_id",
                cycle_id,
            )
        return [
            Point(
                row["pipeline"],
                row["state"],
                row["step"],
                line["what"],
                line["number"],
                row["attempt"],
            )
            for row in rows
            for line in self._desk.passed(str(row["op_id"]))
            if "what" in line
        ]

    async def _story(self, cycle_id: UUID) -> Story:
        async with self._desk.database() as db:
            status = await db.fetchval("select status from cycles where cycle_id = $1", cycle_id)
            result = await db.fetchval(
                "select result from operations where cycle_id = $1 and step = 'validate'", cycle_id
            )
            orders = await db.fetch(
                "select ticker, side, quantity from orders where cycle_id = $1 order by 1, 2",
                cycle_id,
            )
            entries = await entries_of(db, cycle_id)
        decision = orjson.loads(result) if result else {}
        decisions = decision.get("decisions", ())
        marks = decision.get("substitutes", ())
        return Story(
            status=status,
            decision=tuple(f"{d['action']} {d['asset']} {d['quantity']}" for d in decisions),
            orders=tuple(f"{row['side']} {row['ticker']} {row['quantity']}" for row in orders),
            calls=tuple(sorted((entry["step"], entry["name"]) for entry in entries)),
            substitutes=tuple((mark["stage"], mark["by"], mark["why"]) for mark in marks),
        )

    async def _entries(self, cycle_id: UUID) -> Sequence[Mapping[str, Any]]:
        async with self._desk.database() as db:
            return await entries_of(db, cycle_id)

    def _tools_repeated(self, entries: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
        """Tools that were run although their results were on record."""
        return tuple(
            str(entry["name"])
            for entry in entries
            if entry["kind"] == "tool"
            for line in self._desk.passed(entry["op_id"])
            if (line.get("tool"), line.get("arguments"))
            == (entry["name"], entry["request"]["arguments"])
            and line["at"] > entry["at"]
        )


def repeated_of(entries: Sequence[Mapping[str, Any]], lines: Sequence[Any]) -> tuple[str, ...]:
    """Agents whose paid calls were begun although their replies were on record.

    An agent's calls are asked for in the order of its entries, whichever process asks.
    """
    found = []
    entries = sorted(entries, key=lambda entry: entry["at"])
    for agent in {line["agent"] for line in lines}:
        own = [e for e in entries if e["kind"] == "model" and e["request"]["agent"] == agent]
        begun = [line for line in lines if line["agent"] == agent]
        requests = list(dict.fromkeys(line["request"] for line in begun))
        for request, entry in zip(requests, own, strict=True):
            late = [line for line in begun if line["request"] == request]
            found += [agent for line in late if line["at"] > entry["at"]]
    return tuple(found)


def paid_cycle() -> CycleRequest:
    """A cycle of 14 paid calls on an account that nobody has used."""
    mark = uuid4().hex[:12]
    return CycleRequest(
        idempotency_key=mark,
        as_of=date(2012, 6, 29),
        universe=UNIVERSE,
        pipelines=(Pipeline(name=PIPELINE, provider=PIPELINE, account=f"a{mark}"),),
    )


async def _nothing() -> None:
    """Without a fault nothing happens meanwhile."""


async def entries_of(db: Any, cycle_id: UUID) -> Sequence[Mapping[str, Any]]:
    """The calls of models and tools on record, in the order of asking."""
    rows = await db.fetch(
        "select j.entry, j.recorded_at, o.step, o.pipeline, o.op_id"
        " from journal j join operations o using (op_id)"
        " where o.cycle_id = $1 order by o.op_id, j.index",
        cycle_id,
    )
    found = [
        {
            **orjson.loads(row["entry"]),
            "at": row["recorded_at"].timestamp(),
            "step": row["step"],
            "pipeline": row["pipeline"],
            "op_id": str(row["op_id"]),
        }
        for row in rows
    ]
    return [entry for entry in found if entry["kind"] in {"model", "tool"}]


async def matrix(
    every: int, folder: Path, apart: Mapping[str, int], tell: Callable[[Found], None]
) -> Sequence[Found]:
    """All faults at every N-th of their points."""
    async with mortal_desk(folder, apart) as desk:
        run = Matrix(desk)
        await run.calm()
        found = []
        for fault in desk.faults:
            for point in run.points_of(fault)[::every]:
                found.append(await run.hit(fault, point))
                tell(found[-1])
        return found


def table(found: Sequence[Found]) -> str:
    """The matrix for people: a row for each fault and sort of point."""
    head = (
        "| hit | when | cycles | same decision, orders once | paid calls begun again | "
        "of these on record | tools run again that were on record |"
    )
    order = list(WHERE)
    ranked = sorted(found, key=lambda f: (list(Fault).index(f.fault), order.index(f.point.what)))
    rows = [
        f"| {fault} | {WHERE[what]} | {len(each)} | {sum(f.same for f in each)} | "
        f"{sum(f.calls_again for f in each)} | {sum(len(f.repeated) for f in each)} | "
        f"{sum(len(f.tools_repeated) for f in each)} |"
        for (fault, what), group in groupby(ranked, key=lambda f: (f.fault, f.point.what))
        for each in [list(group)]
    ]
    return "\n".join([head, "| --- | --- | ---: | ---: | ---: | ---: | ---: |", *rows])


def main() -> None:
    """Run and tell."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.crash_matrix", description=__doc__)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--one-process", action="store_true")
    parser.add_argument("--keep", action="store_true")
    given = parser.parse_args()
    apart = ONE_PROCESS if given.one_process else ALL_APART
    configure_logging("error")

    def tell(found: Found) -> None:
        mark = "ok" if found.is_sound else "BROKEN"
        sys.stderr.write(f"{mark} {found}\n")

    with open_folder("deskbus-matrix-", keep=given.keep) as folder:
        found = asyncio.run(matrix(given.every, folder, apart, tell))
    sys.stdout.write(f"{table(found)}\n")
    sys.exit(0 if all(each.is_sound for each in found) else 1)


if __name__ == "__main__":
    main()
