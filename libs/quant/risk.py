"""The risk rules: one pure function, run to explain a proposal and again before it is executed.

Gates veto a pick by facts that no other pick changes. Ceilings then look at the survivors: each
names the largest allocation it allows every pick, on its own, and the lowest ceiling wins. As no
rule sees what another has done, neither the order of the rules nor that of the picks can change the
result; applied to its own result it changes nothing; and nothing is ever increased.

Sources: BRIEF section 2 "Risk rules", DESIGN section 3 (an unknown sector is one sector).
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_FLOOR, Decimal, localcontext
from functools import cached_property
from typing import Any

from contracts.account import AccountLimits, Portfolio, Position, Side
from contracts.risk import Check, DecisionAction, Evidence, PortfolioDecision, RuleOutcome
from contracts.trader import StockPick
from contracts.types import Money
from libs.quant.sizing import BPS_IN_ONE, EXACT_DOWN, whole_shares

CASH_RESERVE_BPS = Decimal(100)
"""Held back from cash above the price of a buy: fee, slippage and a small gap at the open."""
ALLOCATION_PCT_MAX = Decimal(100)
UNKNOWN_SECTOR = "unknown"

_PCT_STEP = Decimal("0.0001")  # contracts.types.Percent keeps four places
_HUNDRED = Decimal(100)
_ZERO = Decimal(0)
# BTC/USD, BTC-USD, BTCUSDT. A share class such as BRK-B never ends in a currency.
_PAIR = re.compile(r"/|-(USD|USDT|USDC|EUR|GBP|BTC|ETH)$|^[A-Z0-9]{3,}(USD|USDT|USDC)$")


@dataclass(frozen=True, slots=True)
class Leg:
    """One side of one ticker, at most once in a proposal. `allocation_pct` as in `StockPick`."""

    ticker: str
    side: Side
    allocation_pct: Decimal
    pick: StockPick


@dataclass(frozen=True)
class Facts:
    """All that the rules may look at. `legs` are the buys that compete for the same room."""

    evidence: Mapping[str, Evidence]
    portfolio: Portfolio
    limits: AccountLimits
    budget: Decimal
    prices: Mapping[str, Decimal]
    legs: tuple[Leg, ...] = ()

    @property
    def currency(self) -> str:
        """The account's currency, in which every amount here is."""
        return self.portfolio.cash.currency

    @property
    def equity(self) -> Decimal:
        """Cash plus positions, never negative."""
        return max(_ZERO, self.portfolio.equity.amount)

    @cached_property
    def positions(self) -> Mapping[str, Position]:
        """What is held, by ticker."""
        return {held.ticker: held for held in self.portfolio.positions if held.quantity > 0}

    @cached_property
    def open_buys(self) -> Mapping[str, Decimal]:
        """Money that open buy orders hold back, by ticker."""
        return self._open(Side.BUY, lambda order: order.hold.amount)

    @cached_property
    def open_sells(self) -> Mapping[str, Decimal]:
        """Shares that open sell orders have promised away, by ticker."""
        return self._open(Side.SELL, lambda order: order.quantity)

    def _open(self, side: Side, measure: Callable[[Any], Decimal]) -> Mapping[str, Decimal]:
        found: dict[str, Decimal] = {}
        for order in self.portfolio.open_orders:
            if order.side is side:
                found[order.asset] = found.get(order.asset, _ZERO) + measure(order)
        return found

    @property
    def cash_free(self) -> Decimal:
        """Cash that no open order holds back."""
        return max(_ZERO, self.portfolio.cash.amount - sum(self.open_buys.values(), _ZERO))

    def sellable(self, ticker: str) -> Decimal:
        """Whole shares held and not promised to an open sell order."""
        held = self.positions.get(ticker)
        free = (held.quantity if held else _ZERO) - self.open_sells.get(ticker, _ZERO)
        return max(_ZERO, free).to_integral_value(ROUND_FLOOR)

    def exposure(self, ticker: str) -> Decimal:
        """Money in one ticker: the position's value and what open buys hold."""
        held = self.positions.get(ticker)
        return (held.value if held else _ZERO) + self.open_buys.get(ticker, _ZERO)

    @property
    def exposed_tickers(self) -> set[str]:
        """Tickers with a position or an open buy."""
        return {*self.positions, *self.open_buys}

    def sector(self, ticker: str) -> str:
        """The ticker's sector from research, else from the books; all unknown ones are one."""
        sources = (self.evidence.get(ticker), self.positions.get(ticker))
        named = (source.sector.strip().lower() for source in sources if source is not None)
        return next((name for name in named if name not in {"", UNKNOWN_SECTOR}), UNKNOWN_SECTOR)

    def amount(self, leg: Leg) -> Decimal:
        """The money a buy asks for."""
        return leg.allocation_pct * self.budget / _HUNDRED


