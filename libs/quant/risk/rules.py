"""The rules of risk as one table: what each looks at, what it allows, and why it is there.

Gates veto a pick by facts that no other pick changes. Ceilings look at all picks that passed the
gates, and each names the largest allocation it allows a pick, without seeing the other rules. The
rule on the least size looks at what they leave of a buy.
"""

import re
from collections.abc import Iterable
from datetime import date
from decimal import Decimal

from contracts.halt import Halt
from contracts.risk import Evidence
from libs.quant.exchange import no_rate
from libs.quant.risk.entry import report_window, risk_per_trade
from libs.quant.risk.exits import cooling_off, exit_rules, not_being_sold, one_exit_a_session
from libs.quant.risk.facts import (
    Leg,
    LegFinding,
    RiskFacts,
    RiskRule,
    floor_pct,
    gate,
    pct,
    share_class,
    share_of_room,
)
from libs.quant.risk.size import least_size, tick_size
from libs.quant.risk.together import account_volatility, cluster_exposure
from libs.quant.sizing import BPS_IN_ONE, CASH_RESERVE_BPS

ALLOCATION_PCT_MAX = Decimal(100)
HALTED = "halted"
OWN_REASON = "own_reason"

_HUNDRED = Decimal(100)
_ZERO = Decimal(0)
# BTC/USD, BTC-USD, BTCUSDT, EURUSD=X. A share class such as BRK/B or BRK-B is one letter.
_PAIR = re.compile(r"/(?![A-Z]$)|=|-(USD|USDT|USDC|EUR|GBP|BTC|ETH)$|^[A-Z0-9]{3,}(USD|USDT|USDC)$")


# Gates: yes or no, by facts that the other picks do not change.


def _equities_only(leg: Leg, _: RiskFacts) -> LegFinding:
    pair = is_currency_pair(leg.ticker)
    return gate(
        leg,
        ok=not pair,
        value="crypto or currency pair" if pair else "equity",
        limit="equities",
        kept="it is an equity",
        vetoed="the desk trades equities in whole shares, no crypto or currency pairs",
    )


def _research_evidence(leg: Leg, facts: RiskFacts) -> LegFinding:
    evidence = facts.evidence.get(leg.ticker)
    sourced = evidence is not None and evidence.is_sourced
    return gate(
        leg,
        ok=sourced,
        value="no finding with a price"
        if evidence is None
        else f"a finding that cites {'a' if sourced else 'no'} tool result",
        limit="one finding with a price that cites a tool result",
        kept="there is research evidence for it",
        vetoed="research has no finding with a price for it"
        if evidence is None
        else "none of the reasons of its finding stands on a tool result",
    )


def _own_reason(leg: Leg, _: RiskFacts) -> LegFinding:
    own, reasons = leg.pick.own_reasons, leg.pick.reasons
    return gate(
        leg,
        ok=bool(own),
        value=f"{len(own)} of {len(reasons)} reasons" if reasons else "no reason",
        limit=f"one reason for it, about {leg.ticker}",
        kept="a fact of its own speaks for it",
        vetoed=f"none of its reasons is a fact of {leg.ticker} that speaks for it"
        if reasons
        else "no reason is given for it that could be looked up",
    )


def _exchange_rate(leg: Leg, facts: RiskFacts) -> LegFinding:
    evidence = facts.evidence.get(leg.ticker)
    missing = evidence.no_rate if evidence else None
    return gate(
        leg,
        ok=missing is None,
        value=_exchanged_at(evidence, facts.currency) if evidence else "nothing to exchange",
        limit=f"a rate into {facts.currency}",
        kept="its price is known in the account's currency",
        vetoed=f"it trades in {missing}, and {no_rate(missing or '', facts.currency)} at as_of",
    )


def _exchanged_at(evidence: Evidence, currency: str) -> str:
    if evidence.no_rate is not None:
        return f"in {evidence.no_rate}, no rate"
    return f"in {currency}" if evidence.foreign is None else str(evidence.foreign.rate)


