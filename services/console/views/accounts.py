"""An account as people see it: its books, marked by the newest prices that it has seen."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any, Protocol
from uuid import UUID

import orjson
import polars as pl

from contracts.account import (
    AccountLimits,
    Fill,
    HeldPlan,
    OpenOrder,
    OrderType,
    Portfolio,
    Position,
    Side,
)
from contracts.account_query import AccountQuery, AccountView, EquityPoint, EquityQuery, EquityView
from contracts.http import PriceBar
from contracts.types import ExchangeRate, Foreign, Money
from libs.postgres.pool import Record
from libs.quant.exchange import Mark
from libs.quant.returns import ONE, Worth, drawdowns, growth
from libs.quant.ticks import PRICE_STEP
from services.console import logic
from services.console.store import Store

RETURN_STEP = Decimal("0.0001")
"""Percentages are told to four places."""
_NO_CYCLE = UUID(int=0)
"""Stands in an account's portfolio where no cycle has placed an order yet."""


class Closes(Protocol):
    """Closing prices of a session."""

    @property
    def synthetic(self) -> bool:
        """Whether they are made up."""
        ...

    async def close(self, ticker: str, session: date, currency: str) -> Mark | None:
        """The close, and its value in `currency`; None where the source has none."""
        ...


class Prices(Protocol):
    """Prices over time, as the market source has them."""

    @property
    def described(self) -> str:
        """Where they are from."""
        ...

    async def bars(self, ticker: str, as_of: date, sessions: int) -> Sequence[PriceBar]:
        """The newest bars up to the session's close. Raises `MarketError`."""
        ...

    async def frame(self, ticker: str, as_of: date, sessions: int) -> pl.DataFrame:
        """The same as a frame (BAR_SCHEMA)."""
        ...

    async def currency(self, ticker: str, as_of: date) -> str:
        """The currency that they are in. Raises `MarketError`."""
        ...


@dataclass(frozen=True)
class Standing:
    """An account as it stands: its books, marked, what it has gained since its opening, and its
    closes, oldest first."""

    opened: Record
    books: Portfolio
    gains: "_Gains"
    snapshots: Sequence[Record]

    @property
    def grown(self) -> Mapping[date, Decimal]:
        """The growth of 1, time-weighted, since the opening by each close and now."""
        worth = {snapshot["session"]: worth_of(snapshot) for snapshot in self.snapshots}
        worth[self.books.as_of] = Worth(self.books.equity.amount, self.gains.paid_in)
        return growth(worth)


async def standing(name: str, *, store: Store, closes: Closes) -> Standing | None:
    """How the account of this name stands; None where there is none."""
    row = await store.account(name)
    if row is None:
        return None
    balances = await store.balances(name)
    books = await _portfolio(row, balances, store, closes)
    return Standing(row, books, _gains(books, balances), await store.snapshots(name))


async def account(query: AccountQuery, *, store: Store, closes: Closes) -> AccountView:
    """One account as its books stand, with the names of all."""
    names = tuple(await store.accounts())
    stands = await standing(query.account, store=store, closes=closes)
    if stands is None:
        return AccountView(found=False, accounts=names)
    fills = await store.newest_fills(query.account, query.fills) if query.fills else ()
    return view_of(stands, names, fills)


def view_of(
    stands: Standing, names: tuple[str, ...] = (), fills: Sequence[Record] = ()
) -> AccountView:
    """The account as people see it, with its newest fills and the names of all accounts."""
    gains = stands.gains
    return AccountView(
        portfolio=stands.books,
        starting_cash=stands.opened["starting_cash"],
        paid_in=gains.paid_in,
        return_pct=_pct(stands.grown[stands.books.as_of] - ONE),
        fills=tuple(_fill(fill, stands.opened["currency"]) for fill in fills),
        accounts=names,
        realised=gains.realised,
        dividends=gains.dividends,
        fees=gains.fees,
        unrealised=gains.unrealised,
        exposure_gross=gains.exposure,
        exposure_net=gains.exposure,
    )


@dataclass(frozen=True)
class _Gains:
    """Since the opening; nothing is ever sold short, so gross and net exposure are one."""

    paid_in: Decimal
    realised: Decimal
    dividends: Decimal
    fees: Decimal
    unrealised: Decimal
    exposure: Decimal


