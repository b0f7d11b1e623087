"""The loop benchmark's task through the desk's own loop, with the journal kept here or by the desk.

With `--journal` the journal is the product's: a claim at the orchestrator, a record around every
paid call, committed to Postgres, the lease renewed meanwhile, the result at the end.
"""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from uuid import UUID

from pydantic import JsonValue, SecretStr

from benchmarks import journal as desk_journal
from benchmarks.contenders import loop_task
from benchmarks.contenders.loop_task import (
    ASKED,
    KEY,
    MODELS,
    ROUNDS,
    SYSTEM,
    TIMEOUT_S,
    TOOLS,
    Answer,
)
from benchmarks.servers import BenchServers
from contracts.operation import Claim, Result
from contracts.types import ToolDef
from libs.bus.connection import connect
from libs.bus.operation import Lease, Orchestrator
from libs.llm.agent import Agent, Limits
from libs.llm.endpoints.endpoint import PRESETS, PRICES
from libs.llm.endpoints.remote import RemoteProvider
from libs.llm.loop import generate_with_tools
from libs.llm.prompt import Prompt, Task
from libs.llm.toolbox import Toolbox
from libs.runtime.journal import Journal
from libs.runtime.loop import run
from libs.telemetry.logging import configure_logging

PARAMETERS: Mapping[str, JsonValue] = {
    "type": "object",
    "properties": {"ticker": {"type": "string"}},
    "required": ["ticker"],
    "additionalProperties": False,
}
REPLY_TIMEOUT_S = 10.0


class Tools:
    """The three tools."""

    def definitions(self) -> Sequence[ToolDef]:
        return [
            ToolDef(name=name, description=description, parameters=dict(PARAMETERS))
            for name, description in TOOLS.items()
        ]

    async def call(self, name: str, arguments: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
        return loop_task.result_of(name, str(arguments["ticker"]))


@dataclass(frozen=True)
class Loop:
    """The agent and its tools; made once, as in a service."""

    agent: Agent
    toolbox: Toolbox

    async def run(self, journal: Journal) -> Answer:
        """One operation."""
        answered = await generate_with_tools(
            self.agent, Task(data=dict(ASKED)), Answer, journal, self.toolbox
        )
        if answered.calls != ROUNDS * len(TOOLS):
            raise ValueError(f"{answered.calls} tool calls")
        return answered.answer


def loop_of(given: loop_task.Options) -> tuple[Loop, RemoteProvider]:
    """The loop over an SDK. `once_more`: one round more than it needs, so that the model says that
    it wants no further tools; else the answer is asked for after the last round."""
    url = given.url if given.sdk == "claude" else f"{given.url}/v1"
    preset = PRESETS["claude" if given.sdk == "claude" else "vllm"]
    provider = RemoteProvider(
        replace(preset, base_url=url, timeout_s=TIMEOUT_S), SecretStr(KEY), PRICES
    )
    limits = Limits(rounds_max=ROUNDS + (1 if given.once_more else 0))
    agent = Agent("analyst", provider, MODELS[given.sdk], Prompt.of(SYSTEM), limits=limits)
    return Loop(agent, Toolbox((Tools(),), frozenset(TOOLS))), provider


@dataclass
class Desk:
    """The product's journal: operations that wait to be claimed, one a run."""

    orchestrator: Orchestrator
    waiting: list[tuple[UUID, UUID]]

    async def run(self, loop: Loop) -> Answer:
        """Claim, run, tell the result, as the service runtime does."""
        cycle_id, op_id = self.waiting.pop()
        granted = await self.orchestrator.claim(Claim(op_id=op_id, instance="bench"))
        lease = Lease(self.orchestrator, op_id, granted)
        journal = Journal(granted.journal, lease.record, lease.check)
        async with lease.renewing(on_lost=_lost):
            answer = await loop.run(journal)
            await journal.flush()
            contract = {
                "cycle_id": str(cycle_id),
                "op_id": str(op_id),
                "as_of": ASKED["as_of"],
                "value": 1,
            }
            told = Result(op_id=op_id, epoch=lease.epoch, contract=contract)
            if (await self.orchestrator.result(told)).outcome != "ok":
                raise ValueError("the result was refused")
        return answer


def _lost() -> None:
    raise RuntimeError("the lease was lost: the machine is too busy to measure anything")


@asynccontextmanager
async def desk_of(given: loop_task.Options) -> AsyncIterator[Desk]:
    """Connected to the running desk, with an operation for every run."""
    nats_url, seed, dsn = json.loads(given.journal)
    settings = desk_journal.settings_of(BenchServers(nats_url, Path(seed), dsn))
    bench = await connect(settings.nats_address, "bench", settings.secrets_path)
    user = await connect(settings.nats_address, "user", settings.secrets_path)
    count = given.warmup + given.runs
    try:
        waiting = [await desk_journal.requested(user) for _ in range(count)]
        yield Desk(Orchestrator(bench, "bench", REPLY_TIMEOUT_S), waiting)
    finally:
        await user.close()
        await bench.close()


async def main() -> None:
    """Run the task."""
    given = loop_task.options()
    loop, provider = loop_of(given)
    try:
        if not given.journal:
            await loop_task.measured(lambda: loop.run(Journal((), _kept_here)), given)
            return
        async with desk_of(given) as desk:
            await loop_task.measured(lambda: desk.run(loop), given)
    finally:
        await provider.close()


async def _kept_here(*_: object) -> None:
    """The journal off: it is kept by this process and nobody else."""


if __name__ == "__main__":
    configure_logging("error")
    run(main())
