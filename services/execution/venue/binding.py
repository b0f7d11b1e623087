"""Binding an account to a broker's, and taking over the broker's books where both differ."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeVar

import orjson
import structlog

from contracts.account import AccountLimits
from contracts.cycle import STUDY_ACCOUNTS
from contracts.types import Money
from contracts.venue import (
    BindAccount,
    Binding,
    BoundTo,
    DifferenceKind,
    LookVerdict,
    ReconcileAccount,
    Reconciled,
)
from libs.broker.paper import PaperBroker
from libs.broker.venue import Activities, UnclearAnswer, VenueAccount, VenueRefusal
from libs.market.sessions import LatestSession
from libs.quant.sizing import CENT
from libs.runtime.errors import DeskError
from libs.runtime.nearest import UnknownAccount
from services.execution import books, clock, stops
from services.execution import store as accounts
from services.execution.changes import Changes
from services.execution.errors import AccountExists, require_as_shown
from services.execution.venue import store
from services.execution.venue.desk import (
    OWN_DATA_KEY,
    SHARED_KEY,
    BrokerUnknown,
    NotLatest,
    VenueDesk,
)
from services.execution.venue.logic import ACTIVE, Standing
from services.execution.venue.store import BoundAccount, Look

NEVER_BOUND = (STUDY_ACCOUNTS, "run-")
"""Accounts of studies and single runs begin so: they decide on other sessions than the newest."""
BOUND_IS_NEW = "a bound one is new: bind another name, and set your jobs to trade that account"
POSTABLE = frozenset({DifferenceKind.CASH, DifferenceKind.SHARES, DifferenceKind.SPLIT})
"""Differences that a person may settle by taking over what the broker has."""

log = structlog.get_logger()

T = TypeVar("T")


class NotBindable(DeskError):
    """The broker's account cannot be bound in its current state."""

    code = "not_bindable"


class NotBound(DeskError):
    """The account is filled by the simulated broker."""

    code = "not_bound"
    field = "account"

    def __init__(self, account: str) -> None:
        super().__init__(f"account {account} is not bound to a broker")


@dataclass(frozen=True)
class Terms:
    """What a new account begins with, and what is asked beside the broker."""

    desk: VenueDesk
    latest: LatestSession
    limits_of: Callable[[str], AccountLimits]
    currency_of: Callable[[str], str]


async def bind_account(caller: str, request: BindAccount, *, terms: Terms) -> Binding:
    """Show the broker's account of the trading key, or open a new account of the desk that is bound
    to it for ever, where `number` says so.

    Raises NoBroker, NotLatest without live prices, AccountExists, NotBindable for another number
    and where the broker refuses long only and cash only, BrokerUnknown.
    """
    desk, name = terms.desk, request.account
    venue, _ = desk.parts
    if not desk.is_live or desk.reads.market.label.synthetic:
        raise NotLatest("an account is bound on live prices only: choose a live market source")
    bound = await desk.bound(name)
    async with desk.pool.acquire() as db:
        exists = await accounts.clock_of(db, name) is not None
        all_bound = await store.bound_accounts(db)
    broker = _known(await venue.account())
    taken = [it.name for it in all_bound if it.bound.account_number == broker.number]
    if exists and (bound is None or bound.bound.account_number != broker.number):
        raise AccountExists(name, BOUND_IS_NEW)
    opened_on = await terms.latest() if bound is None else bound.opened_on
    shown = Binding(
        account=name,
        venue=venue.name,
        number=broker.number,
        status=broker.status,
        cash=Money(amount=broker.cash.quantize(CENT), currency=broker.currency),
        opened_on=opened_on,
        to_set=() if bound else broker.unsafe,
        bound=bound is not None,
    )
    if bound is not None:
        return shown
    happened = _known(await venue.activities(None))
    working = _known(await venue.open_orders())
    findings = _findings(name, terms, broker, happened, len(working), taken)
    shown = shown.model_copy(update={"findings": findings})
    if request.number is None or findings:
        return shown
    if request.number != broker.number:
        raise NotBindable(
            f"the trading key is of account {broker.number}, not of {request.number}; nothing was "
            "bound"
        )
    return await _bound(caller, shown, happened, terms)


def _known(answer: T | UnclearAnswer) -> T:
    """The broker's answer. Raises BrokerUnknown where there is none."""
    if isinstance(answer, UnclearAnswer):
        raise BrokerUnknown(f"the broker does not answer: {answer.why}")
    return answer


def _findings(
    name: str,
    terms: Terms,
    broker: VenueAccount,
    happened: Activities,
    working: int,
    taken: list[str],
) -> tuple[str, ...]:
    """Why the broker's account cannot be bound; each with what to do."""
    fresh = "make a new paper account, and use its key"
    shared = terms.desk.shares_key and terms.desk.is_apart
    checks = (
        (shared, f"{SHARED_KEY}: {OWN_DATA_KEY}"),
        (
            name.startswith(NEVER_BOUND),
            f"{name} is reserved for the desk's own accounts: choose another name",
        ),
        (bool(taken), f"account {', '.join(taken)} is bound to it already: {fresh}"),
        (
            terms.currency_of(name) != "USD",
            f"account {name} is set to {terms.currency_of(name)}: a bound account is in USD",
        ),
        (broker.currency != "USD", f"the broker's account is in {broker.currency}, not in USD"),
        (broker.status != ACTIVE, f"the broker's account is {broker.status}, not {ACTIVE}"),
        (bool(broker.blocked), f"the broker's account is blocked: {', '.join(broker.blocked)}"),
        (bool(broker.positions), f"it holds {len(broker.positions)} positions: {fresh}"),
        (working > 0, f"it has {working} open orders: {fresh}"),
        (bool(happened.fills), f"it has traded before, {len(happened.fills)} times: {fresh}"),
        (broker.cash <= 0, f"it has {broker.cash:f} in cash: {fresh}"),
    )
    return tuple(words for is_wrong, words in checks if is_wrong)


