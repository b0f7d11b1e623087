"""The facts that the risk rules may look at, and the finding of one rule."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_FLOOR, ROUND_HALF_UP, Decimal
from functools import cached_property
from typing import Any

from contracts.account import AccountLimits, OrderType, Portfolio, Position, Side
from contracts.constraints import Constraints
from contracts.facts import UNKNOWN_SECTOR, Moves
from contracts.risk import Evidence
from contracts.trader import StockPick
from libs.quant.risk.movement import Movement
from libs.quant.sizing import limit_price

_CENT = Decimal("0.01")
PCT_STEP = Decimal("0.0001")  # contracts.types.Percent keeps four places
PCT_STEPS_SHOWN = (Decimal("0.01"), Decimal("0.001"), PCT_STEP)
_HUNDRED = Decimal(100)
_ZERO = Decimal(0)


@dataclass(frozen=True, slots=True)
class Leg:
    """One side of one ticker, at most once in a proposal. `allocation_pct` as in `StockPick`."""

    ticker: str
    side: Side
    allocation_pct: Decimal
    pick: StockPick


@dataclass(frozen=True, slots=True)
class Forecast:
    """The variances of a year, in money times money: of what is held, of the buys, and between."""

    held: Decimal
    asked: Decimal
    between: Decimal

    @property
    def whole(self) -> Decimal:
        """Of what is held with all buys."""
        return self.held + 2 * self.between + self.asked


@dataclass(frozen=True)
class RiskFacts:
    """All that the rules may look at. `legs` are the buys, or the sales, that compete for
    the same room."""

    evidence: Mapping[str, Evidence]
    portfolio: Portfolio
    limits: AccountLimits
    budget: Decimal
    prices: Mapping[str, Decimal]
    legs: tuple[Leg, ...] = ()
    constraints: Constraints = Constraints()
    moves: Movement = Movement(Moves())

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
        """The open positions, by ticker."""
        return {held.ticker: held for held in self.portfolio.positions if held.quantity > 0}

    @cached_property
    def open_buys(self) -> Mapping[str, Decimal]:
        """Money that open buy orders hold back, by ticker."""
        return self._open(Side.BUY, lambda order: order.hold.amount)

    @cached_property
    def open_sells(self) -> Mapping[str, Decimal]:
        """Shares that open sell orders have promised away, by ticker. A stop order promises none:
        a sale makes it smaller.
        """
        return self._open(Side.SELL, lambda order: order.quantity)

    @property
    def sales_waiting(self) -> int:
        """How many sell orders wait, several of one ticker too; stop orders are none."""
        return sum(
            order.side is Side.SELL and order.type is OrderType.MARKET
            for order in self.portfolio.open_orders
        )

    def _open(self, side: Side, measure: Callable[[Any], Decimal]) -> Mapping[str, Decimal]:
        totals: dict[str, Decimal] = {}
        for order in self.portfolio.open_orders:
            if order.side is side and order.type is OrderType.MARKET:
                totals[order.asset] = totals.get(order.asset, _ZERO) + measure(order)
        return totals

    @property
    def cash_free(self) -> Decimal:
        """Cash that no open order holds back."""
        return max(_ZERO, self.portfolio.cash.amount - sum(self.open_buys.values(), _ZERO))

    def sellable(self, ticker: str) -> Decimal:
        """Shares held and not promised to an open sell order; none without a price."""
        held = self.positions.get(ticker)
        if held is not None and held.priced_on is not None:
            return _ZERO
        free = (held.quantity if held else _ZERO) - self.open_sells.get(ticker, _ZERO)
        return max(_ZERO, free)

    def exposure(self, ticker: str) -> Decimal:
        """Money in one ticker: the position's value and what open buys hold."""
        held = self.positions.get(ticker)
        return (held.value if held else _ZERO) + self.open_buys.get(ticker, _ZERO)

    @property
    def exposed_tickers(self) -> set[str]:
        """Tickers with a position or an open buy."""
        return {*self.positions, *self.open_buys}

    @cached_property
    def forecast(self) -> Forecast:
        """How much the account is forecast to move, and how much more with the buys."""
        held = {ticker: self.exposure(ticker) for ticker in sorted(self.exposed_tickers)}
        asked = {leg.ticker: self.amount(leg) for leg in self.legs}
        return Forecast(
            self.moves.covariance(held, held),
            self.moves.covariance(asked, asked),
            self.moves.covariance(held, asked),
        )

    def sector(self, ticker: str) -> str:
        """The ticker's sector by the market source, else by the books; all unknown ones are one."""
        sources = (self.evidence.get(ticker), self.positions.get(ticker))
        named = (source.sector.strip().lower() for source in sources if source is not None)
        return next((name for name in named if name not in {"", UNKNOWN_SECTOR}), UNKNOWN_SECTOR)

    def lot(self, ticker: str) -> int:
        """How many shares are traded together, by the market source and by the books."""
        known = (self.evidence.get(ticker), self.positions.get(ticker))
        return max((source.lot for source in known if source is not None), default=1)

    def price_to_size_by(self, ticker: str) -> Decimal:
        """The price of a buy in the account's currency, 0 where there is none. After an exchange it
        is kept to six places; rounded down there it would buy more shares than are allowed. At a
        broker it is the limit price: the most that a share may cost."""
        if self.portfolio.venue is not None:
            return limit_price(self.prices.get(ticker, _ZERO), self.limits.price_move_pct_max)
        price, known = self.prices.get(ticker, _ZERO), self.evidence.get(ticker)
        if known is None or known.foreign is None:
            return price
        return max(price, known.foreign.price.amount * known.foreign.rate.rate)

    def classes(self, ticker: str, among: Iterable[str]) -> Sequence[str]:
        """Those of `among` that are shares of the ticker's issuer, the ticker itself first, then by
        name. Where the source does not know an issuer a ticker is its own."""
        issuer = self._issuer(ticker)
        same = {name for name in among if self._issuer(name) == issuer}
        return sorted(same, key=lambda name: (name != ticker, name))

    def _issuer(self, ticker: str) -> tuple[str, str]:
        evidence = self.evidence.get(ticker)
        named = (evidence.issuer if evidence else "") or self.portfolio.issuers.get(ticker, "")
        return ("issuer", named) if named else ("ticker", ticker)

    def amount(self, leg: Leg) -> Decimal:
        """The money a buy asks for."""
        return leg.allocation_pct * self.budget / _HUNDRED

    def sale_price(self, ticker: str) -> Decimal:
        """The price of a sale in the account's currency; 0 where nothing of it is held."""
        held = self.positions.get(ticker)
        return self.prices.get(ticker, held.price.amount if held else _ZERO)

    def sold(self, leg: Leg) -> Decimal:
        """The money that a sale asks for, before it is rounded down to shares: else what is cut in
        proportion to it would come out a share too large."""
        free = self.sellable(leg.ticker)
        if free < self.lot(leg.ticker):  # it is sold whole
            return free * self.sale_price(leg.ticker)
        return free * leg.allocation_pct * self.sale_price(leg.ticker) / _HUNDRED

    def money(self, amount: Decimal) -> str:
        """An amount in the account's currency for people: `1,234.50 USD`."""
        return f"{amount.quantize(_CENT, ROUND_HALF_UP):,f} {self.currency}"


