"""Commands on record in a real Postgres, as an orchestrator has them before it sends them."""

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime
from uuid import UUID, uuid4

from contracts.account import OpenBooks
from contracts.cycle import Budgets, CycleRequest
from contracts.execution import ExecuteDecisions
from libs.postgres.pool import Pool, PoolConnection
from libs.runtime.journal import Journal

CYCLE = """
insert into cycles (cycle_id, kind, workflow_version, requester, idempotency_key, body_sha256,
                    request, as_of, started_on, status, state, accepted_at, deadline_at, tokens_max,
                    cost_usd_max)
values ($1, 'decision', 1, 'user', $1::uuid::text, '', $2, $3, $4, 'running', '', now(), 'infinity',
        0, 0)
on conflict do nothing
"""
OPERATION = """
insert into operations (op_id, cycle_id, started_on, pipeline, account, state, step, service,
                        attempt, as_of, status, claimed, must_answer, command, result, due_at,
                        created_at, finished_at)
values ($1, $2, $3, $4, $5, $6, $6, $7, 1, $8, 'pending', false, false, $9, $10, 'infinity', now(),
        case when $10::bytea is not null then now() end)
on conflict do nothing
"""

Sent = OpenBooks | ExecuteDecisions


async def put_on_record(
    orchestrator: Pool, command: Sent, constraints: Mapping[str, str] | None = None
) -> Journal:
    """Commit the command as its orchestrator would, with what a person has said where the command
    has it, and the request's constraints; what execution is handed beside the command."""
    body = command.model_dump_json().encode()
    async with orchestrator.acquire() as db, db.transaction():
        await _cycle(db, command, constraints)
        await _operation(db, command, command.op_id, "execution", command.step, body, None)
        approval = command.approval if isinstance(command, ExecuteDecisions) else None
        if approval is not None:
            said = approval.model_dump_json().encode()
            await _operation(db, command, uuid4(), "orchestrator", "approval", b"{}", said)
    return Journal((), _refuse, command_sha256=hashlib.sha256(body).hexdigest())


async def _cycle(db: PoolConnection, command: Sent, constraints: Mapping[str, str] | None) -> None:
    if isinstance(command, OpenBooks):
        request = command.request
    else:
        budgets = Budgets(money=command.decision_validation.budget)
        request = CycleRequest(idempotency_key="k", budgets=budgets, constraints=constraints or {})
    body = request.model_dump_json().encode()
    today = datetime.now(UTC).date()
    await db.execute(CYCLE, command.cycle_id, body, command.as_of, today)


async def _operation(
    db: PoolConnection,
    command: Sent,
    op_id: UUID,
    service: str,
    step: str,
    body: bytes,
    result: bytes | None,
) -> None:
    today, lane = datetime.now(UTC).date(), command.pipeline
    await db.execute(
        OPERATION,
        op_id,
        command.cycle_id,
        today,
        lane.name,
        lane.account,
        step,
        service,
        command.as_of,
        body,
        result,
    )


async def _refuse(*_: object) -> None:
    raise AssertionError("execution has nothing to journal")