def _risk_needs_catalyst(leg: Leg, facts: RiskFacts) -> LegFinding:
    evidence = facts.evidence.get(leg.ticker)
    if evidence is None:
        return LegFinding(
            leg.allocation_pct, "no finding", "a finding", "there is no risk to judge"
        )
    score = evidence.risk
    event, limit = evidence.catalyst_event, facts.limits.risk_score_max
    seen = f"{score:g} (research {evidence.risk_score:g}, prices {evidence.measured_risk:g})"
    return gate(
        leg,
        ok=event is not None or score <= limit,
        value=f"{seen}, {f'a {event.kind.value} of {event.on}' if event else 'no dated event'}",
        limit=f"{limit:g} without a dated event",
        kept="its risk is within the limit, or has a dated event of it as a catalyst",
        vetoed="its risk is above the limit, and research names no dated event of it as a catalyst",
    )


def _no_doubling_down(leg: Leg, facts: RiskFacts) -> LegFinding:
    held = facts.classes(leg.ticker, facts.positions)
    waiting = facts.classes(leg.ticker, facts.open_buys)
    which = share_class((*held, *waiting, leg.ticker)[0], leg.ticker)
    return gate(
        leg,
        ok=not (held or waiting),
        value=f"{which}{'held' if held else 'in an open order' if waiting else 'not held'}",
        limit="not held",
        kept="nothing of it is held or ordered",
        vetoed="the account has it already, and the desk does not double down"
        if not which
        else f"the account has {which}already, and the desk does not double down",
    )


def _price_drift(leg: Leg, facts: RiskFacts) -> LegFinding:
    evidence, price = facts.evidence.get(leg.ticker), facts.prices.get(leg.ticker)
    limit_pct = facts.limits.price_move_pct_max
    if price is None or price <= 0:
        moved, ok = "no current price", False
    elif evidence is None:
        moved, ok = "no price of research to compare with", True
    else:
        # Compared as products: a division could round a move onto the limit.
        ok = abs(price - evidence.price) * _HUNDRED <= limit_pct * evidence.price
        moved = pct(abs(price - evidence.price) * _HUNDRED / evidence.price, limit_pct)
    return gate(
        leg,
        ok=ok,
        value=moved,
        limit=pct(limit_pct),
        kept="the price is still near the one that research saw",
        vetoed="the price has moved further since research than its reasons can be trusted for"
        if price
        else "there is no current price to buy at",
    )


def _not_halted(leg: Leg, facts: RiskFacts) -> LegFinding:
    halt = facts.portfolio.halt
    return gate(
        leg,
        ok=halt is None,
        value="halted" if halt else "not halted",
        limit="no halt",
        kept="buys are not halted",
        vetoed=halt_words(halt) if halt else "",
    )


def halt_words(halt: Halt) -> str:
    """The halt in words: who halted buys, when and why, and what ends it."""
    whose = "every account" if halt.account is None else f"account {halt.account}"
    because = f": {halt.reason}" if halt.reason else ""
    what = f"{halt.by} halted buys of {whose} at {halt.since:%Y-%m-%d %H:%M} UTC{because}"
    return f"{what}; `{halt.remedy}` ends it"


def _daily_loss(leg: Leg, facts: RiskFacts) -> LegFinding:
    """The loss is equity at the close of the session before as_of less equity at as_of's close, in
    percent of the former; both stand at their own session's closes. What was paid in since belongs
    to the former: a withdrawal is no loss. It is none where the account was not open then, and
    unknown (no buys) where something held then had no exchange rate, or something that is held has
    no value now: its file cannot be read, or its currency has no rate.
    """
    before, limit = facts.portfolio.before, facts.limits.daily_loss_pct_max
    if incomplete := facts.portfolio.incomplete:
        return gate(
            leg,
            ok=False,
            value=f"unknown: {incomplete}",
            limit=f"-{pct(limit)}",
            kept="",
            vetoed="the account's equity is incomplete, so it buys nothing",
        )
    if before is None:
        ok, value = True, "no session before"
    elif before.equity is None:
        ok, value = False, f"unknown: what was held on {before.session} could not be valued"
    else:
        base = before.equity.amount + (before.paid_in.amount if before.paid_in else _ZERO)
        loss = base - facts.portfolio.equity.amount
        # Compared as products: a division could round a loss onto the limit.
        ok = loss * _HUNDRED <= limit * base
        value = _change(base, -loss, before.session, limit)
    return gate(
        leg,
        ok=ok,
        value=value,
        limit=f"-{pct(limit)}",
        kept="the account has not lost more today than it may",
        vetoed="the account has lost more today than it may, so it buys no more at this session"
        if before is None or before.equity is not None
        else "nobody can say what the account has lost today, so it buys nothing at this session",
    )


