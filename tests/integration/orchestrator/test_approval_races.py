"""Approve, expire and cancel at once, at two orchestrators: one outcome each, whoever is first.

As many races as the variable RACES says; `make soak` runs 1,000.
"""

import asyncio
import os
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from decimal import Decimal
from random import Random
from uuid import UUID

import pytest

from contracts.account import AccountLimits
from contracts.approval import AnswerProposal, Verdict
from contracts.cycle import CycleRequest, RequestAnswer
from contracts.message import Command, Pipeline
from contracts.operation import Result
from contracts.risk import DecisionAction, DecisionValidation, PortfolioDecision
from contracts.subjects.commands import EXECUTE_DECISIONS, command
from contracts.types import Failure, Money
from libs.postgres.pool import Pool
from libs.quant.risk.evaluation import proposal_hash
from libs.runtime import ids
from services.orchestrator.commit import Committer
from services.orchestrator.group.inputs import (
    CancelRequested,
    CycleOverdue,
    CycleRequested,
    OperationOverdue,
    ProposalAnswered,
    Resulted,
)
from services.orchestrator.machine.workflow import State, Step, Workflow
from services.orchestrator.machine.workflows import AWAITING_APPROVAL
from tests.integration.orchestrator.conftest import DAY, LANE, Sent, two_at_work

RACES = int(os.environ.get("RACES", "200"))
AT_ONCE = 20
HOUR_S = 3_600.0
LATE = Failure(code="timed_out", message="the operation's time limit has passed")


class Propose(Command):
    """Make the proposal."""


DECISIONS = (
    PortfolioDecision(
        action=DecisionAction.BUY,
        asset="AAPL",
        quantity=Decimal(10),
        price=Money(amount=Decimal(10)),
        allocation_pct=Decimal(1),
        confidence=0.5,
        reasoning="because",
        strategy_used="rules",
    ),
)
HASH = proposal_hash(DECISIONS)
WORKFLOW = Workflow(
    kind="ask",
    version=1,
    states=(
        State("proposing", (Step(command("maker", "propose", Propose, DecisionValidation)),)),
        AWAITING_APPROVAL,
        State("executing", (Step(EXECUTE_DECISIONS),)),
    ),
)