def _gains(books: Portfolio, balances: Sequence[Record]) -> _Gains:
    sums: dict[str, Decimal] = {}
    for balance in balances:
        sums[balance["book"]] = sums.get(balance["book"], Decimal(0)) + balance["amount"]
    value = books.equity.amount - books.cash.amount
    return _Gains(
        # What came in is a credit, which the ledger writes with a minus.
        paid_in=-sums.get("capital", Decimal(0)),
        realised=-sums.get("realised", Decimal(0)),
        dividends=-sums.get("dividends", Decimal(0)),
        fees=sums.get("fees", Decimal(0)),
        unrealised=value - sums.get("position", Decimal(0)),
        exposure=value,
    )


async def equity(query: EquityQuery, *, store: Store, closes: Closes) -> EquityView:
    """The account's equity over its sessions, as `equity_of` has it."""
    stands = await standing(query.account, store=store, closes=closes)
    return EquityView(found=False) if stands is None else equity_of(stands, query.points)


def equity_of(stands: Standing, points: int) -> EquityView:
    """The account's equity at so many of its sessions.

    A session up to the account's clock is its snapshot. What was filled after the clock shows in
    the last point, marked as the account itself is: its closes are not known to it yet.
    """
    now, gains, grown = stands.books, stands.gains, stands.grown
    falls = drawdowns(grown)
    deepest = max(falls, key=falls.__getitem__)
    last = EquityPoint(
        session=now.as_of,
        cash=now.cash.amount,
        equity=now.equity.amount,
        realised=gains.realised,
        unrealised=gains.unrealised,
        exposure_gross=gains.exposure,
        exposure_net=gains.exposure,
        paid_in=gains.paid_in,
        return_pct=_pct(grown[now.as_of] - ONE),
        drawdown_pct=_pct(falls[now.as_of]),
    )
    earlier = [snapshot for snapshot in stands.snapshots if snapshot["session"] < now.as_of]
    kept = [
        EquityPoint(
            **dict(close),
            return_pct=_pct(grown[close["session"]] - ONE),
            drawdown_pct=_pct(falls[close["session"]]),
        )
        for close in logic.picked(earlier, points - 1)
    ]
    return EquityView(
        points=(*kept, last),
        max_drawdown_pct=_pct(falls[deepest]),
        max_drawdown_on=deepest if falls[deepest] else None,
    )


def worth_of(snapshot: Record) -> Worth:
    """The two values that a snapshot's return is measured between."""
    return Worth(snapshot["equity"], snapshot["paid_in"])


def _pct(part: Decimal) -> Decimal:
    return (part * 100).quantize(RETURN_STEP)


async def _portfolio(
    row: Record, balances: Sequence[Record], store: Store, closes: Closes
) -> Portfolio:
    name, currency = row["account"], row["currency"]
    cash = sum((balance["amount"] for balance in balances if balance["book"] == "cash"), Decimal(0))
    held = {
        balance["ticker"]: balance
        for balance in sorted(balances, key=lambda balance: balance["ticker"])
        if balance["book"] == "position" and balance["quantity"] > 0
    }
    facts = await store.held(name, list(held)) if held else {}
    plans = await store.plans(name, list(held)) if held else {}
    kept = kept_closes(row["closes"], currency)
    marked = await asyncio.gather(*(closes.close(t, row["clock"], currency) for t in held))
    positions = tuple(
        _position(holding, facts.get(ticker), plans.get(ticker), mark, kept.get(ticker), row)
        for (ticker, holding), mark in zip(held.items(), marked, strict=True)
    )
    last = await store.last_order(name)
    return Portfolio(
        cycle_id=last.get("cycle_id", _NO_CYCLE),
        op_id=last.get("op_id", _NO_CYCLE),
        as_of=row["as_of"],
        account=name,
        cash=_money(cash, currency),
        equity=_money(cash + sum((position.value for position in positions), Decimal(0)), currency),
        positions=positions,
        open_orders=tuple(_open(order, currency) for order in await store.working_orders(name)),
        limits=AccountLimits.model_validate_json(row["limits"]),
        halt=next(
            (h for h in map(logic.halt_of, await store.halts()) if h.account in {None, name}), None
        ),
        synthetic=closes.synthetic,
    )


