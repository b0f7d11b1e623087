"""Deskbus: seven states with one instant step each, through everything that a real cycle passes.

The shipped orchestrator, libs.bus and service runtime: requests validated and answered after their
commit, contracts validated on both sides, audit rows, headers, events and the relay on. A cycle
counts once its `cycle_ended` event has arrived at a subscriber. Processes: the driver, the
orchestrator (with the provisioner), one service with seven routes. `--mode one`: both in one,
joined as `deskbus up` joins them. With `-claimed` each step is claimed first, as paid work is.
"""

import asyncio
import importlib.metadata
import subprocess
import sys
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from nats.aio.msg import Msg
from pydantic import SecretStr, create_model

from benchmarks.contenders import protocol
from benchmarks.contenders.protocol import STEPS, Options, RunCycle
from contracts.cycle import CycleRequest, RequestAnswer
from contracts.message import Command, Contract
from contracts.subjects.commands import command
from contracts.subjects.subject import Subject
from contracts.subjects.table import REQUESTS
from libs.bus.codec import decode, encode
from libs.bus.connection import connect
from libs.bus.local import LocalBus
from libs.bus.route import Routes, on_command
from libs.bus.service import ServiceRunner
from libs.postgres.migrate import migrate
from libs.postgres.pool import OWNER_ROLE, dsn_for
from libs.runtime.journal import Journal
from libs.runtime.loop import run
from libs.runtime.settings import Settings
from libs.telemetry.logging import configure_logging
from services.orchestrator import app as orchestrator
from services.orchestrator.machine.workflow import State, Step, Workflow
from services.provisioner import app as provisioner

SERVICE: Final = "bench"
ANSWER_TIMEOUT_S: Final = 20.0


BenchRow = Subject[Command, Contract]


def _steps(*, claimed: bool) -> Sequence[BenchRow]:
    """Seven commands; each takes the contract of the one before."""
    rows: list[BenchRow] = []
    for number in range(1, STEPS + 1):
        contract = create_model(f"Bench{number}", __base__=Contract, value=(int, ...))
        needs: dict[str, Any] = {rows[-1].gives: (rows[-1].reply, ...)} if rows else {}
        message = create_model(f"Count{number}", __base__=Command, **needs)
        rows.append(command(SERVICE, f"step{number}", message, contract, claimed=claimed))
    return rows


def _workflow(rows: Sequence[BenchRow]) -> Workflow:
    states = tuple(State(f"state{n}", (Step(row),)) for n, row in enumerate(rows, start=1))
    return Workflow(kind="bench", version=1, states=states)


COMMANDS: Final = _steps(claimed=False)
WORKFLOW: Final = _workflow(COMMANDS)
MODES: Final = ("two", "one", "two-claimed", "one-claimed")


def settings_of(options: Options) -> Settings:
    """Where the servers are, and whose keys to use."""
    return Settings(
        nats={"url": options.nats_url},
        postgres={"dsn": SecretStr(options.postgres_dsn)},
        secrets_dir=Path(options.nkey_seed).parent,
        log={"level": "error"},
    )


@asynccontextmanager
async def open_deskbus(options: Options, index: int) -> AsyncIterator[RunCycle]:
    """Start the processes, then drive them as any client would."""
    configure_logging("warning")
    settings = settings_of(options)
    async with AsyncExitStack() as stack:
        if index == 0:
            await migrate(dsn_for(settings.postgres_address, OWNER_ROLE, settings.secrets_path))
            roles = ("orchestrator", "service") if options.mode.startswith("two") else ("both",)
            for role in roles:
                stack.enter_context(_process(role, options))
        client = await connect(settings.nats_address, "user", settings.secrets_path)
        stack.push_async_callback(client.close)
        ended: dict[UUID, asyncio.Future[None]] = {}

        async def on_ended(message: Msg) -> None:
            future = ended.pop(UUID(message.subject.rpartition(".")[2]), None)
            if future is not None:
                if b'"completed"' not in message.data:
                    future.set_exception(AssertionError(message.data.decode()))
                else:
                    future.set_result(None)

        await client.subscribe("desk.v1.evt.orchestrator.cycle_ended.*", cb=on_ended)
        subject = REQUESTS[0].by("user")

        async def cycle() -> None:
            request = CycleRequest(
                idempotency_key=uuid.uuid4().hex, kind="bench", as_of="2012-06-29"
            )
            reply = await client.request(subject, encode(request), timeout=ANSWER_TIMEOUT_S)
            answer = decode(RequestAnswer, reply.data)
            if answer.cycle_id is None or answer.outcome != "accepted":
                raise AssertionError(answer)
            future = asyncio.get_running_loop().create_future()
            ended[answer.cycle_id] = future
            await future

        yield cycle


@contextmanager
def _process(role: str, options: Options) -> Any:
    argv = [
        sys.executable,
        "-m",
        __spec__.name if __spec__ else "benchmarks.contenders.deskbus_core",
    ]
    argv[2] = "benchmarks.contenders.deskbus_core"
    more = ["--nats-url", options.nats_url, "--nkey-seed", options.nkey_seed]
    more += ["--mode", options.mode]
    process = subprocess.Popen(
        [*argv, role, *more, "--postgres-dsn", options.postgres_dsn],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
    )
    try:
        if process.stdout is None or process.stdout.readline() != b"ready\n":
            raise RuntimeError(f"{role} did not start")
        yield
    finally:
        process.terminate()
        process.wait()


async def _count(given: Command, _journal: Journal, *, row: BenchRow) -> Contract:
    return row.reply.of(given, value=given.attempt)


def _routes(rows: Sequence[BenchRow]) -> Routes:
    return Routes(SERVICE, [on_command(row, _count, row=row) for row in rows])


async def _serve(role: str, options: Options) -> None:
    settings = settings_of(options)
    configure_logging("warning")
    rows = _steps(claimed=options.mode.endswith("-claimed"))
    local = LocalBus(rows) if role == "both" else None
    line = None if local is None else local.line(SERVICE)
    async with AsyncExitStack() as stack:
        if role in {"orchestrator", "both"}:
            await stack.enter_async_context(provisioner.running(settings, rows))
            await stack.enter_async_context(
                orchestrator.running(settings, (_workflow(rows),), local)
            )
        if role in {"service", "both"}:
            runner = ServiceRunner(_routes(rows), settings.nats_address, settings, line)
            await runner.start()
            stack.push_async_callback(runner.stop)
        print("ready", flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1] in {"orchestrator", "service", "both"}:
        run(_serve(sys.argv[1], protocol.parse(sys.argv[2:], modes=MODES)))
    else:
        protocol.run(
            open_deskbus,
            protocol.parse(modes=MODES),
            versions={"nats-py": importlib.metadata.version("nats-py")},
        )
