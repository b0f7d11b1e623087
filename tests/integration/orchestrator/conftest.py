"""A real Postgres and orchestrators without a bus: what one commits, and what another one sees."""

import uuid
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import date
from uuid import UUID

import pytest

from contracts.cycle import CycleRequest, RequestAnswer
from contracts.message import Command, Contract, Message, Pipeline
from contracts.operation import Result, ResultAnswer
from contracts.subjects.commands import command
from contracts.types import Failure
from libs.postgres.pool import ORCHESTRATOR_ROLE, Pool, open_pool
from libs.runtime import ids
from libs.runtime.background import Background
from libs.runtime.settings import Settings
from libs.servers.embedded import Servers
from services.orchestrator.commit import Committer, OutgoingCommand
from services.orchestrator.group.changes import Stop
from services.orchestrator.group.inputs import CycleRequested, Resulted
from services.orchestrator.machine.workflow import State, Step, Workflow
from tests.integration.conftest import ServersIn, migrated_servers
from tests.integration.own_servers import OwnServers

DAY = date(2012, 6, 29)
LANE = "alpha"


class LeftDone(Contract):
    """One side of the join."""


class RightDone(Contract):
    """The other side."""


class Joined(Contract):
    """What needs both."""


class DoLeft(Command):
    """Do one side."""


class DoRight(Command):
    """Do the other side."""


class Join(Command):
    """Needs both sides."""

    left_done: LeftDone
    right_done: RightDone


CONTRACTS: dict[str, type[Contract]] = {"left": LeftDone, "right": RightDone, "join": Joined}
SIDES = (
    Step(command("maker", "left", DoLeft, LeftDone)),
    Step(command("maker", "right", DoRight, RightDone)),
)
WORKFLOW = Workflow(
    kind="join",
    version=1,
    states=(
        State("sides", SIDES),
        State("joining", (Step(command("maker", "join", Join, Joined)),)),
    ),
)


@pytest.fixture(scope="session")
def servers(servers_in: ServersIn) -> Iterator[OwnServers]:
    """One pair of servers for all tests here; each test makes cycles of its own."""
    with migrated_servers(servers_in) as held:
        yield held


@pytest.fixture
async def pool(servers: Servers) -> AsyncIterator[Pool]:
    """Connections as the orchestrator's own role."""
    async with open_pool(servers.postgres_dsn(ORCHESTRATOR_ROLE)) as opened:
        # An orchestrator that an earlier test ran and ended has left the desk's clock standing.
        await opened.execute("update desk_clock set stands_at = 'infinity'")
        yield opened


@dataclass
class Sent:
    """An outbox that keeps what would have been published."""

    steps: list[str] = field(default_factory=list)
    woken: int = 0

    def free_workers(self, service: str, step: str) -> int:
        del service, step
        return 0

    async def send(self, command: OutgoingCommand) -> None:
        self.steps.append(command.step)

    async def stop(self, stop: Stop) -> None:
        self.steps.append(f"stop {stop.op_id}")

    def __call__(self, *, hurry: bool) -> None:
        self.woken += 1


@dataclass
class Orchestrators:
    """Some orchestrators on one database, and the service that answers their commands."""

    pool: Pool
    committers: Sequence[Committer]
    sent: Sent

    async def begin(self, at: int = 0, key: str = "") -> UUID:
        """Have a cycle accepted by one of them."""
        request = CycleRequest(
            idempotency_key=key or uuid.uuid4().hex,
            kind="join",
            as_of=DAY,
            pipelines=(Pipeline(name=LANE),),
        )
        cycle_id = ids.cycle_id("user", request.idempotency_key)
        asked = CycleRequested(cycle_id, "user", request, DAY, request.idempotency_key.encode())
        answer = await self.committers[at].ask(asked)
        assert isinstance(answer, RequestAnswer)
        assert answer.outcome == "accepted", answer
        return cycle_id

    async def answer(self, at: int, cycle_id: UUID, step: str, wrong: bool = False) -> str:
        """Tell one of them a step's result; returns its word."""
        state = "joining" if step == "join" else "sides"
        op_id = ids.operation_id(cycle_id, LANE, state, step, 1)
        body = await self.pool.fetchval("select command from operations where op_id = $1", op_id)
        contract = CONTRACTS[step].of(Command.model_validate_json(body))
        result = Result(op_id=op_id, contract=contract.model_dump(mode="json"))
        if wrong:
            failure = Failure(code="broken", message="it broke")
            result = Result(op_id=op_id, failure=failure)
        answer: Message | None = await self.committers[at].ask(Resulted("maker", result))
        assert isinstance(answer, ResultAnswer)
        return answer.outcome

    async def steps(self, cycle_id: UUID) -> list[tuple[str, str]]:
        """The cycle's operations and how they stand, by step."""
        rows = await self.pool.fetch(
            "select step, status from operations where cycle_id = $1 order by step", cycle_id
        )
        return [(row["step"], row["status"]) for row in rows]

    async def status(self, cycle_id: UUID) -> str:
        found: str = await self.pool.fetchval(
            "select status from cycles where cycle_id = $1", cycle_id
        )
        return found


@asynccontextmanager
async def two_at_work(
    pool: Pool, workflow: Workflow, sent: Sent
) -> AsyncIterator[Sequence[Committer]]:
    """Two orchestrators' committers, which send to `sent`."""
    committers = [Committer(pool, (workflow,), Settings(), sent, sent) for _ in range(2)]
    async with Background(*(each.run() for each in committers)):
        yield committers


@pytest.fixture
async def orchestrators(pool: Pool) -> AsyncIterator[Orchestrators]:
    """Two of them, at work."""
    sent = Sent()
    async with two_at_work(pool, WORKFLOW, sent) as committers:
        yield Orchestrators(pool, committers, sent)