async def _bound(caller: str, shown: Binding, happened: Activities, terms: Terms) -> Binding:
    desk, name, as_of = terms.desk, shown.account, shown.opened_on
    venue, looker = desk.parts
    refused = await venue.restrict()
    if isinstance(refused, UnclearAnswer):
        raise BrokerUnknown(f"it is unknown whether the account is now long only: {refused.why}")
    if isinstance(refused, VenueRefusal):
        raise NotBindable(f"the broker does not make it long only and cash only: {refused.words}")
    quotes = await desk.reads.quotes(None, "USD", as_of)
    bound = BoundTo(venue=shown.venue, account_number=shown.number)
    opening = books.opening(shown.cash.amount, as_of)
    async with desk.pool.acquire() as db, db.transaction():
        is_new = await accounts.open_account(
            db, name, "USD", as_of, shown.cash.amount, terms.limits_of(name), bound
        )
        if not is_new:
            raise AccountExists(name, BOUND_IS_NEW)
        account = await accounts.load(db, name, as_of, lock=True)
        if account is None:
            raise RuntimeError(f"account {name} is missing after it was opened")
        broker = PaperBroker(Decimal(0), Decimal(0))  # which nothing is asked of
        await accounts.write(db, clock.advance(account, as_of, quotes, broker, (opening,)))
        await store.keep_moves(db, name, [(move, False) for move in happened.moves])
    log.warning("execution.bound", account=name, venue=shown.venue, number=shown.number, by=caller)
    await looker.look(BoundAccount(name, bound, as_of, as_of))
    desk.wake()
    return shown.model_copy(update={"bound": True, "changed": True, "to_set": ()})


async def reconcile_account(
    caller: str, request: ReconcileAccount, *, desk: VenueDesk
) -> Reconciled:
    """Compare both books now. With `confirmed`, the hash of what was shown, the desk's books take
    over the broker's shares and cash, for the reason that is given. Nothing is ever traded for it.

    Raises UnknownAccount, NotBound, NoBroker, NotAsShown.
    """
    name = request.account
    _, looker = desk.parts
    bound = await desk.bound(name)
    if bound is None:
        async with desk.pool.acquire() as db:
            if await accounts.clock_of(db, name) is None:
                raise UnknownAccount(name, await accounts.account_names(db))
        raise NotBound(name)
    look, standing = await looker.look(bound)
    found = [one for one in look.differences if one.kind in POSTABLE]
    digest = None
    if found and standing is not None:
        lines = [one.model_dump(mode="json") for one in found]
        digest = hashlib.sha256(orjson.dumps([name, lines])).hexdigest()
    answer = Reconciled(account=name, look=look.view, hash=digest)
    if request.confirmed is None or digest is None or standing is None:
        return answer
    require_as_shown(request.confirmed, digest)
    if not request.reason.strip():
        raise NotBindable("say why the books are to change: --reason")
    await _adopt(caller, request, bound, digest, look, standing, desk)
    after, _ = await looker.look(bound)
    desk.wake()
    return Reconciled(account=name, look=after.view, posted=True)


async def _adopt(
    caller: str,
    request: ReconcileAccount,
    bound: BoundAccount,
    digest: str,
    look: Look,
    standing: Standing,
    desk: VenueDesk,
) -> None:
    """Post what the broker's books have more or less than the desk's, and keep who said why."""
    broker = standing.account
    on = desk.reads.calendar.session_on_or_after(
        standing.at.astimezone(desk.reads.calendar.zone).date()
    )
    async with desk.pool.acquire() as db, db.transaction():
        account = await accounts.load(db, bound.name, bound.clock, lock=True)
        if account is None:
            raise RuntimeError(f"account {bound.name} is gone")
        held = {ticker: lot.quantity for ticker, lot in account.books.holdings.items()}
        zero = Decimal(0)
        shares = {
            ticker: broker.positions.get(ticker, zero) - held.get(ticker, zero)
            for ticker in {*held, *broker.positions}
        }
        shares = {ticker: more for ticker, more in shares.items() if more}
        costs = {t: account.books.holdings[t].average_cost for t in shares if held.get(t)}
        prices = {ticker: costs.get(ticker, zero) for ticker in shares}
        cash = (broker.cash - account.books.cash).quantize(CENT)
        key = f"reconciled/{digest[:16]}/{standing.at:%Y%m%dT%H%M%S}"
        memo = f"reconciled with the broker: {request.reason}"[:400]
        changes = Changes(account)
        for entry in books.adjusted(key, on, shares, cash, prices, account.books, memo):
            changes = changes.post(entry)
        for ticker in shares:
            changes = stops.within_held(changes, ticker)
        await accounts.write(db, changes)
        kept = Look(
            standing.at,
            LookVerdict.DIFFERS,
            look.differences,
            account=broker,
            by=caller,
            reason=request.reason,
        )
        await store.keep_look(db, bound.name, kept)
    log.warning("execution.reconciled", account=bound.name, by=caller, reason=request.reason)
