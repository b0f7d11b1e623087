"""Orders at the broker as people ask for them, and how the broker's side stands."""

from datetime import timedelta

import structlog

from contracts.venue import (
    LIFE_MAX,
    CancelAnswer,
    CancelOrder,
    LookVerdict,
    VenueFinding,
    VenueOrders,
    VenueOrdersQuery,
    VenueQuery,
    VenueStanding,
    VenueState,
)
from libs.broker.venue import UnclearAnswer, VenueAccount
from libs.quant.sizing import CENT
from libs.runtime.errors import DeskError
from services.execution import store as accounts
from services.execution.venue import store
from services.execution.venue.desk import OWN_DATA_KEY, SHARED_KEY, VenueDesk, withdraw
from services.execution.venue.logic import ACTIVE, SKEW_MAX, VenueRow
from services.execution.venue.store import BoundAccount

FINDINGS_MAX = 40
NEVER_MET = "built from Alpaca's public description; the real service was never met"
OLD_LOOK = timedelta(minutes=10)
NOBODY_WATCHES = (
    'add a daily job of the kind exit with this account to [schedule.jobs], and clock = "wall"'
)

log = structlog.get_logger()


class UnknownVenueOrder(DeskError):
    """No broker order has this id."""

    code = "not_found"
    field = "order_id"


async def show_orders(query: VenueOrdersQuery, *, desk: VenueDesk) -> VenueOrders:
    """The orders for the broker, the newest first; one with its whole life.

    Raises UnknownVenueOrder.
    """
    async with desk.pool.acquire() as db:
        if query.order_id is not None:
            rows = await store.by_id(db, [query.order_id])
            if not rows:
                raise _unknown(query.order_id)
            life = await store.life(db, query.order_id, LIFE_MAX)
            shown = store.view(rows[str(query.order_id)]).model_copy(update={"life": life})
            return VenueOrders(orders=(shown,))
        found = await store.newest(db, query.account, query.limit + 1, open_only=query.open_only)
    return VenueOrders(orders=found[: query.limit], more=len(found) > query.limit)


def _unknown(order_id: object) -> UnknownVenueOrder:
    return UnknownVenueOrder(f"no order {order_id} is for a broker: deskbus orders list")


async def cancel_order(caller: str, request: CancelOrder, *, desk: VenueDesk) -> CancelAnswer:
    """Ask for a cancel, and say what is known after some seconds: confirmed, or still pending.

    Raises UnknownVenueOrder.
    """
    why = f"cancelled by {caller}: {request.reason}" if request.reason else f"cancelled by {caller}"
    async with desk.pool.acquire() as db, db.transaction():
        await db.execute(accounts.sql.hold_halts)
        rows = await store.by_id(db, [request.order_id])
        if not rows:
            raise _unknown(request.order_id)
        await withdraw(db, rows, why)
    log.warning("execution.cancel_wanted", order_id=str(request.order_id), by=caller)
    _, pending = await desk.settled(list(rows.values()))
    async with desk.pool.acquire() as db:
        rows = await store.by_id(db, [request.order_id])
    return CancelAnswer(order=store.view(rows[str(request.order_id)]), confirmed=not pending)


async def show_standing(_: VenueQuery, *, desk: VenueDesk) -> VenueStanding:
    """How the broker's side stands, line by line; empty without a trading key."""
    if desk.venue is None:
        return VenueStanding()
    venue = desk.venue
    async with desk.pool.acquire() as db:
        bound = await store.bound_accounts(db)
    broker = await venue.account()
    findings = [
        VenueFinding(name="key", ok=True, said=f"{venue.masked_key}, read by execution only"),
        VenueFinding(
            name="host", ok=True, said=f"{venue.host}: paper, no redirect, no proxy; {NEVER_MET}"
        ),
    ]
    if desk.shares_key:
        findings.append(VenueFinding(name="data key", ok=False, said=SHARED_KEY, todo=OWN_DATA_KEY))
    if isinstance(broker, UnclearAnswer):
        todo = "check the key and the network; a paper account that was deleted has no key any more"
        findings.append(VenueFinding(name="broker", ok=False, said=broker.why, todo=todo))
    else:
        findings += _of_broker(broker, bound, desk)
    for account in bound:
        if not isinstance(broker, VenueAccount) or broker.number == account.bound.account_number:
            findings += await _of_account(account, broker, desk)
    return VenueStanding(findings=tuple(findings[:FINDINGS_MAX]))


