"""Accounts in a line each: what they are worth, what moved, and what is at risk."""

import re
from collections.abc import Mapping
from decimal import Decimal

from contracts.account import Portfolio
from contracts.performance import AccountSummaries, AccountSummary
from libs.quant.standing import AccountStanding
from services.console import logic
from services.console.store import ACCOUNTS_MAX, sql
from services.console.views import accounts
from services.console.views.desk import DeskViews
from services.console.views.ticker import stop_of

THROW_AWAY = re.compile(r"run-[0-9a-f]{8}")
"""Accounts that `deskbus run` opens for one look."""
CURVE_POINTS = 40
CENT = Decimal("0.01")
ZERO = Decimal(0)


async def summaries(limit: int, desk: DeskViews) -> AccountSummaries:
    """The first `limit` accounts that people watch."""
    names = await desk.store.column(sql.watched_accounts, ACCOUNTS_MAX)
    lasting = [name for name in names if not THROW_AWAY.fullmatch(name)] or names
    read = [await accounts.read(name, desk) for name in lasting[:limit]]
    lines = [summary(one.books, one.standing) for one in read if one and one.standing]
    return AccountSummaries(accounts=tuple(lines), more=max(len(lasting) - limit, 0))


def summary(books: Portfolio, stands: AccountStanding) -> AccountSummary:
    """An account by its books now, and how it stands."""
    close, gain = stands.close, _day_gain(stands)
    # As a session's return is: with what was paid in since at its beginning.
    begun = close.equity - gain if gain is not None else ZERO
    lost = _at_risk(books).values()
    risk = sum((loss for loss, _ in lost), ZERO)
    unprotected = sum((value for _, value in lost), ZERO)
    return AccountSummary(
        account=books.account,
        currency=books.equity.currency,
        as_of=close.session,
        equity=close.equity,
        day_gain=gain,
        day_gain_pct=logic.pct(gain / begun) if gain is not None and begun else None,
        total_gain=close.gain,
        return_pct=stands.return_pct.quantize(logic.PCT_STEP),
        exposure_pct=close.exposure_pct.quantize(logic.PCT_STEP),
        positions=len(books.positions),
        risk=risk.quantize(CENT),
        unprotected=unprotected.quantize(CENT),
        curve=tuple(
            value.quantize(logic.PCT_STEP)
            for value in logic.picked(list(stands.grown.values()), CURVE_POINTS)
        ),
    )


def _day_gain(stands: AccountStanding) -> Decimal | None:
    """The gain since the close before, without what was paid in; None where there is none."""
    if len(stands.closes) < 2:
        return None
    before, now = stands.closes[-2:]
    return (now.gain - before.gain).quantize(CENT)


def _at_risk(books: Portfolio) -> Mapping[str, tuple[Decimal, Decimal]]:
    """Of each position the loss down to its stop order, and the value that it leaves unsold."""
    found = {}
    for held in books.positions:
        stop = stop_of(books, held.ticker)
        covered = ZERO if stop is None else min(stop.order.quantity, held.quantity)
        loss = ZERO if stop is None else max(stop.risk, ZERO)
        found[held.ticker] = loss, (held.quantity - covered) * held.price.amount
    return found
