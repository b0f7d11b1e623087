"""The risk rules: one pure function, run to explain a proposal and again before it is executed.

Gates veto a pick by facts that no other pick changes. Ceilings then look at the survivors: each
names the largest allocation it allows every pick, on its own, and the lowest ceiling wins. What is
left of a buy must be large enough. As no gate or ceiling sees what another has done, neither the
order of the rules nor that of the picks can change the result; applied to its own result it changes
nothing; and nothing is ever increased.

What each rule is for stands beside it, and in docs/risk.md.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal, localcontext
from typing import Any

from contracts.account import AccountLimits, Portfolio, Side
from contracts.constraints import Constraints
from contracts.facts import Moves
from contracts.risk import Check, DecisionAction, Evidence, PortfolioDecision, RuleOutcome
from contracts.trader import PickPlan, StockPick
from contracts.types import Money
from contracts.venue import BoundTo, VenueOrderType, VenueTerms
from libs.quant.risk.constraints import (
    ceilings_of,
    gates_of,
    sale_ceilings_of,
    tightened,
)
from libs.quant.risk.entry import entry_plan
from libs.quant.risk.facts import Findings, Leg, LegFinding, RiskFacts, RiskRule, floor_pct, pct
from libs.quant.risk.movement import Movement
from libs.quant.risk.rules import (
    BUY_CEILINGS,
    BUY_GATES,
    EXIT_GATES,
    HALTED,
    LEAST_SIZE,
    OWN_REASON,
    SELL_GATES,
)
from libs.quant.sizing import EXACT_DOWN, is_whole, part_of, whole_lots, whole_shares

WHOLE_SHARES = "whole_shares"
UNCONSTRAINED = Constraints()
UNMEASURED = Moves()
ONE_PICK_PER_TICKER = "one_pick_per_ticker"
_ZERO = Decimal(0)
_HUNDRED = Decimal(100)


@dataclass(frozen=True, slots=True)
class RuleVerdict:
    """The rules' verdict on a proposal. `vetoed` are the tickers of which nothing is left."""

    decisions: tuple[PortfolioDecision, ...]
    checks: tuple[Check, ...]
    adjustments: tuple[str, ...]
    vetoed: tuple[str, ...]


def evaluate(
    proposals: Sequence[StockPick],
    evidence: Mapping[str, Evidence],
    portfolio: Portfolio,
    limits: AccountLimits,
    budget: Money | None,
    prices: Mapping[str, Decimal],
    *,
    moves: Moves = UNMEASURED,
    constraints: Constraints = UNCONSTRAINED,
    strategy: str = "unknown",
    sell_gates: Sequence[RiskRule] = SELL_GATES,
    buy_gates: Sequence[RiskRule] = BUY_GATES,
    buy_ceilings: Sequence[RiskRule] = BUY_CEILINGS,
    own_ceilings: Sequence[RiskRule] = (),
) -> RuleVerdict:
    """Judge and size a proposal: buys in percent of the budget, sales in percent of the position.

    `budget` None means the account's free cash. `prices` are current ones in the account's
    currency; a buy without one is vetoed, a sale is sized without. Decisions come sales first, then
    by ticker; checks by side, ticker and rule. `constraints` tighten the limits for buys, and limit
    sales that are no exits. `moves` says how the tickers move; those that it does not know are
    taken to move the most, and with all. `own_ceilings` are the user's, for buys.

    Raises ValueError where `budget` is in another currency than the account.
    """
    with localcontext(EXACT_DOWN):
        facts = _facts(evidence, portfolio, tightened(limits, constraints), budget, prices)
        facts = replace(facts, constraints=constraints, moves=Movement(moves))
        legs, doubles = _legs(proposals)
        sells = _judged(
            [leg for leg in legs if leg.side is Side.SELL],
            facts,
            sell_gates,
            # An exit by the account's own rules is held up by nothing.
            () if sell_gates is EXIT_GATES else sale_ceilings_of(constraints),
            _size_sale,
        )
        buys = _judged(
            [leg for leg in legs if leg.side is Side.BUY],
            facts,
            (*buy_gates, *gates_of(constraints)),
            (*buy_ceilings, *ceilings_of(constraints), *own_ceilings),
            _size_buy,
        )
        return _verdict([*sells, *buys], doubles, facts, strategy)