class Askers:
    """Two orchestrators whose cycles wait for a person."""

    def __init__(self, pool: Pool, committers: Sequence[Committer], sent: Sent) -> None:
        self.pool = pool
        self.committers = committers
        self.sent = sent

    async def waiting(self, timeout_s: float = 600.0) -> UUID:
        """A cycle that waits."""
        cycle_id = await self.begin(timeout_s=timeout_s)
        await self.propose(0, cycle_id)
        return cycle_id

    async def begin(self, *lanes: str, timeout_s: float = 600.0, asks: bool = True) -> UUID:
        """A cycle that the first orchestrator has accepted, and keeps in memory."""
        request = CycleRequest(
            idempotency_key=uuid.uuid4().hex,
            kind="ask",
            as_of=DAY,
            pipelines=tuple(Pipeline(name=lane, account=lane) for lane in lanes or (LANE,)),
            approval_required=asks,
            timeout_s=timeout_s,
        )
        cycle_id = ids.cycle_id("user", request.idempotency_key)
        asked = CycleRequested(cycle_id, "user", request, DAY, b"body")
        await self.committers[0].ask(asked)
        return cycle_id

    async def propose(self, at: int, cycle_id: UUID, lane: str = LANE) -> None:
        """Tell one of them the proposal of a pipeline, which waits from then on."""
        op_id = ids.operation_id(cycle_id, lane, "proposing", "propose", 1)
        validated = DecisionValidation(
            cycle_id=cycle_id,
            op_id=op_id,
            as_of=DAY,
            passed=True,
            decisions=DECISIONS,
            proposal_hash=HASH,
            limits=AccountLimits(),
        )
        result = Result(op_id=op_id, contract=validated.model_dump(mode="json"))
        await self.committers[at].ask(Resulted("maker", result))

    async def say(
        self, at: int, cycle_id: UUID, verdict: Verdict, by: str = "user", lane: str = LANE
    ) -> str:
        """Answer the proposal; the code of the refusal, or `accepted`."""
        said = AnswerProposal(cycle_id=cycle_id, pipeline=lane, proposal_hash=HASH, verdict=verdict)
        answer = await self.committers[at].ask(ProposalAnswered(by, said))
        assert isinstance(answer, RequestAnswer)
        return answer.code or answer.outcome

    async def cancel(self, at: int, cycle_id: UUID) -> str:
        answer = await self.committers[at].ask(CancelRequested(cycle_id, "race"))
        assert isinstance(answer, RequestAnswer)
        return answer.code or answer.outcome

    async def expire(self, at: int, cycle_id: UUID) -> None:
        """As the sweep does: it looks, and tells only of what is past its time."""
        asked = ids.operation_id(cycle_id, LANE, "awaiting_approval", "approval", 1)
        late = await self.pool.fetchval(
            "select op_id from operations where op_id = $1 and status = 'pending'"
            " and deadline_at <= clock_timestamp()",
            asked,
        )
        if late is not None:
            await self.committers[at].ask(OperationOverdue(asked, LATE))

    async def expires_in(self, cycle_id: UUID, seconds: float) -> None:
        await self.pool.execute(
            "update operations set deadline_at = clock_timestamp() + $2 * interval '1 second'"
            " where cycle_id = $1 and step = 'approval'",
            cycle_id,
            seconds,
        )

    async def outcome(self, cycle_id: UUID) -> tuple[str, int, Counter[str]]:
        """The cycle's status, its execution commands, and its events by type."""
        status = await self.pool.fetchval("select status from cycles where cycle_id = $1", cycle_id)
        executions = await self.pool.fetchval(
            "select count(*) from operations where cycle_id = $1 and step = 'execute'", cycle_id
        )
        rows = await self.pool.fetch("select type from state_events where cycle_id = $1", cycle_id)
        return status, executions, Counter(row["type"] for row in rows)


@asynccontextmanager
async def asking(pool: Pool) -> AsyncIterator[Askers]:
    """Two of them, at work."""
    sent = Sent()
    async with two_at_work(pool, WORKFLOW, sent) as committers:
        yield Askers(pool, committers, sent)


@pytest.fixture
async def askers(pool: Pool) -> AsyncIterator[Askers]:
    async with asking(pool) as askers:
        yield askers


async def race(askers: Askers, seed: int) -> str:
    """All three at once, near the very moment of expiry; what it came to."""
    random = Random(seed)
    cycle_id = await askers.waiting()
    await askers.expires_in(cycle_id, random.uniform(-0.01, 0.3))

    async def approve(at: int, by: str) -> str:
        await asyncio.sleep(random.uniform(0, 0.2))
        return await askers.say(at, cycle_id, Verdict.APPROVE, by)

    async def expire() -> None:
        await asyncio.sleep(random.uniform(0, 0.3))
        await askers.expire(random.randrange(2), cycle_id)

    async def cancel() -> str:
        await asyncio.sleep(random.uniform(0, 0.3))
        return await askers.cancel(random.randrange(2), cycle_id)

    first, second, _, cancelled = await asyncio.gather(
        approve(0, "user"), approve(1, "cli"), expire(), cancel()
    )
    await askers.expire(0, cycle_id)

    status, executions, events = await askers.outcome(cycle_id)
    said = {first, second}
    decided, expired = events["approval_decided"], events["approval_expired"]
    if executions:
        assert (status, executions, decided, expired) == ("running", 1, 1, 0)
        assert said == {"accepted", "decided"}
        assert cancelled == "too_late"
        return "approved"
    assert said <= {"expired", "too_late"}
    if status == "expired":
        assert (decided, expired, events["cycle_ended"], cancelled) == (0, 1, 1, "too_late")
    else:
        assert (status, decided, expired, events["cycle_ended"]) == ("cancelled", 0, 0, 1)
        assert cancelled == "accepted"
    return str(status)