def _change(base: Decimal, gain: Decimal, since: date, loss_pct_max: Decimal) -> str:
    share = gain * _HUNDRED / base if base else _ZERO
    return f"{'+' if gain > 0 else ''}{pct(share, -loss_pct_max)} since {since}"


def _something_to_sell(leg: Leg, facts: RiskFacts) -> LegFinding:
    free = facts.sellable(leg.ticker)
    held = facts.positions.get(leg.ticker)
    vetoed = "no share of it is held that is not promised to an open order"
    if held is not None and held.priced_on is not None:
        vetoed = f"it has had no price since {held.priced_on}, and nothing is sold without one"
    return gate(
        leg,
        ok=free > 0,
        value=f"{free:f} shares free",
        limit="more than 0",
        kept="it is held and free to be sold",
        vetoed=vetoed,
    )


# Ceilings: how much of each survivor, given what all survivors ask for.


def _shared_room(
    leg: Leg, facts: RiskFacts, group: Iterable[Leg], room: Decimal, name: str, reason: str
) -> LegFinding:
    """Where the group asks for more money than `room`, all of it shrinks in proportion."""
    wanted = sum((facts.amount(member) for member in group), _ZERO)
    return share_of_room(leg, facts, wanted, room, name, reason)


def _allocation_total(leg: Leg, facts: RiskFacts) -> LegFinding:
    total = sum((member.allocation_pct for member in facts.legs), _ZERO)
    return _share_of_pct(
        leg, total, ALLOCATION_PCT_MAX, f"allocations sum to {pct(ALLOCATION_PCT_MAX)} at most"
    )


def _sector_allocation(leg: Leg, facts: RiskFacts) -> LegFinding:
    sector = facts.sector(leg.ticker)
    total = sum((member.allocation_pct for member in _same_sector(sector, facts)), _ZERO)
    limit = facts.limits.sector_pct_max
    return _share_of_pct(
        leg, total, limit, f"sector {sector} may take at most {pct(limit)} of the allocations"
    )


def _share_of_pct(leg: Leg, total: Decimal, limit: Decimal, reason: str) -> LegFinding:
    allowed = leg.allocation_pct
    if total > limit:
        allowed = floor_pct(allowed * limit / total)
    return LegFinding(allowed, pct(total, limit), pct(limit), reason)


def _sector_exposure(leg: Leg, facts: RiskFacts) -> LegFinding:
    sector = facts.sector(leg.ticker)
    limit = facts.limits.sector_pct_max
    tied = (facts.exposure(name) for name in facts.exposed_tickers if facts.sector(name) == sector)
    return _shared_room(
        leg,
        facts,
        _same_sector(sector, facts),
        _of_equity(limit, facts) - sum(tied, _ZERO),
        f"asked for in sector {sector}",
        f"sector {sector} with what is held may be at most {pct(limit)} of equity",
    )


def _same_sector(sector: str, facts: RiskFacts) -> list[Leg]:
    return [member for member in facts.legs if facts.sector(member.ticker) == sector]


def _one_share_class(leg: Leg, facts: RiskFacts) -> LegFinding:
    """Of several buys of one issuer the largest counts, of equal ones the surer, then by name."""
    asked = {other.ticker: other for other in facts.legs}
    same = [asked[name] for name in facts.classes(leg.ticker, asked)]
    best = min(same, key=lambda o: (-o.allocation_pct, -o.pick.confidence, o.ticker), default=leg)
    return gate(
        leg,
        ok=best.ticker == leg.ticker,
        value=f"{share_class(best.ticker, leg.ticker)}{pct(best.allocation_pct)} asked for",
        limit="one share class of an issuer",
        kept="no larger buy of another share class of its issuer is proposed",
        vetoed=f"{best.ticker} is proposed too, and both are shares of one issuer",
    )


def _position_size(leg: Leg, facts: RiskFacts) -> LegFinding:
    limit = facts.limits.position_pct_max
    held = facts.classes(leg.ticker, facts.exposed_tickers)
    return _shared_room(
        leg,
        facts,
        [leg],
        _of_equity(limit, facts) - sum((facts.exposure(name) for name in held), _ZERO),
        "asked for",
        f"one position may be at most {pct(limit)} of equity",
    )


