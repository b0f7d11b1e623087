"""A person's change of a limit in the settings, kept on record."""

from uuid import uuid4

import structlog

from contracts.audit import EventType
from contracts.risk_use import LimitEvent, LimitRecorded, SetLimit
from libs.postgres.pool import Pool
from services.execution import store

log = structlog.get_logger()


async def set_limit(caller: str, request: SetLimit, *, pool: Pool) -> LimitRecorded:
    """Write the event. The limits in force are those of the settings that execution started with;
    what they become is kept for each account in `limit_changes`."""
    event = LimitEvent(
        account=request.account,
        limit=request.limit,
        before=request.before,
        value=request.value,
        by=caller,
    )
    async with pool.acquire() as db:
        await store.tell_of_nobody(db, EventType.LIMIT_SET, uuid4(), event)
    log.warning("execution.limit_set", limit=request.limit, account=request.account, by=caller)
    return LimitRecorded()