async def test_each_race_has_one_outcome_whoever_is_first(askers: Askers) -> None:
    outcomes: Counter[str] = Counter()
    for first in range(0, RACES, AT_ONCE):
        seeds = range(first, min(first + AT_ONCE, RACES))
        outcomes.update(await asyncio.gather(*(race(askers, seed) for seed in seeds)))
    assert outcomes.total() == RACES
    assert outcomes.keys() == {"approved", "expired", "cancelled"}


async def test_an_answer_and_a_result_kept_in_anothers_memory_both_count(askers: Askers) -> None:
    for _ in range(AT_ONCE):
        cycle_id = await askers.begin("alpha", "beta")
        await askers.propose(1, cycle_id, "alpha")
        # The first one still has the cycle as it was before, with both pipelines at work.
        _, said = await asyncio.gather(
            askers.propose(0, cycle_id, "beta"),
            askers.say(1, cycle_id, Verdict.APPROVE, lane="alpha"),
        )
        assert said == "accepted"
        status, executions, events = await askers.outcome(cycle_id)
        assert (status, executions, events["approval_requested"]) == ("running", 1, 2)
        waits = "select waiting_since is not null from cycles where cycle_id = $1"
        assert await askers.pool.fetchval(waits, cycle_id)
        assert await askers.say(0, cycle_id, Verdict.APPROVE, lane="beta") == "accepted"
        assert (await askers.outcome(cycle_id))[1] == 2
        assert not await askers.pool.fetchval(waits, cycle_id)


async def test_an_approval_is_never_sent_to_a_service(askers: Askers) -> None:
    cycle_id = await askers.waiting()
    assert await askers.say(1, cycle_id, Verdict.APPROVE) == "accepted"
    # Commands leave after the answer; the next group is taken after them.
    assert await askers.say(1, cycle_id, Verdict.APPROVE) == "accepted"
    assert askers.sent.steps == ["propose", "execute"]


async def test_the_answer_may_be_repeated_at_either_orchestrator(askers: Askers) -> None:
    cycle_id = await askers.waiting()
    for at in (0, 1, 0, 1):
        assert await askers.say(at, cycle_id, Verdict.APPROVE) == "accepted"
    status, executions, events = await askers.outcome(cycle_id)
    assert (status, executions, events["approval_decided"]) == ("running", 1, 1)


async def test_the_time_that_a_person_takes_is_not_the_cycles(askers: Askers) -> None:
    cycle_id = await askers.waiting(timeout_s=HOUR_S)
    # The limit passes and an hour goes by, while it waits.
    await askers.pool.execute(
        "update cycles set deadline_at = clock_timestamp() - interval '10 minutes',"
        " waiting_since = clock_timestamp() - interval '1 hour' where cycle_id = $1",
        cycle_id,
    )
    await askers.committers[0].ask(CycleOverdue(cycle_id))
    assert (await askers.outcome(cycle_id))[0] == "running"
    assert await askers.say(0, cycle_id, Verdict.APPROVE) == "accepted"
    row = await askers.pool.fetchrow(
        "select waited_s, waiting_since, extract(epoch from deadline_at - clock_timestamp())"
        "::float8 as left_s from cycles where cycle_id = $1",
        cycle_id,
    )
    assert row["waiting_since"] is None
    assert row["waited_s"] == pytest.approx(HOUR_S, abs=5)
    assert row["left_s"] == pytest.approx(HOUR_S - 600, abs=5)


async def test_the_expiry_stands_although_the_sweep_has_not_come(askers: Askers) -> None:
    cycle_id = await askers.waiting()
    await askers.expires_in(cycle_id, -0.001)
    assert await askers.say(0, cycle_id, Verdict.APPROVE) == "expired"
    assert (await askers.outcome(cycle_id))[0] == "running"
    await askers.expire(1, cycle_id)
    assert (await askers.outcome(cycle_id))[0] == "expired"