@dataclass(frozen=True, slots=True)
class Room:
    """How much of the budget the rules let one buy take that stands alone, in percent; 0 with the
    first reason why it may not be bought at all. `why` is else what keeps it from taking more.
    `rule` is the one that says so, with what it saw (`value`) against its `limit`."""

    allocation_pct: Decimal
    why: str
    rule: str = ""
    value: str = ""
    limit: str = ""


def room_for(
    tickers: Iterable[str],
    evidence: Mapping[str, Evidence],
    portfolio: Portfolio,
    budget: Money | None,
    *,
    moves: Moves = UNMEASURED,
    constraints: Constraints = UNCONSTRAINED,
) -> Mapping[str, Room]:
    """The room for each ticker at its evidence's price, for a buy of full confidence with a stop at
    the default distance and a reason of its own: what no rule can let pass need not be asked for. A
    halt is left aside: under it a cycle goes on to decide, and says what was halted.

    Raises ValueError where `budget` is in another currency than the account.
    """
    prices = {item.ticker: item.price for item in evidence.values()}
    limits = tightened(portfolio.limits, constraints)
    with localcontext(EXACT_DOWN):
        facts = _facts(evidence, portfolio, limits, budget, prices)
        facts = replace(facts, constraints=constraints, moves=Movement(moves))
        gates = [gate for gate in BUY_GATES if gate.name not in {HALTED, OWN_REASON}]
        rules = ((*gates, *gates_of(constraints)), (*BUY_CEILINGS, *ceilings_of(constraints)))
        return {ticker: _room(ticker, facts, *rules) for ticker in sorted(set(tickers))}


def _room(
    ticker: str, facts: RiskFacts, gates: Sequence[RiskRule], ceilings: Sequence[RiskRule]
) -> Room:
    pick = StockPick(
        ticker=ticker, allocation_pct=_HUNDRED, confidence=1.0, reasoning="", plan=PickPlan()
    )
    (judged,) = _judged([Leg(ticker, Side.BUY, _HUNDRED, pick)], facts, gates, ceilings, _size_buy)
    # Of equal ones the first.
    rule, finding = min(judged.findings, key=_allowed)
    why, seen = finding.reason, (rule.name, finding.value, finding.limit)
    if not judged.quantity:
        why = why if not judged.allowed_pct else f"{_less_than_one(judged, facts)}: {why}"
        return Room(_ZERO, why, *seen)
    return Room(judged.allowed_pct, why, *seen)


def _allowed(judged: tuple[RiskRule, LegFinding]) -> Decimal:
    return judged[1].allowed_pct


def proposal_hash(decisions: Sequence[PortfolioDecision]) -> str:
    """SHA-256 of the decisions in canonical JSON: sorted, plain numbers, no spaces.

    What an exit acts on is left out: it says why, and changes nothing of what is traded.
    """
    why = {"exit": {"acts"}}
    rows = sorted(
        (_canonical(decision.model_dump(mode="python", exclude=why)) for decision in decisions),
        key=lambda row: (row["action"], row["asset"]),
    )
    text = json.dumps(rows, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _canonical(value: Any) -> Any:
    if isinstance(value, Decimal):
        # 40, 40.0 and 4E+1 are one number and must be one text.
        return f"{value.normalize():f}"
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, dict):
        return {key: _canonical(item) for key, item in value.items()}
    return value


@dataclass(frozen=True, slots=True)
class _Judged:
    """A leg with what every rule found, and the shares that are left."""

    leg: Leg
    findings: Findings
    allowed_pct: Decimal
    quantity: Decimal


def _facts(
    evidence: Mapping[str, Evidence],
    portfolio: Portfolio,
    limits: AccountLimits,
    budget: Money | None,
    prices: Mapping[str, Decimal],
) -> RiskFacts:
    if budget is not None and budget.currency != portfolio.cash.currency:
        raise ValueError(
            f"the budget is in {budget.currency}, account {portfolio.account} in "
            f"{portfolio.cash.currency}; state the budget in the account's currency"
        )
    facts = RiskFacts(evidence, portfolio, limits, _ZERO, prices)
    return replace(facts, budget=facts.cash_free if budget is None else budget.amount)


