"""Commands that nobody but the thief of the orchestrator's NATS key has sent: none changes a book.

Each is put straight into the stream of commands. What the orchestrator has on record of it is
written as the superuser, who stands for an orchestrator whose tables are whole.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from libs.telemetry import metrics
from tests.integration.desk.caller import Caller, Json, account_of, wish
from tests.integration.desk.conftest import Desk

pytestmark = pytest.mark.usefixtures("unharmed")

LETTER_S = 30.0
LOOK_AGAIN_S = 0.1
LATER = "2012-07-03"
TABLES = ("orders", "fills", "entries", "postings", "executions", "snapshots", "limit_changes")


@dataclass
class Victim:
    """An account with its books open, commands of which somebody has copied, and their sender."""

    desk: Desk
    user: Caller
    account: str
    cycle_id: UUID
    commands: Mapping[str, Json]

    def forged(self, step: str, **fields: Any) -> Json:
        """A command for this account that would change its books, as a cycle of its own."""
        cycle = uuid4()
        body = {
            **self.commands[step],
            "op_id": str(uuid4()),
            "cycle_id": str(cycle),
            "pipeline": {"name": "rules", "account": self.account},
            **fields,
        }
        if step == "execute":
            told = {"cycle_id": body["cycle_id"], "as_of": body["as_of"]}
            validation = {**body["decision_validation"], **told}
            body["decision_validation"] = validation
        return json.loads(json.dumps(body, default=str))

    async def on_record(
        self,
        command: Mapping[str, Any],
        *,
        status: str = "pending",
        account: str | None = None,
        service: str = "execution",
    ) -> bytes:
        """As if the orchestrator had sent the command; the bytes that it would have sent."""
        body = json.dumps(command).encode()
        async with self.desk.postgres() as db:
            await self._cycle_of(db, command)
            account = account or self.account
            await self._operation(db, command, body, status, account=account, service=service)
        return body

    async def asked(self, command: Mapping[str, Any], verdict: str | None) -> None:
        """As if a person had been asked before the command, and had said this; None: nothing, in
        all the time there was."""
        step = {**command, "state": "awaiting_approval", "step": "approval"}
        result = None if verdict is None else json.dumps(said(command, verdict)).encode()
        status = "completed" if result else "failed"
        async with self.desk.postgres() as db:
            await self._cycle_of(db, command)
            await self._operation(
                db, step, b"{}", status, account=self.account, result=result, op_id=uuid4()
            )

    async def _cycle_of(self, db: Any, command: Mapping[str, Any]) -> None:
        await db.execute(
            "insert into cycles select (jsonb_populate_record(c, jsonb_build_object("
            "'cycle_id', $2::text, 'idempotency_key', $2::text, 'status', 'completed',"
            " 'ended_at', now()))).* from cycles c where cycle_id = $1 on conflict do nothing",
            self.cycle_id,
            command["cycle_id"],
        )

    async def _operation(
        self,
        db: Any,
        command: Mapping[str, Any],
        body: bytes,
        status: str,
        *,
        account: str,
        service: str = "orchestrator",
        result: bytes | None = None,
        op_id: UUID | None = None,
    ) -> None:
        await db.execute(
            "insert into operations (op_id, cycle_id, started_on, pipeline, account, state, step,"
            " service, attempt, as_of, status, claimed, must_answer, command, result, due_at,"
            " created_at, finished_at) values ($1, $2, current_date, 'rules', $3, $4, $5, $6, 1,"
            " $7, $8, false, false, $9, $10, 'infinity', now(),"
            " case when $8 <> 'pending' then now() end)",
            op_id or UUID(command["op_id"]),
            UUID(command["cycle_id"]),
            account,
            command["state"],
            command["step"],
            service,
            date.fromisoformat(command["as_of"]),
            status,
            body,
            result,
        )

    async def send(self, step: str, body: bytes) -> None:
        """Put a body into the stream, as whoever holds the orchestrator's key."""
        async with self.desk.calling("orchestrator") as thief:
            await thief.nats.publish(f"desk.v1.cmd.execution.{step}", body)
            await thief.nats.flush()

    async def letter_on(self, body: bytes) -> Json:
        """The dead letter that a body became."""
        found: list[Json] = []

        async def kept() -> bool:
            page = await self.user.query("dead_letters", limit=50)
            found.extend([each for each in page["letters"] if await self._is_about(each, body)])
            return bool(found)

        await until(kept)
        return found[0]

    async def _is_about(self, letter: Json, body: bytes) -> bool:
        if letter["size_bytes"] != len(body) or not letter["subject"].startswith("desk."):
            return False
        shown = await self.user.query("dead_letters", sequence=letter["sequence"])
        return bool(shown["letters"][0]["body"] == body.decode())

    async def books(self) -> Sequence[Any]:
        """All that stands in the books of the account, and its clock."""
        async with self.desk.postgres() as db:
            clock = await db.fetchval("select clock from accounts where account = $1", self.account)
            counts = [
                await db.fetchval(_COUNT.format(table=table), self.account) for table in TABLES
            ]
        return [clock, *counts]