def _of_broker(
    broker: VenueAccount, bound: tuple[BoundAccount, ...], desk: VenueDesk
) -> list[VenueFinding]:
    names = {account.bound.account_number: account.name for account in bound}
    is_bound = broker.number in names
    free = broker.status == ACTIVE and not broker.blocked
    said = f"{broker.number} {', '.join((broker.status, *broker.blocked))}"
    skew = (broker.now - desk.clock()).total_seconds()
    is_near = abs(skew) <= SKEW_MAX.total_seconds()
    return [
        VenueFinding(
            name="account",
            ok=free and (is_bound or not bound),
            said=f"{said}, bound to {names[broker.number]}" if is_bound else f"{said}, not bound",
            todo=""
            if is_bound
            else "deskbus account bind NAME"
            if not bound
            else "the key is of another account than the one that is bound: use that one's",
        ),
        VenueFinding(
            name="long only",
            # Before it is bound the broker's account may be as Alpaca makes it.
            ok=True if not broker.unsafe else False if is_bound else None,
            said=", ".join(broker.unsafe) or "no_shorting is on, max_margin_multiplier is 1",
            todo=""
            if not broker.unsafe
            else "set both at the broker; until then nothing is bought"
            if is_bound
            else "binding ends both",
        ),
        VenueFinding(
            name="clock",
            ok=is_near,
            said=f"the broker's is {skew:+.1f} s from ours, next open {broker.next_open:%F %R} UTC",
            todo="" if is_near else "set this machine's clock; until then nothing is sent",
        ),
        VenueFinding(name="rate", ok=True, said=f"{broker.rate_left or 'unknown'} requests left"),
    ]


async def _of_account(
    account: BoundAccount, broker: VenueAccount | UnclearAnswer, desk: VenueDesk
) -> list[VenueFinding]:
    async with desk.pool.acquire() as db:
        last = await store.newest_look(db, account.name)
        rows = await store.live(db, account.name)
    is_old = last is None or desk.clock() - last.at > OLD_LOOK
    agrees = last is not None and last.verdict is LookVerdict.AGREES and not is_old
    said = "never looked" if last is None else f"{last.verdict.value} at {last.at:%F %R} UTC"
    if last is not None and (last.differences or last.note):
        told = [
            f"{it.about or it.kind.value} desk {it.desk}, broker {it.broker}"
            for it in last.differences[:5]
        ]
        said += f": {'; '.join(told) or last.note}"
    if isinstance(broker, VenueAccount):
        held = sum(1 for shares in broker.positions.values() if shares)
        said += f"; the broker's: {broker.cash.quantize(CENT):,f} USD, {held} positions"
    watched_by = desk.watched_by(account.name)
    return [
        VenueFinding(
            name="books",
            ok=agrees,
            said=f"{account.name} {said}",
            todo="" if agrees else f"deskbus account reconcile {account.name}",
        ),
        _of_orders(account, rows),
        VenueFinding(
            name="stops",
            ok=True if watched_by else None,
            said=f"{account.name}'s are the desk's own, "
            + (
                f"watched by {watched_by}" if watched_by else "and no job watches them each session"
            ),
            todo="" if watched_by else NOBODY_WATCHES,
        ),
    ]


def _of_orders(account: BoundAccount, rows: tuple[VenueRow, ...]) -> VenueFinding:
    lost = [row for row in rows if row.state is VenueState.SENT]
    since = min((row.sent_at for row in lost if row.sent_at), default=None)
    said = f"{account.name} has {len(rows)} that are not over"
    if since is not None:
        said += f", {len(lost)} of them unresolved since {since:%F %R} UTC"
    return VenueFinding(
        name="orders",
        ok=not lost,
        said=said,
        todo="deskbus orders list --open" if lost else "",
    )
