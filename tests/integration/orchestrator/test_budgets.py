"""Budgets on a real Postgres: never exceeded by whoever reserves at once, nothing lost in a crash.

Where a budget must never be exceeded, the database watches: a check of the table refuses the
transaction that would.
"""

import asyncio
import uuid
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from contracts.cycle import Budgets, CycleRequest, RequestAnswer
from contracts.message import Command, Contract, Pipeline
from contracts.operation import (
    CallKind,
    Claim,
    JournalEntry,
    Record,
    RecordAnswer,
    Reserve,
    Result,
)
from contracts.subjects.commands import command
from contracts.types import Usage
from libs.postgres.pool import OWNER_ROLE, Pool, open_pool
from libs.runtime import ids
from libs.runtime.settings import Settings
from libs.servers.embedded import Servers
from services.orchestrator.commit import Committer
from services.orchestrator.group.inputs import (
    CallsRecorded,
    Claimed,
    CycleRequested,
    GroupInput,
    Resulted,
)
from services.orchestrator.machine.workflow import State, Step, Workflow
from services.orchestrator.schedulers.sweep import Sweep
from tests.flat_settings import settings_with
from tests.integration.orchestrator.conftest import DAY, LANE, Sent

DONE_WITHIN_S = 30.0
SPENDERS = 24
CALL = Reserve(tokens=1_000, cost_usd=Decimal("0.01"))
USED = Usage(
    input_tokens=400,
    output_tokens=200,
    cache_read_tokens=70,
    cache_write_tokens=30,
    cost_usd=Decimal("0.007"),
)


class LeftThought(Contract):
    """One side."""


class RightThought(Contract):
    """The other side."""


class ThinkLeft(Command):
    """Paid work."""


class ThinkRight(Command):
    """Paid work beside it."""


def workflow(time_limit_s: float = 600.0) -> Workflow:
    """Two paid steps at once."""
    return Workflow(
        kind="paid",
        version=1,
        states=(
            State(
                "thinking",
                (
                    Step(
                        command("thinker", "left", ThinkLeft, LeftThought, claimed=True),
                        time_limit_s=time_limit_s,
                    ),
                    Step(
                        command("thinker", "right", ThinkRight, RightThought, claimed=True),
                        time_limit_s=time_limit_s,
                    ),
                ),
            ),
        ),
    )


@dataclass
class Told(Sent):
    """Says when a group has committed."""

    committed: asyncio.Event = field(default_factory=asyncio.Event)

    def __call__(self, *, hurry: bool) -> None:
        super().__call__(hurry=hurry)
        self.committed.set()


@dataclass
class Desk:
    """Some orchestrators and the services' side of their questions."""

    pool: Pool
    committers: list[Committer]
    settings: Settings
    sent: Told

    async def ask(self, given: GroupInput, at: int = 0) -> Any:
        return await self.committers[at % len(self.committers)].ask(given)

    async def request(
        self, needs: Reserve | None = None, budgets: Budgets | None = None
    ) -> RequestAnswer:
        request = CycleRequest(
            idempotency_key=uuid.uuid4().hex,
            kind="paid",
            as_of=DAY,
            pipelines=(Pipeline(name=LANE),),
            budgets=budgets or Budgets(),
        )
        cycle_id = ids.cycle_id("user", request.idempotency_key)
        body = request.idempotency_key.encode()
        answer = await self.ask(CycleRequested(cycle_id, "user", request, DAY, body, needs=needs))
        assert isinstance(answer, RequestAnswer)
        return answer

    async def begin(self, budgets: Budgets | None = None) -> tuple[UUID, UUID]:
        """A cycle's two operations."""
        answer = await self.request(budgets=budgets)
        assert answer.cycle_id is not None, answer
        left, right = (
            ids.operation_id(answer.cycle_id, LANE, "thinking", step, 1)
            for step in ("left", "right")
        )
        return left, right

    async def claim(self, op_id: UUID, at: int = 0) -> int:
        claim = Claim(op_id=op_id, instance="here")
        answer = await self.ask(Claimed("thinker", claim), at)
        assert answer.outcome == "granted", answer
        return answer.epoch

    async def record(
        self,
        op_id: UUID,
        epoch: int,
        *,
        calls: Sequence[tuple[int, Usage]] = (),
        reserve: Reserve | None = None,
        at: int = 0,
    ) -> RecordAnswer:
        entries = tuple(_entry(index, usage) for index, usage in calls)
        record = Record(op_id=op_id, epoch=epoch, entries=entries, reserve=reserve)
        return await self.ask(CallsRecorded("thinker", record), at)

    async def end(self, op_id: UUID, epoch: int, step: str) -> None:
        """The operation is answered."""
        body = await self.pool.fetchval("select command from operations where op_id = $1", op_id)
        contract = {"left": LeftThought, "right": RightThought}[step].of(
            Command.model_validate_json(body)
        )
        result = Result(op_id=op_id, epoch=epoch, contract=contract.model_dump(mode="json"))
        await self.ask(Resulted("thinker", result))

    async def sums(self, table: str, key: str, value: object) -> dict[str, Any]:
        """A row's numbers."""
        row = await self.pool.fetchrow(f'select * from "{table}" where {key} = $1', value)
        assert row is not None
        return dict(row)

    async def today(self) -> dict[str, Any]:
        """Today's budget."""
        return await self.sums("day_budgets", "day", utc_today())