def _legs(proposals: Sequence[StockPick]) -> tuple[list[Leg], list[StockPick]]:
    """The legs in canonical order; of several picks for one the smallest counts."""
    by_leg: dict[tuple[bool, str], list[StockPick]] = {}
    for pick in proposals:
        by_leg.setdefault((pick.action is Side.BUY, pick.ticker), []).append(pick)
    legs, doubles = [], []
    for _, picks in sorted(by_leg.items()):
        smallest, *rest = sorted(picks, key=lambda p: (p.allocation_pct, p.model_dump_json()))
        allowed = floor_pct(smallest.allocation_pct)
        legs.append(Leg(smallest.ticker, smallest.action, allowed, smallest))
        doubles.extend(rest)
    return legs, doubles


def _judged(
    legs: Sequence[Leg],
    facts: RiskFacts,
    gates: Sequence[RiskRule],
    ceilings: Sequence[RiskRule],
    sized: Callable[[Leg, Findings, RiskFacts], _Judged],
) -> list[_Judged]:
    """The legs of one side: gates first, then ceilings over all that passed them, then the size."""
    gated = [(leg, _findings(leg, gates, facts)) for leg in legs]
    survivors = tuple(leg for leg, findings in gated if _lowest(leg, findings) > 0)
    facts = replace(facts, legs=survivors)
    return [
        sized(
            leg, findings + _findings(leg, ceilings, facts) if leg in survivors else findings, facts
        )
        for leg, findings in gated
    ]


def _size_sale(leg: Leg, findings: Findings, facts: RiskFacts) -> _Judged:
    allowed = _lowest(leg, findings)
    quantity = part_of(facts.sellable(leg.ticker), allowed, facts.lot(leg.ticker))
    return _Judged(leg, findings, allowed, quantity)


def _size_buy(leg: Leg, findings: Findings, facts: RiskFacts) -> _Judged:
    allowed = _lowest(leg, findings)
    price = facts.price_to_size_by(leg.ticker)
    amount = allowed * facts.budget / _HUNDRED
    shares = whole_shares(amount, price, facts.lot(leg.ticker)) if price > 0 else _ZERO
    most = min((it.shares_max for _, it in findings if it.shares_max is not None), default=shares)
    shares = whole_lots(min(shares, most), facts.lot(leg.ticker))
    if not shares:
        return _Judged(leg, findings, allowed, shares)
    size = LEAST_SIZE.judge(replace(leg, allocation_pct=allowed), facts)
    if not size.allowed_pct:
        return _Judged(leg, (*findings, (LEAST_SIZE, size)), _ZERO, _ZERO)
    size = replace(size, allowed_pct=leg.allocation_pct)  # what cut it was another rule
    return _Judged(leg, (*findings, (LEAST_SIZE, size)), allowed, shares)


def _findings(leg: Leg, rules: Sequence[RiskRule], facts: RiskFacts) -> Findings:
    """Each rule's finding; a leg that asks for nothing gives none of them anything to judge."""
    if leg.allocation_pct == 0:
        return ()
    return tuple((rule, rule.judge(leg, facts)) for rule in rules)


def _lowest(leg: Leg, findings: Findings) -> Decimal:
    return min((finding.allowed_pct for _, finding in findings), default=leg.allocation_pct)


def _verdict(
    judged: Sequence[_Judged], doubles: Sequence[StockPick], facts: RiskFacts, strategy: str
) -> RuleVerdict:
    decisions = tuple(_decision(item, facts, strategy) for item in judged if item.quantity > 0)
    tickers = {decision.asset for decision in decisions}
    checks = [_double(pick) for pick in doubles]
    for item in judged:
        checks += [_check(item.leg, rule, finding) for rule, finding in item.findings]
        if item.allowed_pct > 0 or item.leg.allocation_pct == 0:
            checks.append(_shares_check(item, facts))
    checks.sort(key=_check_key)
    return RuleVerdict(
        decisions=decisions,
        checks=tuple(checks),
        adjustments=tuple(_adjustment(check) for check in checks if not check.passed),
        vetoed=tuple(sorted({item.leg.ticker for item in judged} - tickers)),
    )


def _check_key(check: Check) -> tuple[str, str, str]:
    return (check.ticker or "", check.rule, check.model_dump_json())


