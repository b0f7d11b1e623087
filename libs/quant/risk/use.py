"""How much of an account's limits its books use. Pure."""

from collections import defaultdict
from collections.abc import Mapping
from decimal import Decimal

from contracts.account import Portfolio
from contracts.risk_use import LimitUse
from libs.quant.risk.facts import RiskFacts

_STEP = Decimal("0.01")
_HUNDRED, _ZERO = Decimal(100), Decimal(0)
MEASURED: Mapping[str, str] = {
    "volatility_pct_max": "account_volatility",
    "cluster_pct_max": "cluster_exposure",
}
"""Limits that take prices of a year to measure, each with the rule that does so in a decision."""


def limits_used(
    books: Portfolio, losses: Mapping[str, Decimal], day_loss_pct: Decimal | None
) -> tuple[LimitUse, ...]:
    """All limits of the account with what its books use of them, open buys included.

    `losses` are what each ticker loses down to its stop, or to nothing where it has none;
    `day_loss_pct` is the loss of the newest session, None where there is no session before.
    """
    facts = RiskFacts(evidence={}, portfolio=books, limits=books.limits, budget=_ZERO, prices={})
    tied = {ticker: facts.exposure(ticker) for ticker in facts.exposed_tickers}
    sectors: defaultdict[str, Decimal] = defaultdict(Decimal)
    for ticker, amount in tied.items():
        sectors[facts.sector(ticker)] += amount
    found = {
        "gross_exposure_pct_max": ("", sum(tied.values(), _ZERO)),
        "position_pct_max": _largest(tied),
        "sector_pct_max": _largest(sectors),
        "risk_per_trade_pct_max": _largest(losses),
    }
    uses = {
        name: {"used": _share(amount, facts.equity), "by": by}
        for name, (by, amount) in found.items()
    }
    if day_loss_pct is not None:
        uses["daily_loss_pct_max"] = {"used": max(day_loss_pct, _ZERO).quantize(_STEP)}
    return tuple(
        LimitUse(limit=name, allowed=Decimal(str(value)), **uses.get(name, {}))
        for name, value in books.limits.model_dump().items()
        if not isinstance(value, bool)
    )


def _largest(amounts: Mapping[str, Decimal]) -> tuple[str, Decimal]:
    """The largest one with its name, of equal ones the first by name."""
    return min(amounts.items(), key=lambda item: (-item[1], item[0]), default=("", _ZERO))


def _share(amount: Decimal, equity: Decimal) -> Decimal:
    """In percent of equity; of no equity any amount is all of it."""
    if not amount:
        return _ZERO
    return (amount * _HUNDRED / equity).quantize(_STEP) if equity else _HUNDRED