@dataclass(frozen=True, slots=True)
class Finding:
    """What a rule says of one leg: the allocation it allows, what it saw, and against what."""

    allowed_pct: Decimal
    value: str
    limit: str
    reason: str


Judge = Callable[[Leg, Facts], Finding]


@dataclass(frozen=True, slots=True)
class Rule:
    """One row of the table: its name in checks, why it is there, and how it judges."""

    name: str
    why: str
    judge: Judge


Findings = tuple[tuple[Rule, Finding], ...]


@dataclass(frozen=True, slots=True)
class RuleVerdict:
    """What the rules left of a proposal. `vetoed` are the tickers of which nothing is left."""

    decisions: tuple[PortfolioDecision, ...]
    checks: tuple[Check, ...]
    adjustments: tuple[str, ...]
    vetoed: tuple[str, ...]


# Gates: yes or no, by facts that the other picks do not change.


def _gate(leg: Leg, *, ok: bool, value: str, limit: str, reason: str) -> Finding:
    return Finding(leg.allocation_pct if ok else _ZERO, value, limit, reason)


def _equities_only(leg: Leg, _: Facts) -> Finding:
    pair = is_currency_pair(leg.ticker)
    return _gate(
        leg,
        ok=not pair,
        value="crypto or currency pair" if pair else "equity",
        limit="equities",
        reason="the desk trades equities in whole shares, no crypto or currency pairs",
    )


def _research_evidence(leg: Leg, facts: Facts) -> Finding:
    found = leg.ticker in facts.evidence
    return _gate(
        leg,
        ok=found,
        value="a finding" if found else "no finding",
        limit="one finding with a price",
        reason="a pick needs research evidence that can be traced",
    )


def _risk_needs_catalyst(leg: Leg, facts: Facts) -> Finding:
    evidence = facts.evidence.get(leg.ticker)
    score = evidence.risk_score if evidence else 0.0
    stated = bool(evidence and evidence.catalyst.strip())
    return _gate(
        leg,
        ok=stated or score <= facts.limits.risk_score_max,
        value=f"{score:g}, {'a' if stated else 'no'} catalyst",
        limit=f"{facts.limits.risk_score_max:g} without a catalyst",
        reason="a risk score above the limit needs a stated catalyst",
    )


def _no_doubling_down(leg: Leg, facts: Facts) -> Finding:
    held = leg.ticker in facts.positions
    waiting = leg.ticker in facts.open_buys
    return _gate(
        leg,
        ok=not (held or waiting),
        value="held" if held else "in an open order" if waiting else "not held",
        limit="not held",
        reason="no doubling down on what is held or already ordered",
    )


def _price_drift(leg: Leg, facts: Facts) -> Finding:
    evidence, price = facts.evidence.get(leg.ticker), facts.prices.get(leg.ticker)
    limit_pct = facts.limits.price_move_pct_max
    if price is None or price <= 0 or evidence is None:
        moved, ok = "no current price", price is not None and price > 0
    else:
        # Compared as products: a division could round a move onto the limit.
        ok = abs(price - evidence.price) * _HUNDRED <= limit_pct * evidence.price
        moved = _pct(abs(price - evidence.price) * _HUNDRED / evidence.price)
    return _gate(
        leg,
        ok=ok,
        value=moved,
        limit=_pct(limit_pct),
        reason="the price must not have moved further than this since research",
    )


def _something_to_sell(leg: Leg, facts: Facts) -> Finding:
    free = facts.sellable(leg.ticker)
    return _gate(
        leg,
        ok=free > 0,
        value=f"{free} shares free",
        limit="at least 1",
        reason="only shares that are held and not promised to an open order can be sold",
    )


# Ceilings: how much of each survivor, given what all survivors ask for.


