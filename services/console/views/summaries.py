"""Accounts in a line each: what they are worth, what moved, and what is at risk."""

import re
from collections.abc import Sequence
from decimal import Decimal

from contracts.account import Portfolio
from contracts.account_query import AccountView
from contracts.performance import AccountSummaries, AccountSummary
from libs.postgres.pool import Record
from libs.quant.returns import ONE, growth
from services.console import logic
from services.console.store import Store
from services.console.views import accounts
from services.console.views.accounts import Closes, worth_of
from services.console.views.ticker import stop_of

THROW_AWAY = re.compile(r"run-[0-9a-f]{8}")
"""Accounts that `deskbus run` opens for one look."""
CURVE_POINTS = 40
CENT = Decimal("0.01")
PCT_STEP = Decimal("0.0001")
ZERO = Decimal(0)


async def summaries(limit: int, *, store: Store, closes: Closes) -> AccountSummaries:
    """The first `limit` accounts that people watch."""
    names = await store.watched_accounts()
    lasting = [name for name in names if not THROW_AWAY.fullmatch(name)] or names
    lines = [await _summary(name, store, closes) for name in lasting[:limit]]
    return AccountSummaries(accounts=tuple(filter(None, lines)), more=max(len(lasting) - limit, 0))


async def _summary(name: str, store: Store, closes: Closes) -> AccountSummary | None:
    stands = await accounts.standing(name, store=store, closes=closes)
    return None if stands is None else summary(accounts.view_of(stands), stands.snapshots)


def summary(view: AccountView, snapshots: Sequence[Record]) -> AccountSummary | None:
    """An account by its books and its closes, oldest first; None where it is not there."""
    books = view.portfolio
    if books is None:
        return None
    equity, as_of = books.equity.amount, books.as_of
    earlier = [snapshot for snapshot in snapshots if snapshot["session"] < as_of]
    gain = _day_gain(view, earlier)
    # As a session's return is: with what was paid in since at its beginning.
    begun = equity - gain if gain is not None else ZERO
    risk, unprotected = _at_risk(books)
    grown = growth({it["session"]: worth_of(it) for it in earlier})
    curve = (*logic.picked(list(grown.values()), CURVE_POINTS - 1), ONE + view.return_pct / 100)
    return AccountSummary(
        account=books.account,
        currency=books.equity.currency,
        as_of=as_of,
        equity=equity,
        day_gain=gain,
        day_gain_pct=_pct(gain, begun) if gain is not None and begun else None,
        total_gain=equity - view.paid_in,
        return_pct=view.return_pct,
        exposure_pct=_pct(view.exposure_gross, equity),
        positions=len(books.positions),
        risk=risk.quantize(CENT),
        unprotected=unprotected.quantize(CENT),
        curve=tuple(value.quantize(PCT_STEP) for value in curve),
    )


def _day_gain(view: AccountView, earlier: Sequence[Record]) -> Decimal | None:
    if not earlier or view.portfolio is None:
        return None
    paid = view.paid_in - earlier[-1]["paid_in"]
    gain: Decimal = view.portfolio.equity.amount - earlier[-1]["equity"] - paid
    return gain.quantize(CENT)


def _at_risk(books: Portfolio) -> tuple[Decimal, Decimal]:
    """The loss down to the stop orders, and the value of what none of them sells."""
    risk = unprotected = ZERO
    for held in books.positions:
        stop = stop_of(books, held.ticker)
        covered = ZERO if stop is None else min(stop.order.quantity, held.quantity)
        unprotected += (held.quantity - covered) * held.price.amount
        risk += ZERO if stop is None else max(stop.risk, ZERO)
    return risk, unprotected


def _pct(part: Decimal, whole: Decimal) -> Decimal:
    return (part / whole * 100).quantize(PCT_STEP) if whole else ZERO