_COUNT = (
    "select count(*) from {table} t where to_jsonb(t) ->> 'account' = $1 or"
    " (to_jsonb(t) ->> 'order_id')::uuid in (select order_id from orders where account = $1)"
)


def said(command: Mapping[str, Any], verdict: str, **fields: str) -> Json:
    """A person's word on what a command executes."""
    now, later = datetime.now(UTC), datetime.now(UTC) + timedelta(hours=1)
    hashed = command["decision_validation"]["proposal_hash"]
    return {
        "cycle_id": command["cycle_id"],
        "op_id": str(uuid4()),
        "as_of": command["as_of"],
        "proposal_hash": hashed,
        "validated_hash": hashed,
        "verdict": verdict,
        "approver": "user",
        "decided_at": now.isoformat(),
        "expires_at": later.isoformat(),
        "not_after": later.isoformat(),
        **fields,
    }


@pytest.fixture
async def victim(desk: Desk, user: Caller) -> AsyncIterator[Victim]:
    """An account that a cycle has opened and that holds nothing, and commands of another one."""
    other = await user.run(wish())
    opened = wish(kind="snapshot")
    await user.run(opened)
    async with desk.postgres() as db:
        rows = await db.fetch(
            "select step, command from operations where cycle_id = $1 and service = 'execution'",
            UUID(other["cycle_id"]),
        )
    commands = {row["step"]: json.loads(row["command"]) for row in rows}
    commands["books"] |= {"as_of": LATER}
    made = Victim(desk, user, account_of(opened), UUID(other["cycle_id"]), commands)
    yield made
    async with desk.postgres() as db:
        await db.execute(
            "update operations set status = 'failed', finished_at = now()"
            " where account = $1 and finished_at is null",
            made.account,
        )


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    """What is waited for here is told by no event."""
    async with asyncio.timeout(LETTER_S):
        while True:
            if await holds():
                return
            await asyncio.sleep(LOOK_AGAIN_S)


Bodies = Mapping[str, bytes]
"""By step: what is sent as its command."""


async def refused(victim: Victim, bodies: Bodies, why: str) -> None:
    """Each body becomes a dead letter and an alarm, and changes nothing."""
    before, alarms = await victim.books(), metrics.NOT_ON_RECORD.sum_of(service="execution")
    for step, body in bodies.items():
        await victim.send(step, body)
    for body in bodies.values():
        letter = await victim.letter_on(body)
        assert letter["failure"]["code"] == "not_on_record"
        assert why in letter["failure"]["message"]
    assert await victim.books() == before
    assert metrics.NOT_ON_RECORD.sum_of(service="execution") == alarms + len(bodies)


STEPS = ("execute", "books")


async def test_a_command_of_no_operation_changes_no_account_and_opens_none(victim: Victim) -> None:
    bodies = {step: json.dumps(victim.forged(step)).encode() for step in STEPS}
    await refused(victim, bodies, "no such operation")
    victim.account = f"a{uuid4().hex[:12]}"
    anew = {"books": json.dumps(victim.forged("books")).encode()}
    await refused(victim, anew, "no such operation")
    assert (await victim.books())[0] is None