def _share_of_room(
    leg: Leg, facts: Facts, group: Iterable[Leg], room: Decimal, name: str, reason: str
) -> Finding:
    """Where the group asks for more money than `room`, all of it shrinks in proportion."""
    asked = sum((facts.amount(member) for member in group), _ZERO)
    room = max(_ZERO, room)
    allowed = leg.allocation_pct
    if asked > room:
        allowed = _floor_pct(allowed * room / asked)
    return Finding(allowed, f"{_money(asked)} {name}", f"{_money(room)} {facts.currency}", reason)


def _allocation_total(leg: Leg, facts: Facts) -> Finding:
    total = sum((member.allocation_pct for member in facts.legs), _ZERO)
    return _share_of_pct(
        leg, total, ALLOCATION_PCT_MAX, f"allocations sum to {_pct(ALLOCATION_PCT_MAX)} at most"
    )


def _sector_allocation(leg: Leg, facts: Facts) -> Finding:
    sector = facts.sector(leg.ticker)
    total = sum((member.allocation_pct for member in _same_sector(sector, facts)), _ZERO)
    limit = facts.limits.sector_pct_max
    return _share_of_pct(
        leg, total, limit, f"sector {sector} may take at most {_pct(limit)} of the allocations"
    )


def _share_of_pct(leg: Leg, total: Decimal, limit: Decimal, reason: str) -> Finding:
    allowed = leg.allocation_pct
    if total > limit:
        allowed = _floor_pct(allowed * limit / total)
    return Finding(allowed, _pct(total), _pct(limit), reason)


def _sector_exposure(leg: Leg, facts: Facts) -> Finding:
    sector = facts.sector(leg.ticker)
    limit = facts.limits.sector_pct_max
    tied = (facts.exposure(name) for name in facts.exposed_tickers if facts.sector(name) == sector)
    return _share_of_room(
        leg,
        facts,
        _same_sector(sector, facts),
        _of_equity(limit, facts) - sum(tied, _ZERO),
        f"asked for in sector {sector}",
        f"sector {sector} with what is held may be at most {_pct(limit)} of equity",
    )


def _same_sector(sector: str, facts: Facts) -> list[Leg]:
    return [member for member in facts.legs if facts.sector(member.ticker) == sector]


def _position_size(leg: Leg, facts: Facts) -> Finding:
    limit = facts.limits.position_pct_max
    return _share_of_room(
        leg,
        facts,
        [leg],
        _of_equity(limit, facts) - facts.exposure(leg.ticker),
        "asked for",
        f"one position may be at most {_pct(limit)} of equity",
    )


def _order_size(leg: Leg, facts: Facts) -> Finding:
    limit = facts.limits.order_pct_max
    return _share_of_room(
        leg,
        facts,
        [leg],
        _of_equity(limit, facts),
        "asked for",
        f"one order may be at most {_pct(limit)} of equity",
    )


def _gross_exposure(leg: Leg, facts: Facts) -> Finding:
    limit = facts.limits.gross_exposure_pct_max
    tied = sum((facts.exposure(name) for name in facts.exposed_tickers), _ZERO)
    return _share_of_room(
        leg,
        facts,
        facts.legs,
        _of_equity(limit, facts) - tied,
        "asked for in all",
        f"positions and orders together may be at most {_pct(limit)} of equity",
    )


def _cash(leg: Leg, facts: Facts) -> Finding:
    return _share_of_room(
        leg,
        facts,
        facts.legs,
        facts.cash_free * BPS_IN_ONE / (BPS_IN_ONE + CASH_RESERVE_BPS),
        "asked for in all",
        f"buys and {_pct(CASH_RESERVE_BPS / _HUNDRED)} for fee and slippage come out of free cash",
    )


SELL_GATES: tuple[Rule, ...] = (
    Rule("equities_only", "whole shares cannot be cut from a currency pair", _equities_only),
    Rule("something_to_sell", "the desk never sells short", _something_to_sell),
)
BUY_GATES: tuple[Rule, ...] = (
    Rule("equities_only", "whole shares cannot be cut from a currency pair", _equities_only),
    Rule("research_evidence", "a claim without a source is no reason to buy", _research_evidence),
    Rule("risk_needs_catalyst", "risk is only taken for a stated cause", _risk_needs_catalyst),
    Rule("no_doubling_down", "a loser must not grow by averaging down", _no_doubling_down),
    Rule("price_drift", "a thesis holds for the price it was made at", _price_drift),
)
BUY_CEILINGS: tuple[Rule, ...] = (
    Rule("allocation_total", "the budget is spent once", _allocation_total),
    Rule("sector_allocation", "one sector must not be the whole bet", _sector_allocation),
    Rule("sector_exposure", "nor together with what is held", _sector_exposure),
    Rule("position_size", "one name must not sink the account", _position_size),
    Rule("order_size", "one order must not move much at once", _order_size),
    Rule("gross_exposure", "the account does not borrow", _gross_exposure),
    Rule("cash", "cash never goes below zero", _cash),
)
WHOLE_SHARES = "whole_shares"
ONE_PICK_PER_TICKER = "one_pick_per_ticker"