def utc_today() -> date:
    """The day whose budget is in force."""
    return datetime.now(UTC).date()


def _entry(index: int, usage: Usage) -> JournalEntry:
    return JournalEntry(
        index=index,
        kind=CallKind.MODEL,
        name="m",
        request_sha256="0" * 64,
        request=None,
        reply="r",
        usage=usage,
    )


@asynccontextmanager
async def desk_of(
    pool: Pool, orchestrators: int = 1, time_limit_s: float = 600.0, **settings: Any
) -> AsyncIterator[Desk]:
    """Orchestrators at work on a day without spending."""
    await pool.execute(
        "update day_budgets set tokens_spent = 0, tokens_reserved = 0, cost_usd_spent = 0,"
        " cost_usd_reserved = 0, input_tokens = 0, output_tokens = 0, cache_read_tokens = 0,"
        " cache_write_tokens = 0"
    )
    known, sent = settings_with(**settings), Told()
    committers = [
        Committer(pool, (workflow(time_limit_s),), known, sent, sent) for _ in range(orchestrators)
    ]
    async with AsyncExitStack() as stack:
        for committer in committers:
            running = asyncio.create_task(committer.run())
            stack.callback(running.cancel)
        yield Desk(pool, committers, known, sent)


@pytest.fixture
async def owner(servers: Servers) -> AsyncIterator[Pool]:
    """The tables' owner, who may add a check."""
    async with open_pool(servers.postgres_dsn(OWNER_ROLE), size_max=2) as opened:
        yield opened


@asynccontextmanager
async def watched(owner: Pool, table: str, condition: str) -> AsyncIterator[None]:
    """While the block runs the database refuses every transaction that breaks the condition. Rows
    that stand there already are not looked at: other tests share the tables.
    """
    check = f"check ({condition}) not valid"
    await owner.execute(f"alter table {table} add constraint watched {check}")
    try:
        yield
    finally:
        await owner.execute(f"alter table {table} drop constraint watched")


async def spend_all(desk: Desk, op_id: UUID, number: int) -> tuple[int, str | None]:
    """Call after call until the desk says no: how many were made, and the limit it named."""
    epoch = await desk.claim(op_id, number)
    index = 0
    while True:
        answer = await desk.record(op_id, epoch, reserve=CALL, at=number + index)
        if answer.outcome != "ok":
            assert answer.outcome == "budget_exhausted"
            return index, answer.field
        await desk.record(op_id, epoch, calls=[(index, USED)], at=number)
        index += 1


@pytest.mark.parametrize("orchestrators", [4, 1])
async def test_the_day_is_never_exceeded_by_many_who_reserve_at_once(
    pool: Pool, owner: Pool, orchestrators: int
) -> None:
    limit = 30_500
    async with (
        desk_of(pool, orchestrators, budget_day_tokens_max=limit) as desk,
        watched(owner, "day_budgets", f"tokens_spent + tokens_reserved <= {limit}"),
    ):
        # One of each cycle: groups that share a cycle would take turns by its lock.
        operations = [(await desk.begin())[0] for _ in range(SPENDERS)]
        made = await asyncio.gather(
            *(spend_all(desk, op_id, number) for number, op_id in enumerate(operations))
        )
        day = await desk.today()

    calls = sum(count for count, _ in made)
    assert {field for _, field in made} == {"day_tokens_max"}
    assert day["tokens_reserved"] == 0
    assert day["tokens_spent"] == calls * USED.tokens
    # Nor were calls refused that would have fitted once nothing was in flight.
    assert limit - day["tokens_spent"] < SPENDERS * CALL.tokens
    async with desk_of(pool, budget_day_tokens_max=0) as desk:
        op_id, _ = await desk.begin()
        assert await spend_all(desk, op_id, 0) == (0, "day_tokens_max")


