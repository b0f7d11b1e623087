"""How much of an account's limits its books use, and what other ones would allow. Pure."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from decimal import Decimal

from contracts.account import AccountLimits, Portfolio, Side
from contracts.risk import DecisionAction, DecisionValidation
from contracts.risk_use import BuyUnder, LimitUse
from contracts.types import shortened
from libs.quant.risk.evaluation import evaluate
from libs.quant.risk.facts import RiskFacts
from libs.quant.risk.plugins import plugin_ceilings

REASON_CHARS = 200
_STEP = Decimal("0.01")
_HUNDRED, _ZERO = Decimal(100), Decimal(0)
MEASURED: Mapping[str, str] = {
    "volatility_pct_max": "account_volatility",
    "cluster_pct_max": "cluster_exposure",
}
"""Limits that take prices of a year to measure, each with the rule that does so in a decision."""


def limits_used(books: Portfolio, day_loss_pct: Decimal | None) -> tuple[LimitUse, ...]:
    """All limits of the account with what its books use of them, open buys included.

    What a trade may lose is as it was bought: a stop that follows the price is no larger bet.
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
    }
    uses = {
        name: {"used": _share(amount, facts.equity), "by": by}
        for name, (by, amount) in found.items()
    }
    by, bought_at = _largest({h.ticker: h.plan.risk_pct for h in books.positions if h.plan})
    uses["risk_per_trade_pct_max"] = {"used": bought_at.quantize(_STEP), "by": by}
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


def buys_under(
    decision: DecisionValidation, books: Portfolio, limits: AccountLimits, others: AccountLimits
) -> tuple[BuyUnder, ...]:
    """The buys that a decision proposed, by two sets of limits on the books that it was judged by:
    its proposals are judged again by the same rules, on the same evidence."""
    (by_these, known), (by_others, whys) = (_bought(decision, books, it) for it in (limits, others))
    wanted = sorted({it.ticker for it in decision.proposals if it.action is Side.BUY})
    return tuple(
        BuyUnder(
            ticker=ticker,
            shares=by_these.get(ticker, _ZERO),
            then=by_others.get(ticker, _ZERO),
            reason=next((why for why in whys[ticker] if why not in known[ticker]), ""),
        )
        for ticker in wanted
    )


def _bought(
    decision: DecisionValidation, books: Portfolio, limits: AccountLimits
) -> tuple[Mapping[str, Decimal], Mapping[str, Sequence[str]]]:
    """The shares bought by ticker, and by ticker each reason why no more."""
    verdict = evaluate(
        decision.proposals,
        {it.ticker: it for it in decision.evidence},
        books.model_copy(update={"limits": limits}),
        limits,
        decision.budget,
        {it.ticker: it.price for it in decision.evidence},
        moves=decision.moves,
        constraints=decision.constraints,
        own_ceilings=plugin_ceilings((), decision.plugins),
    )
    shares = {it.asset: it.quantity for it in verdict.decisions if it.action is DecisionAction.BUY}
    whys: defaultdict[str, list[str]] = defaultdict(list)
    for it in verdict.checks:
        if it.ticker and not it.passed:
            whys[it.ticker].append(
                shortened(f"{it.rule.replace('_', ' ')}: {it.reason}", REASON_CHARS)
            )
    return shares, whys