def evaluate(
    proposals: Sequence[StockPick],
    evidence: Mapping[str, Evidence],
    portfolio: Portfolio,
    limits: AccountLimits,
    budget: Money | None,
    prices: Mapping[str, Decimal],
    *,
    strategy: str = "unknown",
    buy_gates: Sequence[Rule] = BUY_GATES,
    buy_ceilings: Sequence[Rule] = BUY_CEILINGS,
) -> RuleVerdict:
    """Judge and size a proposal: buys in percent of the budget, sales in percent of the position.

    `budget` None means the account's free cash. `prices` are current ones in the account's
    currency; a buy without one is vetoed, a sale is sized without. Decisions come sales first, then
    by ticker; checks by side, ticker and rule.

    Raises ValueError where `budget` is in another currency than the account.
    """
    with localcontext(EXACT_DOWN):
        facts = _facts(evidence, portfolio, limits, budget, prices)
        legs, doubles = _legs(proposals)
        sells = [_judge_sell(leg, facts) for leg in legs if leg.side is Side.SELL]
        buys = _judge_buys(
            [leg for leg in legs if leg.side is Side.BUY], facts, buy_gates, buy_ceilings
        )
        return _verdict([*sells, *buys], doubles, facts, strategy)


def is_currency_pair(ticker: str) -> bool:
    """True for crypto and currency pairs as exchanges and Yahoo write them: BTC/USD, BTC-USD."""
    return _PAIR.search(ticker) is not None


def proposal_hash(decisions: Sequence[PortfolioDecision]) -> str:
    """SHA-256 of the decisions in canonical JSON: sorted, plain numbers, no spaces."""
    rows = sorted(
        (_canonical(decision.model_dump(mode="python")) for decision in decisions),
        key=lambda row: (row["action"], row["asset"]),
    )
    text = json.dumps(rows, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _canonical(value: Any) -> Any:
    if isinstance(value, Decimal):
        # 40, 40.0 and 4E+1 are one number and must be one text.
        return f"{value.normalize():f}"
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
) -> Facts:
    if budget is not None and budget.currency != portfolio.cash.currency:
        raise ValueError(
            f"the budget is in {budget.currency}, account {portfolio.account} in "
            f"{portfolio.cash.currency}; state the budget in the account's currency"
        )
    facts = Facts(evidence, portfolio, limits, _ZERO, prices)
    return replace(facts, budget=facts.cash_free if budget is None else budget.amount)


def _legs(proposals: Sequence[StockPick]) -> tuple[list[Leg], list[StockPick]]:
    """The legs in canonical order; of several picks for one the smallest counts."""
    by_leg: dict[tuple[bool, str], list[StockPick]] = {}
    for pick in proposals:
        by_leg.setdefault((pick.action is Side.BUY, pick.ticker), []).append(pick)
    legs, doubles = [], []
    for _, picks in sorted(by_leg.items()):
        smallest, *rest = sorted(picks, key=lambda p: (p.allocation_pct, p.model_dump_json()))
        pct = _floor_pct(smallest.allocation_pct)
        legs.append(Leg(smallest.ticker, smallest.action, pct, smallest))
        doubles.extend(rest)
    return legs, doubles


def _judge_sell(leg: Leg, facts: Facts) -> _Judged:
    findings = _findings(leg, SELL_GATES, facts)
    allowed = _lowest(leg, findings)
    quantity = (facts.sellable(leg.ticker) * allowed / _HUNDRED).to_integral_value(ROUND_FLOOR)
    return _Judged(leg, findings, allowed, quantity)


def _judge_buys(
    legs: Sequence[Leg], facts: Facts, gates: Sequence[Rule], ceilings: Sequence[Rule]
) -> list[_Judged]:
    gated = [(leg, _findings(leg, gates, facts)) for leg in legs]
    survivors = tuple(leg for leg, found in gated if _lowest(leg, found) > 0)
    facts = replace(facts, legs=survivors)
    return [
        _size_buy(
            leg, found + _findings(leg, ceilings, facts) if leg in survivors else found, facts
        )
        for leg, found in gated
    ]


