"""The rules of risk as one table: what each looks at, what it allows, and why it is there.

Gates veto a pick by facts that no other pick changes. Ceilings look at all picks that passed the
gates, and each names the largest allocation it allows a pick, without seeing the other rules.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Decimal
from functools import cached_property
from typing import Any

from contracts.account import AccountLimits, Portfolio, Position, Side
from contracts.risk import Evidence
from contracts.trader import StockPick
from libs.quant.sizing import BPS_IN_ONE

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
        moved = pct(abs(price - evidence.price) * _HUNDRED / evidence.price)
    return _gate(
        leg,
        ok=ok,
        value=moved,
        limit=pct(limit_pct),
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
        allowed = floor_pct(allowed * room / asked)
    return Finding(allowed, f"{_money(asked)} {name}", f"{_money(room)} {facts.currency}", reason)


def _allocation_total(leg: Leg, facts: Facts) -> Finding:
    total = sum((member.allocation_pct for member in facts.legs), _ZERO)
    return _share_of_pct(
        leg, total, ALLOCATION_PCT_MAX, f"allocations sum to {pct(ALLOCATION_PCT_MAX)} at most"
    )


def _sector_allocation(leg: Leg, facts: Facts) -> Finding:
    sector = facts.sector(leg.ticker)
    total = sum((member.allocation_pct for member in _same_sector(sector, facts)), _ZERO)
    limit = facts.limits.sector_pct_max
    return _share_of_pct(
        leg, total, limit, f"sector {sector} may take at most {pct(limit)} of the allocations"
    )


def _share_of_pct(leg: Leg, total: Decimal, limit: Decimal, reason: str) -> Finding:
    allowed = leg.allocation_pct
    if total > limit:
        allowed = floor_pct(allowed * limit / total)
    return Finding(allowed, pct(total), pct(limit), reason)


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
        f"sector {sector} with what is held may be at most {pct(limit)} of equity",
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
        f"one position may be at most {pct(limit)} of equity",
    )


def _order_size(leg: Leg, facts: Facts) -> Finding:
    limit = facts.limits.order_pct_max
    return _share_of_room(
        leg,
        facts,
        [leg],
        _of_equity(limit, facts),
        "asked for",
        f"one order may be at most {pct(limit)} of equity",
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
        f"positions and orders together may be at most {pct(limit)} of equity",
    )


def _cash(leg: Leg, facts: Facts) -> Finding:
    return _share_of_room(
        leg,
        facts,
        facts.legs,
        facts.cash_free * BPS_IN_ONE / (BPS_IN_ONE + CASH_RESERVE_BPS),
        "asked for in all",
        f"buys and {pct(CASH_RESERVE_BPS / _HUNDRED)} for fee and slippage come out of free cash",
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


def is_currency_pair(ticker: str) -> bool:
    """True for crypto and currency pairs as exchanges and Yahoo write them: BTC/USD, BTC-USD."""
    return _PAIR.search(ticker) is not None


def _of_equity(limit_pct: Decimal, facts: Facts) -> Decimal:
    return facts.equity * limit_pct / _HUNDRED


def floor_pct(value: Decimal) -> Decimal:
    """A percentage with the four places that contracts carry, rounded down."""
    return value.quantize(_PCT_STEP, ROUND_FLOOR)


def pct(value: Decimal) -> str:
    """A percentage for people."""
    return f"{value.quantize(_PCT_STEP).normalize():f}%"


def _money(value: Decimal) -> str:
    return f"{value.quantize(Decimal('0.01')):,f}"