async def test_a_cycle_is_never_exceeded_by_its_parallel_steps_at_two_orchestrators(
    pool: Pool, owner: Pool
) -> None:
    async with (
        desk_of(pool, orchestrators=2) as desk,
        watched(owner, "cycles", "tokens_spent + tokens_reserved <= tokens_max"),
    ):
        budgets = Budgets(tokens=9_999)
        sides = await desk.begin(budgets)
        made = await asyncio.gather(*(spend_all(desk, op, n) for n, op in enumerate(sides)))
        cycle = await desk.pool.fetchrow(
            "select c.* from cycles c join operations o using (cycle_id) where op_id = $1", sides[0]
        )

    assert {field for _, field in made} == {"budgets.tokens"}
    assert cycle["tokens_spent"] == sum(count for count, _ in made) * USED.tokens
    assert cycle["tokens_reserved"] == 0


async def test_an_operation_is_stopped_at_its_own_limit_and_the_one_beside_it_goes_on(
    pool: Pool,
) -> None:
    async with desk_of(pool, budget_operation_tokens_max=CALL.tokens + 2 * USED.tokens) as desk:
        left, right = await desk.begin()
        assert await spend_all(desk, left, 0) == (3, "operation_tokens_max")
        assert await spend_all(desk, right, 0) == (3, "operation_tokens_max")


async def test_usage_by_sort_is_the_same_in_journal_operation_cycle_and_day(pool: Pool) -> None:
    async with desk_of(pool) as desk:
        left, right = await desk.begin()
        for op_id, calls in ((left, 3), (right, 2)):
            epoch = await desk.claim(op_id)
            for index in range(calls):
                await desk.record(op_id, epoch, reserve=CALL)
                await desk.record(op_id, epoch, calls=[(index, USED)])
        # Sent again because its answer was lost: it counts once.
        await desk.record(right, epoch, calls=[(1, USED)])
        await desk.end(left, 1, "left")
        operations = [await desk.sums("operations", "op_id", each) for each in (left, right)]
        cycle = await desk.sums("cycles", "cycle_id", operations[0]["cycle_id"])
        day = await desk.today()

    for sort in ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens"):
        one = getattr(USED, sort)
        assert [row[sort] for row in operations] == [3 * one, 2 * one], sort
        assert cycle[sort] == day[sort] == 5 * one, sort
    assert cycle["tokens_spent"] == day["tokens_spent"] == 5 * USED.tokens
    assert cycle["cost_usd_spent"] == day["cost_usd_spent"] == 5 * USED.cost_usd


async def test_calls_of_both_steps_in_one_group_are_added_up(pool: Pool) -> None:
    async with desk_of(pool) as desk:
        sides = await desk.begin()
        epochs = [await desk.claim(op_id) for op_id in sides]
        await asyncio.gather(
            *(
                desk.record(op_id, epoch, calls=[(index, USED)])
                for op_id, epoch in zip(sides, epochs, strict=True)
                for index in range(10)
            )
        )
        day = await desk.today()

    assert (day["tokens_spent"], day["input_tokens"]) == (20 * USED.tokens, 400 * 20)


# --- crashes --------------------------------------------------------------------------------------


class NoBus:
    """Where the sweep sends commands again: nobody hears them, the service is dead."""

    def __init__(self) -> None:
        self.sent = asyncio.Event()

    async def command(self, *_: object) -> None:
        self.sent.set()


@contextmanager
def swept(desk: Desk, bus: NoBus) -> Iterator[None]:
    """The sweep runs beside the block."""
    sweep = Sweep(desk.pool, desk.committers[0], bus, desk.settings)  # type: ignore[arg-type]
    running = asyncio.create_task(sweep.run())
    try:
        yield
    finally:
        running.cancel()


