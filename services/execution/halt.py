"""The kill switch's two requests. Who asks is the identity that NATS lets publish there."""

import structlog

from contracts.halt import HaltAnswer, HaltTrading, ResumeTrading
from libs.postgres.pool import Pool, PoolConnection
from libs.runtime.nearest import UnknownAccount
from services.execution import store

log = structlog.get_logger()


async def halt_trading(caller: str, request: HaltTrading, *, pool: Pool) -> HaltAnswer:
    """Block buys. When this returns, none that was under way can commit any more.

    Raises UnknownAccount.
    """
    return await _change(caller, request, halted=True, pool=pool)


async def resume_trading(caller: str, request: ResumeTrading, *, pool: Pool) -> HaltAnswer:
    """End a halt. Raises UnknownAccount."""
    return await _change(caller, request, halted=False, pool=pool)


async def _change(
    caller: str, request: HaltTrading | ResumeTrading, *, halted: bool, pool: Pool
) -> HaltAnswer:
    async with pool.acquire() as db, db.transaction():
        await store.lock_halts(db)
        await _require_known(db, request.account)
        stands = any(h.account == request.account for h in await store.read_halts(db))
        if stands is not halted:
            await store.change_halt(db, request.account, request.reason, caller, halted=halted)
        answer = HaltAnswer(changed=stands is not halted, halts=await store.read_halts(db))
    if answer.changed:
        what = "execution.halted" if halted else "execution.resumed"
        log.warning(what, account=request.account or "all", by=caller, reason=request.reason)
    return answer


async def _require_known(db: PoolConnection, account: str | None) -> None:
    if account is not None and await store.clock_of(db, account) is None:
        raise UnknownAccount(account, await store.account_names(db))