@dataclass(frozen=True, slots=True)
class LegFinding:
    """A rule's finding on one leg: the allocation it allows, the value and the limit. A rule that
    counts in shares says how many at most."""

    allowed_pct: Decimal
    value: str
    limit: str
    reason: str
    shares_max: Decimal | None = None


def gate(leg: Leg, *, ok: bool, value: str, limit: str, kept: str, vetoed: str) -> LegFinding:
    """A yes with the reason `kept`, or a no with the reason `vetoed`."""
    if ok:
        return LegFinding(leg.allocation_pct, value, limit, kept)
    return LegFinding(_ZERO, value, limit, vetoed)


def share_of_room(
    leg: Leg, facts: RiskFacts, wanted: Decimal, room: Decimal, name: str, reason: str
) -> LegFinding:
    """Where `wanted` is more money than `room`, all that wants it shrinks in proportion."""
    room = max(_ZERO, room)
    allowed = leg.allocation_pct
    if wanted > room:
        allowed = floor_pct(allowed * room / wanted)
    return LegFinding(allowed, f"{facts.money(wanted)} {name}", facts.money(room), reason)


Judge = Callable[[Leg, RiskFacts], LegFinding]


@dataclass(frozen=True, slots=True)
class RiskRule:
    """One row of the table: its name in checks, why it is there, and how it judges."""

    name: str
    why: str
    judge: Judge


Findings = tuple[tuple[RiskRule, LegFinding], ...]


def share_class(other: str, ticker: str) -> str:
    """Another share class as a finding names it, `GOOGL (same issuer) `; empty for the ticker."""
    return "" if other == ticker else f"{other} (same issuer) "


def floor_pct(value: Decimal) -> Decimal:
    """A percentage with the four places that contracts carry, rounded down."""
    return value.quantize(PCT_STEP, ROUND_FLOOR)


def pct(value: Decimal, beside: Decimal | None = None) -> str:
    """A percentage for people, `12.35%`; with more places where two would not tell it from
    `beside`, which it is compared with."""
    text = ""
    for step in PCT_STEPS_SHOWN:
        text = _at(value, step)
        if beside is None or beside == value or text != _at(beside, step):
            break
    return text


def _at(value: Decimal, step: Decimal) -> str:
    return f"{value.quantize(step, ROUND_HALF_UP).normalize():f}%"
