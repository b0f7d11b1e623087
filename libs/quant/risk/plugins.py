"""Risk rules of the user's: what they are asked, how an answer is read, and how it binds. Pure."""

import math
from collections.abc import Mapping, Sequence
from decimal import ROUND_CEILING, Decimal
from functools import partial

from pydantic import JsonValue

from contracts.account import Portfolio
from contracts.plugins import PLUGIN_POSITIONS_MAX, BuyQuestion, HeldPosition, PluginVerdict
from contracts.risk import DecisionAction, Evidence, PortfolioDecision
from contracts.types import shortened
from libs.quant.risk.facts import PCT_STEP, Leg, LegFinding, RiskFacts, RiskRule
from libs.quant.words import one_line

REASON_CHARS_MAX = 200
WHY = "the desk's owner has a reason of his own"
_ZERO, _HUNDRED = Decimal(0), Decimal(100)


class NoVerdict(ValueError):
    """The answer is none that counts; the text says why."""


def questions_of(
    decisions: Sequence[PortfolioDecision], evidence: Sequence[Evidence], portfolio: Portfolio
) -> Sequence[BuyQuestion]:
    """The questions about the buys among the decisions."""
    known = {item.ticker: item for item in evidence}
    largest = sorted(portfolio.positions, key=lambda held: (-held.value, held.ticker))
    held = tuple(
        HeldPosition(
            ticker=it.ticker,
            quantity=float(it.quantity),
            price=float(it.price.amount),
            value=float(it.value),
            sector=it.sector,
        )
        for it in largest[:PLUGIN_POSITIONS_MAX]
    )
    cash = RiskFacts({}, portfolio, portfolio.limits, _ZERO, {}).cash_free
    return [
        _question(decision, known[decision.asset], portfolio, cash, held)
        for decision in decisions
        if decision.action is DecisionAction.BUY
    ]


def _question(
    decision: PortfolioDecision,
    known: Evidence,
    portfolio: Portfolio,
    cash: Decimal,
    held: tuple[HeldPosition, ...],
) -> BuyQuestion:
    return BuyQuestion(
        as_of=portfolio.as_of,
        account=portfolio.account,
        currency=portfolio.cash.currency,
        equity=float(portfolio.equity.amount),
        cash=float(cash),
        ticker=decision.asset,
        quantity=int(decision.quantity),
        price=float(decision.price.amount),
        lot=decision.lot,
        sector=known.sector,
        risk_score=known.risk,
        confidence=decision.confidence,
        atr=None if known.atr is None else float(known.atr),
        report_on=None if known.report is None else known.report.on,
        positions=held,
    )


def verdict_of(
    plugin: str, sha256: str, asked: BuyQuestion, answer: JsonValue, problem: str = ""
) -> PluginVerdict:
    """The verdict on a buy. An answer that does not count, and a problem in its place, is none:
    nothing is bought then."""
    ceiling, failed = 0, True
    try:
        ceiling, reason = _read(answer, asked.quantity, problem)
        failed = False
    except NoVerdict as why:
        reason = f"it gave no answer that counts: {why}"
    return PluginVerdict(
        plugin=plugin,
        sha256=sha256,
        ticker=asked.ticker,
        asked=Decimal(asked.quantity),
        ceiling=Decimal(ceiling),
        reason=one_line(reason, 2 * REASON_CHARS_MAX),
        failed=failed,
    )


def _read(answer: JsonValue, asked: int, problem: str) -> tuple[int, str]:
    if problem:
        raise NoVerdict(problem)
    match answer:
        case [int() | float() as ceiling, str(reason)] if not isinstance(ceiling, bool):
            pass
        case _:
            said = shortened(repr(answer), 60)
            raise NoVerdict(f"it returned {said}, and not a quantity and a reason, as 0, 'why'")
    if not math.isfinite(ceiling) or ceiling < 0:
        raise NoVerdict(f"a quantity of {shortened(str(ceiling), 40)} is none")
    if ceiling > asked:
        raise NoVerdict(f"it returned {shortened(f'{ceiling}', 40)} shares of {asked} asked")
    if not reason.strip():
        raise NoVerdict("it returned no reason")
    return math.floor(ceiling), one_line(reason, REASON_CHARS_MAX)


def plugin_ceilings(names: Sequence[str], verdicts: Sequence[PluginVerdict]) -> Sequence[RiskRule]:
    """One ceiling a plug-in: those named, and those that have a verdict. Who has none on a buy
    allows nothing of it."""
    by_leg = {(it.plugin, it.ticker): it for it in verdicts}
    return [
        RiskRule(name, WHY, partial(_ceiling, name, by_leg))
        for name in sorted({*names, *(it.plugin for it in verdicts)})
    ]


def _ceiling(
    name: str, verdicts: Mapping[tuple[str, str], PluginVerdict], leg: Leg, facts: RiskFacts
) -> LegFinding:
    verdict = verdicts.get((name, leg.ticker))
    if verdict is None:
        why = "it was not asked about this buy: request the cycle again"
        return LegFinding(_ZERO, "no answer on record", "an answer", why)
    ceiling = min(verdict.ceiling, verdict.asked)
    allowed, budget = leg.allocation_pct, facts.budget
    if ceiling < verdict.asked and budget > 0:
        # Rounded up, as the number of shares is what binds.
        share = ceiling * facts.price_to_size_by(leg.ticker) * _HUNDRED / budget
        allowed = min(allowed, share.quantize(PCT_STEP, ROUND_CEILING))
    elif ceiling < verdict.asked:
        allowed = _ZERO
    value, limit = f"{verdict.asked:f} shares", f"{ceiling:f} shares"
    if verdict.failed:
        limit = "an answer"
        allowed = ceiling = _ZERO
    return LegFinding(allowed, value, limit, verdict.reason, shares_max=ceiling)