async def test_another_services_operation_is_none_of_executions(victim: Victim) -> None:
    bodies = {step: await victim.on_record(victim.forged(step), service="risk") for step in STEPS}
    await refused(victim, bodies, "no such operation")


@pytest.mark.parametrize("status", ["pending", "completed"])
async def test_another_body_than_the_one_on_record_is_refused(victim: Victim, status: str) -> None:
    commands = {step: victim.forged(step) for step in STEPS}
    for command in commands.values():
        await victim.on_record(command, status=status)
    bodies = {step: other(command) for step, command in commands.items()}
    await refused(victim, bodies, "is not the one that was sent")


def other(command: Json) -> bytes:
    """The command with something else in it that no check of contracts would see."""
    return json.dumps({**command, "seed": command["seed"] + 1}).encode()


async def test_a_command_for_another_account_than_its_operations_is_refused(
    victim: Victim,
) -> None:
    bodies = {step: await victim.on_record(victim.forged(step), account="nobody") for step in STEPS}
    await refused(victim, bodies, "account nobody is on record")


@pytest.mark.parametrize("verdict", ["reject", None])
async def test_what_a_person_has_not_approved_is_refused_whatever_the_command_says(
    victim: Victim, verdict: str | None
) -> None:
    command = victim.forged("execute")
    await victim.asked(command, verdict)
    approval = said(command, "approve", not_after="2099-01-01T00:00:00Z")
    body = await victim.on_record({**command, "approval": approval})
    await refused(victim, {"execute": body}, "no approval is on record")


async def test_the_command_of_an_ended_operation_changes_nothing_when_it_comes_again(
    victim: Victim,
) -> None:
    """It is no forgery: NATS delivers at least once."""
    bodies = {step: await victim.on_record(victim.forged(step), status="failed") for step in STEPS}
    before, ended = await victim.books(), ended_before()
    for step, body in bodies.items():
        await victim.send(step, body)

    async def dealt_with() -> bool:
        return ended_before() == ended + len(bodies)

    await until(dealt_with)
    assert await victim.books() == before


@pytest.mark.parametrize("verdict", ["reject", None])
async def test_books_that_come_again_after_a_person_was_asked_are_no_forgery(
    victim: Victim, verdict: str | None
) -> None:
    """They were opened before anybody was asked, and need no approval."""
    command = victim.forged("books")
    proposed = victim.forged("execute", cycle_id=command["cycle_id"], as_of=command["as_of"])
    await victim.asked(proposed, verdict)
    body = await victim.on_record(command, status="completed")
    ended, alarms = ended_before(), metrics.NOT_ON_RECORD.sum_of(service="execution")
    await victim.send("books", body)

    async def dealt_with() -> bool:
        return ended_before() == ended + 1

    await until(dealt_with)
    assert metrics.NOT_ON_RECORD.sum_of(service="execution") == alarms


def ended_before() -> float:
    return metrics.COMMANDS.sum_of(service="execution", outcome="ended")


@pytest.mark.parametrize("step", STEPS)
async def test_the_command_on_record_is_done(victim: Victim, step: str) -> None:
    """What the tests above forge would have changed the books: it does where it is true."""
    before = await victim.books()
    await victim.send(step, await victim.on_record(victim.forged(step)))

    async def changed() -> bool:
        return await victim.books() != before

    await until(changed)


async def test_a_command_that_comes_before_its_operation_can_be_seen_is_done_once_it_can(
    victim: Victim,
) -> None:
    """As after a failover, where the server that is asked is not yet the one that has it."""
    command, before = victim.forged("execute"), await victim.books()
    early = metrics.COMMANDS.sum_of(service="execution", outcome="not_yet_on_record")
    await victim.send("execute", json.dumps(command).encode())

    async def came() -> bool:
        now = metrics.COMMANDS.sum_of(service="execution", outcome="not_yet_on_record")
        return now > early

    await until(came)
    assert await victim.books() == before
    await victim.on_record(command)

    async def changed() -> bool:
        return await victim.books() != before

    await until(changed)