async def ended(desk: Desk, op_id: UUID) -> dict[str, Any]:
    """The operation once it has ended: every group of inputs says that it has committed."""
    async with asyncio.timeout(DONE_WITHIN_S):
        while True:
            desk.sent.committed.clear()
            row = await desk.sums("operations", "op_id", op_id)
            if row["status"] not in {"pending", "running"}:
                return row
            await desk.sent.committed.wait()


async def test_what_a_service_held_back_when_it_died_is_settled_by_the_sweep(pool: Pool) -> None:
    quick = {
        "orchestrator_lease_s": 0.2,
        "orchestrator_sweep_s": 0.05,
        "orchestrator_resend_after_s": 0.1,
    }
    async with desk_of(pool, time_limit_s=1.0, **quick) as desk:
        left, _ = await desk.begin()
        epoch = await desk.claim(left)
        await desk.record(left, epoch, reserve=CALL)
        await desk.record(left, epoch, calls=[(0, USED)], reserve=CALL)  # and it dies in this call
        held = await desk.today()
        await pool.execute(
            "update operations set progress = $1::jsonb where op_id = $2",
            '{"percentage": 0, "step": "waits: no answer for AAPL"}',
            left,
        )
        bus = NoBus()
        with swept(desk, bus):
            operation = await ended(desk, left)
            await bus.sent.wait()  # its command was sent again, and nobody heard it
        cycle = await desk.sums("cycles", "cycle_id", operation["cycle_id"])
        day = await desk.today()

    assert held["tokens_reserved"] == CALL.tokens
    assert (operation["status"], cycle["status"]) == ("failed", "failed")
    assert "timed_out" in str(operation["failure"])
    assert "time limit has passed; it waited: no answer for AAPL" in str(operation["failure"])
    whole = USED.tokens + CALL.tokens
    assert (operation["tokens"], operation["tokens_reserved"]) == (whole, 0)
    for row in (cycle, day):
        assert (row["tokens_spent"], row["tokens_reserved"]) == (whole, 0)
        assert row["cost_usd_spent"] == USED.cost_usd + CALL.cost_usd
        # Nobody counted the lost call: it is of no sort, and not passed off as one.
        assert row["input_tokens"] == USED.input_tokens
        assert row["output_tokens"] == USED.output_tokens


async def lease_ends(pool: Pool, op_id: UUID) -> None:
    """As if its time had passed."""
    await pool.execute(
        "update operations set due_at = now() - interval '1 second' where op_id = $1", op_id
    )


async def test_who_takes_the_work_over_finds_the_lost_reservation_settled_and_room_for_its_own(
    pool: Pool,
) -> None:
    async with desk_of(pool, budget_day_tokens_max=2 * CALL.tokens) as desk:
        left, _ = await desk.begin()
        first = await desk.claim(left)
        await desk.record(left, first, reserve=CALL)
        await lease_ends(pool, left)
        second = await desk.claim(left, at=1)
        settled = await desk.today()
        again = await desk.record(left, second, reserve=CALL)
        late = await desk.record(left, first, calls=[(0, USED)])
        day = await desk.today()

    assert (settled["tokens_spent"], settled["tokens_reserved"]) == (CALL.tokens, 0)
    assert (again.outcome, late.outcome) == ("ok", "fenced")
    assert (day["tokens_spent"], day["tokens_reserved"]) == (CALL.tokens, CALL.tokens)


# --- requests -------------------------------------------------------------------------------------


async def test_a_request_is_refused_on_a_spent_day_and_taken_on_the_next(pool: Pool) -> None:
    async with desk_of(pool, budget_day_tokens_max=USED.tokens + CALL.tokens - 1) as desk:
        left, _ = await desk.begin()
        epoch = await desk.claim(left)
        await desk.record(left, epoch, calls=[(0, USED)])

        refused = await desk.request(needs=CALL)
        free = await desk.request(needs=None)
        fits = await desk.request(needs=Reserve(tokens=CALL.tokens - 1))
        await pool.execute(
            "update day_budgets set day = date '2001-01-01' where day = $1", utc_today()
        )
        tomorrow = await desk.request(needs=CALL)

    assert (refused.outcome, refused.code) == ("rejected", "budget_exhausted")
    assert refused.retry_at is not None
    assert refused.retry_at.date() > datetime.now(UTC).date()
    assert {free.outcome, fits.outcome, tomorrow.outcome} == {"accepted"}
