"""The processes of the made-up desk: `python -m tests.fakes.chaos_desk ROLE`.

ROLE `desk` is the orchestrator and all services in one process, joined as `deskbus up` joins them.
Everything but the handlers is the shipped code: orchestrator, provisioner, service runtime.
"""

import asyncio
import hashlib
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager

import structlog
from pydantic import JsonValue

from contracts.message import Command
from contracts.operation import CallKind, Reserve
from contracts.types import Usage
from libs.bus.local import LocalBus, LocalLine
from libs.bus.route import Routes, on_command
from libs.bus.service import ServiceRunner
from libs.postgres.pool import EXECUTION_ROLE, Pool, dsn_for, open_pool
from libs.runtime.background import Background
from libs.runtime.errors import DeskError
from libs.runtime.journal import Call, Journal, Reply
from libs.runtime.loop import run
from libs.runtime.settings import Settings
from libs.telemetry.logging import configure_logging
from services.orchestrator import app as orchestrator
from services.provisioner import app as provisioner
from tests.fakes import chaos_workflow as wf
from tests.fakes.chaos_workflow import Behaviour, Shape
from tests.fakes.paid_model import ModelSays, ask_model

MODEL = "CHAOS_MODEL"
WHOLE = "desk"
SERVICES = tuple(sorted({row.owner for row in wf.COMMANDS}))
START_RETRY_S = 0.3
QUICK_S = (0.005, 0.03)
SLOW_S = 1.5
ENDLESS_S = 300.0
TOKENS_IN, TOKENS_OUT = 7, 3
RESERVE = Reserve(tokens=20)
INSERT_EFFECT = "insert into chaos.effects (key, op_id) values ($1, $2)"

log = structlog.get_logger()


class PlanWrong(DeskError):
    """The first plan of a `retry` cycle."""

    code = "plan_wrong"
    corrections = ("make another plan",)


class ModelFailed(DeskError):
    """A paid call that gave nothing."""

    code = "model_failed"


class Calls:
    """The paid calls of one operation, counted in the order of asking as its journal counts."""

    def __init__(self, given: Command, journal: Journal) -> None:
        self._given = given
        self._journal = journal
        self._next = 0

    async def make(
        self, count: int = 1, *, delay_s: float | None = None, fails: bool = False
    ) -> str:
        """`count` calls in parallel; their replies in one text."""
        first, self._next = self._next, self._next + count
        calls = [self._call(index, delay_s, fails) for index in range(first, self._next)]
        return " ".join(map(str, await self._journal.calls(calls)))

    async def look(self) -> None:
        """A free read, journalled with whatever is recorded next."""
        self._next += 1

        async def nothing() -> Reply:
            return Reply("seen")

        await self._journal.call(Call(CallKind.READ, "look", {"step": self._given.step}, nothing))

    def _call(self, index: int, delay_s: float | None, fails: bool) -> Call:
        op_id = self._given.op_id
        delay_s = _delay_s(self._given, index) if delay_s is None else delay_s

        async def ask() -> Reply:
            try:
                text = await ask_model(
                    os.environ[MODEL], op_id, index, delay_s=delay_s, fails=fails
                )
            except ModelSays as error:
                raise ModelFailed(f"the model said {error}") from error
            return Reply(text, Usage(input_tokens=TOKENS_IN, output_tokens=TOKENS_OUT))

        request: JsonValue = {"step": self._given.step, "index": index}
        return Call(CallKind.MODEL, "fake", request, ask, reserve=RESERVE)


def _delay_s(given: Command, index: int) -> float:
    """How long a call takes: the same in every run."""
    low, high = QUICK_S
    digest = hashlib.sha256(f"{given.step}/{given.pipeline.name}/{index}".encode()).digest()
    return low + (high - low) * digest[0] / 255


def _shape(given: Command) -> str:
    """The shape, as far as it concerns the command's pipeline."""
    request = getattr(given, "request")  # noqa: B009 - every command of this desk has one
    shape = str(request.constraints.get("shape", Shape.PLAIN))
    return shape if given.pipeline.name == wf.SECOND else Shape.PLAIN


async def gather(given: wf.Gather, journal: Journal) -> wf.Gathered:
    calls = Calls(given, journal)
    await calls.make()
    await calls.look()
    return wf.Gathered.of(given, value=await calls.make())


async def plan(given: wf.MakeChaosPlan, journal: Journal) -> wf.Planned:
    calls = Calls(given, journal)
    value = await calls.make()
    await journal.progress(50, "half a plan")
    if _shape(given) == Shape.BREAKS:
        await calls.make(fails=True)
    if _shape(given) == Shape.RETRY and given.attempt == 1:
        raise PlanWrong("value: not good enough")
    return wf.Planned.of(given, value=value)


async def left(given: wf.DoLeft, journal: Journal) -> wf.LeftDone:
    calls = Calls(given, journal)
    await calls.make()
    await calls.make(2)
    return wf.LeftDone.of(given, value=await calls.make())


async def right(given: wf.DoRight, journal: Journal) -> wf.RightDone:
    return wf.RightDone.of(given, value=await Calls(given, journal).make(2))


async def check(given: wf.Check, _journal: Journal) -> wf.Checked:
    await asyncio.sleep(QUICK_S[0])
    return wf.Checked.of(given, go_on=_shape(given) != Shape.ENOUGH)


