"""The rules on a buy's plan: what its stop may lose, and what is announced meanwhile."""

from decimal import ROUND_CEILING, Decimal

from contracts.account import EntryPlan
from contracts.types import Money
from libs.quant.recalibration import in_words
from libs.quant.risk.facts import Leg, LegFinding, RiskFacts, gate, pct, share_class, share_of_room
from libs.quant.sizing import BPS_IN_ONE, CASH_RESERVE_BPS, CENT
from libs.quant.ticks import quoted, rounded_to_tick

CONFIDENCE_FACTOR_MIN = Decimal("0.5")
"""Confidence is badly calibrated, so it may halve what a trade may lose, and no more."""
STOP_DISTANCE_PCT_MIN = Decimal(1)
"""A stop nearer than this is within the fill's own slippage and gap."""
_HUNDRED = Decimal(100)
_PCT_STEP = Decimal("0.0001")


def stop_price(leg: Leg, facts: RiskFacts) -> Decimal | None:
    """The price below which the buy was wrong, in the currency that it trades in: the plan's number
    of average true ranges below the close, rounded up to its tick. None without a plan, without a
    range, or where nothing would be left of the price."""
    evidence, plan = facts.evidence.get(leg.ticker), leg.pick.plan
    price = traded_price(leg.ticker, facts)
    if evidence is None or evidence.atr is None or plan is None or price is None:
        return None
    distance = max(
        evidence.atr * Decimal(str(plan.stop_atr)), price * STOP_DISTANCE_PCT_MIN / _HUNDRED
    )
    if distance >= price:
        return None
    stop = rounded_to_tick(price - distance, ROUND_CEILING)
    return stop if stop < price else None


def traded_price(ticker: str, facts: RiskFacts) -> Decimal | None:
    """The close in the currency that a ticker trades in; None where there is none."""
    evidence = facts.evidence.get(ticker)
    if evidence is not None and evidence.foreign is not None:
        return evidence.foreign.price.amount
    return facts.prices.get(ticker)


def _traded(price: Decimal, ticker: str, facts: RiskFacts) -> Money:
    """A price with the currency that its ticker trades in."""
    evidence = facts.evidence.get(ticker)
    if evidence is not None and evidence.foreign is not None:
        return Money(amount=price, currency=evidence.foreign.price.currency)
    without_rate = evidence.no_rate if evidence else None
    return Money(amount=price, currency=without_rate or facts.currency)


def risked(leg: Leg, amount: Decimal, facts: RiskFacts) -> Decimal:
    """The part of an amount bought that is lost at the stop, with the reserve for fees and a small
    gap; all of it where there is no stop.
    """
    price, stop = traded_price(leg.ticker, facts), stop_price(leg, facts)
    if facts.portfolio.venue is not None:
        price = facts.price_to_size_by(leg.ticker) or None
    reserve = amount * CASH_RESERVE_BPS / BPS_IN_ONE
    if price is None or stop is None:
        return amount + reserve
    return amount * (price - stop) / price + reserve


def confidence_factor(leg: Leg) -> Decimal:
    """The part of the risk per trade that the pick's confidence leaves: its own value, recalibrated
    where that is lower, from CONFIDENCE_FACTOR_MIN to 1."""
    sure = Decimal(str(leg.pick.confidence_to_size_by))
    return min(Decimal(1), max(CONFIDENCE_FACTOR_MIN, sure))


def risk_per_trade(leg: Leg, facts: RiskFacts) -> LegFinding:
    """The ceiling on what one buy may lose at its stop."""
    limit_pct = facts.limits.risk_per_trade_pct_max * confidence_factor(leg)
    stop = stop_price(leg, facts)
    again = leg.pick.recalibrated
    stated = f"{in_words(leg.pick.confidence, again)}; " if again else ""
    where = (
        "lost, without a stop"
        if stop is None
        else f"lost at its stop of {quoted(_traded(stop, leg.ticker, facts))}"
    )
    return share_of_room(
        leg,
        facts,
        risked(leg, facts.amount(leg), facts),
        facts.equity * limit_pct / _HUNDRED,
        where,
        f"a trade may lose {pct(limit_pct)} of equity at its stop: "
        f"{pct(facts.limits.risk_per_trade_pct_max)} x confidence "
        f"({stated}min {CONFIDENCE_FACTOR_MIN:f}); a gap can lose more",
    )


def entry_plan(leg: Leg, quantity: Decimal, facts: RiskFacts) -> EntryPlan | None:
    """The plan of a buy of so many shares, with what it risks; None for a pick without one."""
    plan, price = leg.pick.plan, facts.prices.get(leg.ticker)
    if plan is None or price is None:
        return None
    stop = stop_price(leg, facts)
    if facts.portfolio.venue is not None:
        price = facts.price_to_size_by(leg.ticker)
    risk = risked(leg, quantity * price, facts).quantize(CENT, ROUND_CEILING)
    share = risk * _HUNDRED / facts.equity if facts.equity else _HUNDRED
    return EntryPlan(
        horizon_sessions=plan.horizon_sessions,
        stop_price=None if stop is None else _traded(stop, leg.ticker, facts),
        risk=Money(amount=risk, currency=facts.currency),
        risk_pct=share.quantize(_PCT_STEP, ROUND_CEILING),
        review_by=plan.review_by,
        review_event=plan.review_event,
    )


def report_window(leg: Leg, facts: RiskFacts) -> LegFinding:
    """The gate before a report. What no calendar knows of is told, and passes."""
    limit = facts.limits.report_sessions
    classes = [facts.evidence[name] for name in facts.classes(leg.ticker, facts.evidence)]
    known = any(item.has_reports for item in classes)
    # What one class of its shares is said to report, all of them report.
    reports = ((item.report, item.ticker) for item in classes if item.report is not None)
    report, of = min(reports, key=lambda it: it[0].sessions, default=(None, leg.ticker))
    if report is not None:
        value = (
            f"{share_class(of, leg.ticker)}a report on {report.on}, {report.sessions} sessions away"
        )
    else:
        value = "none announced" if known else "no calendar of its reports is known"
    return gate(
        leg,
        ok=report is None or limit == 0 or report.sessions > limit,
        value=value,
        limit=f"more than {limit} sessions away" if limit else "not watched",
        kept="no report that is known of is near"
        if known or report is not None
        else "nobody knows when it reports, which no rule can make up for",
        vetoed=f"it reports within {limit} sessions, and no stop limits what that does overnight",
    )
