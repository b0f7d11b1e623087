"""The kill switch's two requests. Who asks is the identity that NATS lets publish there."""

from collections.abc import Sequence

import structlog

from contracts.halt import HaltAnswer, HaltTrading, ResumeTrading
from libs.postgres.pool import Pool, PoolConnection
from libs.runtime.nearest import UnknownAccount
from services.execution import store
from services.execution.venue import store as venue
from services.execution.venue.desk import VenueDesk, withdraw
from services.execution.venue.logic import VenueRow

log = structlog.get_logger()


async def halt_trading(
    caller: str, request: HaltTrading, *, pool: Pool, venue_desk: VenueDesk | None = None
) -> HaltAnswer:
    """Block buys. When this returns, none that was under way can commit any more. Those at a broker
    are asked to be cancelled; the answer says how many are over and how many pending.

    Raises UnknownAccount.
    """
    answer, buys = await _change(caller, request, halted=True, pool=pool)
    if venue_desk is None:
        return answer.model_copy(update={"pending": len(buys)})
    cancelled, pending = await venue_desk.settled(buys)
    return answer.model_copy(update={"cancelled": cancelled, "pending": pending})


async def resume_trading(caller: str, request: ResumeTrading, *, pool: Pool) -> HaltAnswer:
    """End a halt. Raises UnknownAccount."""
    answer, _ = await _change(caller, request, halted=False, pool=pool)
    return answer


async def _change(
    caller: str, request: HaltTrading | ResumeTrading, *, halted: bool, pool: Pool
) -> tuple[HaltAnswer, Sequence[VenueRow]]:
    """The answer, and of a halt the buys that were at a broker or on their way."""
    buys: Sequence[VenueRow] = ()
    async with pool.acquire() as db, db.transaction():
        await store.lock_halts(db)
        await _require_known(db, request.account)
        stands = await store.is_halted(db, request.account)
        if stands is not halted:
            await store.change_halt(db, request.account, request.reason, caller, halted=halted)
        if halted:
            buys = await venue.live_buys(db, request.account)
            why = f"halted by {caller}: {request.reason}"[:400]
            await withdraw(db, {row.client_id: row for row in buys}, why)
        answer = HaltAnswer(changed=stands is not halted, halts=await store.read_halts(db))
    if answer.changed:
        what = "execution.halted" if halted else "execution.resumed"
        log.warning(what, account=request.account or "all", by=caller, reason=request.reason)
    return answer, buys


async def _require_known(db: PoolConnection, account: str | None) -> None:
    if account is not None and await store.clock_of(db, account) is None:
        raise UnknownAccount(account, await store.account_names(db))