def _decision(item: _Judged, facts: RiskFacts, strategy: str) -> PortfolioDecision:
    leg = item.leg
    price = facts.prices.get(leg.ticker)
    if price is None:  # only a sale gets here: a buy without a price is vetoed
        price = facts.positions[leg.ticker].price.amount
    return PortfolioDecision(
        action=DecisionAction(leg.side.value),
        asset=leg.ticker,
        quantity=item.quantity,
        price=Money(amount=price, currency=facts.currency),
        allocation_pct=item.allowed_pct,
        confidence=leg.pick.confidence,
        reasoning=leg.pick.reasoning,
        strategy_used=strategy,
        lot=facts.lot(leg.ticker),
        plan=entry_plan(leg, item.quantity, facts) if leg.side is Side.BUY else None,
        recalibrated=leg.pick.recalibrated,
        venue=None
        if facts.portfolio.venue is None
        else venue_terms(
            facts.portfolio.venue, leg.side, facts.price_to_size_by(leg.ticker), facts.currency
        ),
    )


def venue_terms(bound: BoundTo, side: Side, limit: Decimal, currency: str) -> VenueTerms:
    """What a broker is sent: of a buy a limit order, of a sale a market order, both for one
    session."""
    buying = side is Side.BUY
    return VenueTerms(
        venue=bound.venue,
        account_number=bound.account_number,
        type=VenueOrderType.LIMIT if buying else VenueOrderType.MARKET,
        limit_price=Money(amount=limit, currency=currency) if buying else None,
    )


def _check(leg: Leg, rule: RiskRule, finding: LegFinding) -> Check:
    outcome = _outcome(leg.allocation_pct, finding.allowed_pct)
    wanted = f"{leg.side.value} of {pct(leg.allocation_pct, finding.allowed_pct)}"
    done = {
        RuleOutcome.KEPT: f"{wanted} kept",
        RuleOutcome.CUT: f"{wanted} cut to {pct(finding.allowed_pct, leg.allocation_pct)}",
        RuleOutcome.VETOED: f"{wanted} vetoed",
    }[outcome]
    return Check(
        rule=rule.name,
        ticker=leg.ticker,
        outcome=outcome,
        passed=outcome is RuleOutcome.KEPT,
        value=finding.value,
        limit=finding.limit,
        reason=f"{done}: {finding.reason}",
    )


def _outcome(wanted: Decimal, allowed: Decimal) -> RuleOutcome:
    if allowed >= wanted:
        return RuleOutcome.KEPT
    return RuleOutcome.CUT if allowed > 0 else RuleOutcome.VETOED


def _shares_check(item: _Judged, facts: RiskFacts) -> Check:
    left, lot = item.quantity > 0, facts.lot(item.leg.ticker)
    shares = f"{item.quantity:f} {'whole ' if is_whole(item.quantity) else ''}shares"
    least = "1 share" if lot == 1 else f"1 lot of {lot:,} shares"
    if item.leg.side is Side.SELL:
        least = "a part of a share" if lot == 1 else "what is held, or a lot"
    of = f"{item.leg.side.value} of {pct(item.allowed_pct)}"
    return Check(
        rule=WHOLE_SHARES,
        ticker=item.leg.ticker,
        outcome=RuleOutcome.KEPT if left else RuleOutcome.VETOED,
        passed=left,
        value=f"{item.quantity:f} shares",
        limit=f"at least {least}",
        reason=f"{of} is {shares}" if left else f"{of} vetoed: it is {_less_than_one(item, facts)}",
    )


def _less_than_one(item: _Judged, facts: RiskFacts) -> str:
    """The least that a leg of which nothing is left falls short of."""
    lot, price = facts.lot(item.leg.ticker), facts.price_to_size_by(item.leg.ticker)
    if lot == 1:
        return "less than one share"
    return f"below one lot ({lot:,} shares = {facts.money(lot * price)})"


def _double(pick: StockPick) -> Check:
    return Check(
        rule=ONE_PICK_PER_TICKER,
        ticker=pick.ticker,
        outcome=RuleOutcome.VETOED,
        passed=False,
        value=f"another {pick.action.value} of {pct(pick.allocation_pct)}",
        limit="one a side",
        reason=f"{pick.ticker} is proposed more than once; only the smallest {pick.action.value} "
        "counts",
    )


def _adjustment(check: Check) -> str:
    return f"{check.ticker}: {check.rule}: {check.reason} ({check.value}; limit {check.limit})"