def _size_buy(leg: Leg, findings: Findings, facts: Facts) -> _Judged:
    allowed = _lowest(leg, findings)
    price = facts.prices.get(leg.ticker, _ZERO)
    amount = allowed * facts.budget / _HUNDRED
    shares = whole_shares(amount, price) if price > 0 else _ZERO
    return _Judged(leg, findings, allowed, shares)


def _findings(leg: Leg, rules: Sequence[Rule], facts: Facts) -> Findings:
    """What each rule says; a leg that asks for nothing gives none of them anything to judge."""
    if leg.allocation_pct == 0:
        return ()
    return tuple((rule, rule.judge(leg, facts)) for rule in rules)


def _lowest(leg: Leg, findings: Findings) -> Decimal:
    return min((finding.allowed_pct for _, finding in findings), default=leg.allocation_pct)


def _verdict(
    judged: Sequence[_Judged], doubles: Sequence[StockPick], facts: Facts, strategy: str
) -> RuleVerdict:
    decisions = tuple(_decision(item, facts, strategy) for item in judged if item.quantity > 0)
    kept = {decision.asset for decision in decisions}
    checks = [_double(pick) for pick in doubles]
    for item in judged:
        checks += [_check(item.leg, rule, finding) for rule, finding in item.findings]
        if item.allowed_pct > 0 or item.leg.allocation_pct == 0:
            checks.append(_shares_check(item))
    checks.sort(key=_check_key)
    return RuleVerdict(
        decisions=decisions,
        checks=tuple(checks),
        adjustments=tuple(_adjustment(check) for check in checks if not check.passed),
        vetoed=tuple(sorted({item.leg.ticker for item in judged} - kept)),
    )


def _check_key(check: Check) -> tuple[str, str, str]:
    return (check.ticker or "", check.rule, check.model_dump_json())


def _decision(item: _Judged, facts: Facts, strategy: str) -> PortfolioDecision:
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
    )


def _check(leg: Leg, rule: Rule, finding: Finding) -> Check:
    outcome = _outcome(leg.allocation_pct, finding.allowed_pct)
    wanted = f"{leg.side.value} of {_pct(leg.allocation_pct)}"
    done = {
        RuleOutcome.KEPT: f"{wanted} kept",
        RuleOutcome.CUT: f"{wanted} cut to {_pct(finding.allowed_pct)}",
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


def _outcome(asked: Decimal, allowed: Decimal) -> RuleOutcome:
    if allowed >= asked:
        return RuleOutcome.KEPT
    return RuleOutcome.CUT if allowed > 0 else RuleOutcome.VETOED


def _shares_check(item: _Judged) -> Check:
    left = item.quantity > 0
    return Check(
        rule=WHOLE_SHARES,
        ticker=item.leg.ticker,
        outcome=RuleOutcome.KEPT if left else RuleOutcome.VETOED,
        passed=left,
        value=f"{item.quantity} shares",
        limit="at least 1 share",
        reason=f"{item.leg.side.value} of {_pct(item.allowed_pct)} is {item.quantity} whole shares",
    )


def _double(pick: StockPick) -> Check:
    return Check(
        rule=ONE_PICK_PER_TICKER,
        ticker=pick.ticker,
        outcome=RuleOutcome.VETOED,
        passed=False,
        value=f"another {pick.action.value} of {_pct(pick.allocation_pct)}",
        limit="one a side",
        reason=f"{pick.ticker} is proposed more than once; only the smallest {pick.action.value} "
        "counts",
    )


def _adjustment(check: Check) -> str:
    return f"{check.ticker}: {check.rule}: {check.reason} ({check.value}; limit {check.limit})"


def _of_equity(limit_pct: Decimal, facts: Facts) -> Decimal:
    return facts.equity * limit_pct / _HUNDRED


def _floor_pct(value: Decimal) -> Decimal:
    return value.quantize(_PCT_STEP, ROUND_FLOOR)


def _pct(value: Decimal) -> str:
    return f"{value.quantize(_PCT_STEP).normalize():f}%"


def _money(value: Decimal) -> str:
    return f"{value.quantize(Decimal('0.01')):,f}"