@dataclass(frozen=True)
class KeptClose:
    """A position's value in a snapshot, in the account's currency; `priced_on` as in `Position`."""

    amount: Decimal
    foreign: Foreign | None
    priced_on: date | None


def kept_closes(kept: str | None, into: str) -> Mapping[str, KeptClose]:
    """The `closes` of a snapshot, by ticker; those that could not be exchanged are left out."""
    rows = orjson.loads(kept or "[]")
    return {row["ticker"]: _kept(row, into) for row in rows if row["amount"] is not None}


def _kept(fields: Mapping[str, Any], into: str) -> KeptClose:
    foreign = None
    if fields["rate"] is not None:
        currency = fields["currency"]
        rate = ExchangeRate(currency=currency, into=into, rate=fields["rate"], on=fields["rate_on"])
        foreign = Foreign(price=Money(amount=fields["price"], currency=currency), rate=rate)
    on = fields["priced_on"]
    return KeptClose(
        Decimal(fields["amount"]), foreign, None if on is None else date.fromisoformat(on)
    )


def _position(
    held: Record,
    fill: Record | None,
    plan: Record | None,
    mark: Mark | None,
    kept: KeptClose | None,
    row: Record,
) -> Position:
    """Marked by the newest price that the account has seen: a fill after its clock, else the close
    at its clock, else what its last snapshot valued it at, else the fill."""
    currency, cost = row["currency"], held["amount"] / held["quantity"]
    priced_on = None
    if fill is not None and fill["session"] > row["clock"]:
        price, foreign = fill["price"], _foreign(fill, currency)
    elif mark is not None and mark.amount is not None:
        price, foreign = mark.amount, mark.foreign
    elif kept is not None:
        price, foreign, priced_on = kept.amount, kept.foreign, kept.priced_on
    elif fill is not None:
        price, foreign = fill["price"], _foreign(fill, currency)
    else:
        price, foreign = cost, None
    return Position(
        ticker=held["ticker"],
        quantity=held["quantity"],
        average_cost=_money(cost, currency),
        price=_money(price, currency),
        sector=fill["sector"] if fill is not None else "unknown",
        foreign=foreign,
        opened_on=held["opened_on"],
        plan=_plan_of(plan, held["opened_on"]),
        priced_on=priced_on,
    )


def _plan_of(row: Record | None, opened_on: date | None) -> HeldPlan | None:
    """The plan of the newest buy, where this position was entered with it."""
    if row is None:
        return None
    plan = HeldPlan(
        **orjson.loads(row["plan"]),
        thesis=row["thesis"],
        since=row["session"],
        cycle_id=row["cycle_id"],
    )
    return plan if plan.is_of(opened_on) else None


def _foreign(fill: Record, into: str) -> Foreign | None:
    if fill["currency"] is None:
        return None
    traded = {"currency": fill["currency"], "into": into}
    rate = ExchangeRate(**traded, rate=fill["rate"], on=fill["rate_on"])
    return Foreign(price=Money(amount=fill["foreign_price"], currency=fill["currency"]), rate=rate)


def _money(amount: Decimal, currency: str) -> Money:
    return Money(amount=amount.quantize(PRICE_STEP), currency=currency)


def _open(row: Record, currency: str) -> OpenOrder:
    stop = None
    if row["type"] == OrderType.STOP:
        stop = _money(row["stop_price"], row["currency"] or currency)
    return OpenOrder(
        order_id=row["order_id"],
        asset=row["ticker"],
        side=Side(row["side"]),
        quantity=row["quantity"],
        hold=_money(row["hold"], currency),
        stop_price=stop,
        as_of=row["as_of"],
    )


def _fill(row: Record, currency: str) -> Fill:
    return Fill(
        order_id=row["order_id"],
        asset=row["ticker"],
        side=Side(row["side"]),
        price=_money(row["price"], currency),
        quantity=row["quantity"],
        fee=_money(row["fee"], currency),
        session=row["session"],
        foreign=_foreign(row, currency),
    )