async def remember(given: wf.Remember, journal: Journal) -> wf.Remembered:
    return wf.Remembered.of(given, value=f"{given.outcome}: {await Calls(given, journal).make()}")


async def work(given: wf.Work, journal: Journal) -> wf.Worked:
    behaviour = given.request.constraints.get("behaviour", Behaviour.QUICK)
    calls = Calls(given, journal)
    if behaviour == Behaviour.POISON:
        os.kill(os.getpid(), signal.SIGKILL)
    if behaviour == Behaviour.ENDLESS:
        await calls.make(delay_s=ENDLESS_S)
    if behaviour == Behaviour.SLOW:
        for _ in range(3):
            await calls.make(delay_s=SLOW_S)
    return wf.Worked.of(given, value=await calls.make())


async def effect(given: Command, _journal: Journal, *, pool: Pool) -> wf.Effected:
    """Write the effect once, as execution does: look and write in one transaction, under a lock."""
    key = f"{given.cycle_id}/{given.pipeline.name}"
    async with pool.acquire() as db, db.transaction():
        await db.execute("select pg_advisory_xact_lock(hashtextextended($1, 0))", key)
        if not await db.fetchval("select count(*) from chaos.effects where key = $1", key):
            await db.execute(INSERT_EFFECT, key, given.op_id)
    return wf.Effected.of(given, effect_id=key)


async def one(given: wf.DoOne, _journal: Journal) -> wf.One:
    return wf.One.of(given, value=1)


async def two(given: wf.DoTwo, _journal: Journal) -> wf.Two:
    return wf.Two.of(given, value=2)


Failing = Callable[[], Awaitable[object]]
"""Waits until the process cannot go on."""


def routes_of(service: str, pool: Pool | None) -> Routes:
    """What one of the desk's services hears."""
    every = (
        on_command(wf.GATHER, gather),
        on_command(wf.PLAN, plan),
        on_command(wf.LEFT, left),
        on_command(wf.RIGHT, right),
        on_command(wf.CHECK, check),
        on_command(wf.EFFECT, effect, pool=pool),
        on_command(wf.REMEMBER, remember),
        on_command(wf.WORK, work),
        on_command(wf.ACT, effect, pool=pool),
        on_command(wf.ONE, one),
        on_command(wf.TWO, two),
    )
    return Routes(service, [route for route in every if route.hears.owner == service])


@asynccontextmanager
async def _service(
    name: str, settings: Settings, line: LocalLine | None = None
) -> AsyncIterator[Failing]:
    async with AsyncExitStack() as stack:
        pool = None
        if name == "effector":
            dsn = dsn_for(settings.postgres_address, EXECUTION_ROLE, settings.secrets_path)
            pool = await stack.enter_async_context(open_pool(dsn, name="chaos-effector"))
        runner = ServiceRunner(routes_of(name, pool), settings.nats_address, settings, line)
        await runner.start()
        stack.push_async_callback(runner.stop)
        yield runner.lost.wait


@asynccontextmanager
async def _backbone(name: str, settings: Settings) -> AsyncIterator[Failing]:
    running: AbstractAsyncContextManager[Background]
    if name == "orchestrator":
        running = orchestrator.running(settings, wf.WORKFLOWS)
    else:
        running = provisioner.running(settings, wf.COMMANDS)
    async with running as background:
        yield background.failed


@asynccontextmanager
async def _whole(_: str, settings: Settings) -> AsyncIterator[Failing]:
    async with AsyncExitStack() as stack:
        local = LocalBus(wf.COMMANDS)
        running = orchestrator.running(settings, wf.WORKFLOWS, local)
        failing: list[Failing] = [(await stack.enter_async_context(running)).failed]
        for name in SERVICES:
            opened = _service(name, settings, local.line(name))
            failing.append(await stack.enter_async_context(opened))

        async def first() -> None:
            ends = [asyncio.ensure_future(each()) for each in failing]
            done, _ = await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            for end in done:
                end.result()

        yield first


OPENED: Mapping[str, Callable[[str, Settings], AbstractAsyncContextManager[Failing]]] = {
    WHOLE: _whole,
    "orchestrator": _backbone,
    "provisioner": _backbone,
}
"""By role; the others are services."""


def _tell_tasks() -> None:
    """SIGUSR1: where every task stands, into the log; for a run that got stuck."""
    for task in asyncio.all_tasks():
        task.print_stack(file=sys.stderr)


async def _main(name: str) -> None:
    settings = Settings()
    opened = OPENED.get(name, _service)
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, _tell_tasks)
    while not stop.is_set():
        async with AsyncExitStack() as stack:
            try:
                failed = await stack.enter_async_context(opened(name, settings))
            except DeskError as error:
                log.info("service.waits", why=error.message)
                await asyncio.sleep(START_RETRY_S)
                continue
            ends = [asyncio.ensure_future(failed()), asyncio.ensure_future(stop.wait())]
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            if ends[0].done():
                ends[0].result()
                sys.exit(f"{name}: the connection to NATS was closed for good")


if __name__ == "__main__":
    configure_logging("info", "json")
    structlog.contextvars.bind_contextvars(service=sys.argv[1], pid=os.getpid())
    run(_main(sys.argv[1]))