def _order_size(leg: Leg, facts: RiskFacts) -> LegFinding:
    limit = facts.limits.order_pct_max
    return _shared_room(
        leg,
        facts,
        [leg],
        _of_equity(limit, facts),
        "asked for",
        f"one order may be at most {pct(limit)} of equity",
    )


def _gross_exposure(leg: Leg, facts: RiskFacts) -> LegFinding:
    limit = facts.limits.gross_exposure_pct_max
    tied = sum((facts.exposure(name) for name in facts.exposed_tickers), _ZERO)
    return _shared_room(
        leg,
        facts,
        facts.legs,
        _of_equity(limit, facts) - tied,
        "asked for in all",
        f"positions and orders together may be at most {pct(limit)} of equity",
    )


def _cash(leg: Leg, facts: RiskFacts) -> LegFinding:
    return _shared_room(
        leg,
        facts,
        facts.legs,
        facts.cash_free * BPS_IN_ONE / (BPS_IN_ONE + CASH_RESERVE_BPS),
        "asked for in all",
        f"buys and {pct(CASH_RESERVE_BPS / _HUNDRED)} for fee and slippage come out of free cash",
    )


SELL_GATES: tuple[RiskRule, ...] = (
    RiskRule("equities_only", "the desk sizes shares, not currency pairs", _equities_only),
    RiskRule("something_to_sell", "the desk never sells short", _something_to_sell),
)
EXIT_GATES: tuple[RiskRule, ...] = (
    *SELL_GATES,
    RiskRule("one_exit_a_session", "one signal must not sell twice", one_exit_a_session),
)
BUY_GATES: tuple[RiskRule, ...] = (
    RiskRule(HALTED, "a person must be able to stop the desk at once", _not_halted),
    RiskRule("equities_only", "the desk sizes shares, not currency pairs", _equities_only),
    RiskRule(
        "research_evidence", "a claim without a source is no reason to buy", _research_evidence
    ),
    RiskRule(OWN_REASON, "a buy needs a reason", _own_reason),
    RiskRule("exchange_rate", "the cost must be known before the buy", _exchange_rate),
    RiskRule(
        "risk_needs_catalyst",
        "high risk needs a cause with a date",
        _risk_needs_catalyst,
    ),
    RiskRule("no_doubling_down", "a loser must not grow by averaging down", _no_doubling_down),
    RiskRule("not_being_sold", "opposite orders only cost money", not_being_sold),
    RiskRule("exit_rules", "the same close must not buy and sell", exit_rules),
    RiskRule("cooling_off", "a ticker sold for a reason is not bought back next day", cooling_off),
    RiskRule("daily_loss", "a bad day must not become a worse one", _daily_loss),
    RiskRule("tick_size", "rounding must not decide the cost", tick_size),
    RiskRule("price_drift", "a thesis holds for the price it was made at", _price_drift),
    RiskRule("report_window", "no stop limits what a report does overnight", report_window),
)
BUY_CEILINGS: tuple[RiskRule, ...] = (
    RiskRule("allocation_total", "the budget is spent once", _allocation_total),
    RiskRule("sector_allocation", "one sector must not be the whole bet", _sector_allocation),
    RiskRule("sector_exposure", "nor with what is held", _sector_exposure),
    RiskRule("one_share_class", "two share classes are one bet on one company", _one_share_class),
    RiskRule("position_size", "one name must not sink the account", _position_size),
    RiskRule("order_size", "one order must not move much at once", _order_size),
    RiskRule("gross_exposure", "the account does not borrow", _gross_exposure),
    RiskRule("cash", "cash never goes below zero", _cash),
    RiskRule("risk_per_trade", "no single mistake may cost much", risk_per_trade),
    RiskRule(
        "account_volatility",
        "the account moves no more than a broad index",
        account_volatility,
    ),
    RiskRule("cluster_exposure", "tickers that move together are one bet", cluster_exposure),
)

LEAST_SIZE = RiskRule("least_size", "a position must be worth its costs", least_size)


def is_currency_pair(ticker: str) -> bool:
    """True for crypto and currency pairs as exchanges and Yahoo write them: BTC/USD, BTC-USD,
    EURUSD=X; and for futures, ES=F."""
    return _PAIR.search(ticker) is not None


def _of_equity(limit_pct: Decimal, facts: RiskFacts) -> Decimal:
    return facts.equity * limit_pct / _HUNDRED
