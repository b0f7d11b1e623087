"""An account as people see it: its figures as of its newest valued close, and its books now."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from uuid import UUID

import orjson

from contracts.account import (
    AccountLimits,
    Fill,
    HeldPlan,
    OpenOrder,
    OrderType,
    Portfolio,
    Position,
)
from contracts.account_query import (
    AccountQuery,
    AccountView,
    EquityPoint,
    EquityQuery,
    EquityView,
    HeldAtClose,
)
from contracts.facts import UNKNOWN_SECTOR
from contracts.types import ExchangeRate, Foreign, Money
from contracts.venue import BoundTo
from libs.postgres.pool import Record
from libs.quant.returns import ONE, drawdowns
from libs.quant.standing import AccountStanding, Close
from libs.quant.ticks import PRICE_STEP
from services.console import logic
from services.console.store import Store, sql
from services.console.views.desk import DeskViews
from services.console.views.standings import (
    KeptClose,
    held_at,
    kept_closes,
    not_counted,
    standing_of,
)

HELD_MAX = 1_000
"""Positions of an account that are shown."""
_NO_CYCLE = UUID(int=0)
"""Stands in an account's portfolio where no cycle has placed an order yet."""


@dataclass(frozen=True)
class AccountState:
    """An account: its row, its books now, and how it stands with what it held at that close."""

    opened: Record
    books: Portfolio
    standing: AccountStanding | None
    held: tuple[HeldAtClose, ...] = ()


async def read(name: str, desk: DeskViews) -> AccountState | None:
    """The account of this name; None where there is none."""
    store = desk.store
    row = await store.account(name)
    if row is None:
        return None
    books = await _portfolio(row, await store.balances(name), store, synthetic=desk.synthetic)
    stands = await standing_of(name, store)
    if stands is None:
        return AccountState(row, books, None)
    session = stands.close.session
    kept = kept_closes(await store.closes_of(name, session), row["currency"])
    return AccountState(row, books, stands, await held_at(name, session, kept, HELD_MAX, store))


async def account(query: AccountQuery, desk: DeskViews) -> AccountView:
    """One account with the names of all."""
    names = tuple(await desk.store.accounts())
    one = await read(query.account, desk)
    if one is None:
        return AccountView(found=False, accounts=names)
    fills = (
        await desk.store.rows(sql.newest_fills, query.account, query.fills) if query.fills else ()
    )
    return view_of(one, names, fills)


def view_of(
    one: AccountState, names: tuple[str, ...] = (), fills: Sequence[Record] = ()
) -> AccountView:
    """The account as people see it, with its newest fills and the names of all accounts."""
    currency, cash = one.opened["currency"], one.opened["starting_cash"]
    view = AccountView(
        portfolio=one.books,
        starting_cash=cash,
        fills=tuple(_fill(fill, currency) for fill in fills),
        accounts=names,
    )
    if one.standing is None:
        return view
    close = one.standing.close
    same = ("cash", "equity", "paid_in", "realised", "dividends", "fees", "unrealised")
    return view.model_copy(
        update={
            **{name: getattr(close, name) for name in same},
            "closed_on": close.session,
            "not_counted": not_counted(one.standing),
            "return_pct": one.standing.return_pct.quantize(logic.PCT_STEP),
            "held": one.held,
            # Nothing is ever sold short, so gross and net exposure are one.
            "exposure_gross": close.positions,
            "exposure_net": close.positions,
        }
    )


async def equity(query: EquityQuery, *, store: Store) -> EquityView:
    """The account's equity over its sessions."""
    if await store.account(query.account) is None:
        return EquityView(found=False)
    stands = await standing_of(query.account, store)
    return EquityView() if stands is None else equity_of(stands, query.points)


def equity_of(stands: AccountStanding, points: int) -> EquityView:
    """The account's equity at so many of its closes."""
    falls = drawdowns(stands.grown)
    deepest = max(falls, key=falls.__getitem__)
    return EquityView(
        points=tuple(_point(it, stands.grown, falls) for it in logic.picked(stands.closes, points)),
        max_drawdown_pct=logic.pct(falls[deepest]),
        max_drawdown_on=deepest if falls[deepest] else None,
    )


def _point(
    close: Close, grown: Mapping[date, Decimal], falls: Mapping[date, Decimal]
) -> EquityPoint:
    return EquityPoint(
        session=close.session,
        cash=close.cash,
        equity=close.equity,
        realised=close.realised,
        unrealised=close.unrealised,
        exposure_gross=close.positions,
        exposure_net=close.positions,
        paid_in=close.paid_in,
        return_pct=logic.pct(grown[close.session] - ONE),
        drawdown_pct=logic.pct(falls[close.session]),
    )


async def _portfolio(
    row: Record, balances: Sequence[Record], store: Store, *, synthetic: bool
) -> Portfolio:
    name, currency = row["account"], row["currency"]
    cash = sum((balance["amount"] for balance in balances if balance["book"] == "cash"), Decimal(0))
    held = {
        balance["ticker"]: balance
        for balance in sorted(balances, key=lambda balance: balance["ticker"])
        if balance["book"] == "position" and balance["quantity"] > 0
    }
    facts = await store.held(name, list(held)) if held else {}
    untraded = [ticker for ticker in held if ticker not in facts]
    sectors = await store.sectors_brought_in(name, untraded) if untraded else {}
    plans = await store.plans(name, list(held)) if held else {}
    kept = kept_closes(row["closes"], currency)
    positions = tuple(
        _position(
            holding,
            facts.get(ticker),
            plans.get(ticker),
            kept.get(ticker),
            row,
            facts[ticker]["sector"] if ticker in facts else sectors.get(ticker, UNKNOWN_SECTOR),
        )
        for ticker, holding in held.items()
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
        open_orders=tuple(
            _open(order, currency) for order in await store.rows(sql.working_orders, name)
        ),
        limits=AccountLimits.model_validate_json(row["limits"]),
        halt=next(
            (
                h
                for h in map(logic.halt_of, await store.rows(sql.halts))
                if h.account in {None, name}
            ),
            None,
        ),
        synthetic=synthetic,
        venue=bound_to(row),
    )


def bound_to(row: Record) -> BoundTo | None:
    """The broker's account that an account's row names; None for the simulated broker."""
    if row["venue"] is None:
        return None
    return BoundTo(venue=row["venue"], account_number=row["venue_account"])


def _position(
    held: Record,
    fill: Record | None,
    plan: Record | None,
    kept: KeptClose | None,
    row: Record,
    sector: str,
) -> Position:
    """Marked by the newest price that the account has seen: a fill after its clock, else what its
    last snapshot valued it at, else the fill."""
    currency, cost = row["currency"], held["amount"] / held["quantity"]
    priced_on = None
    if fill is not None and fill["session"] > row["clock"]:
        price, foreign = fill["price"], _foreign(fill, currency)
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
        sector=sector,
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
    hold = _money(row["hold"], currency)
    return OpenOrder.model_validate(
        {**row, "asset": row["ticker"], "hold": hold, "stop_price": stop}
    )


def _fill(row: Record, currency: str) -> Fill:
    return Fill.model_validate(
        {
            **row,
            "asset": row["ticker"],
            "price": _money(row["price"], currency),
            "fee": _money(row["fee"], currency),
            "foreign": _foreign(row, currency),
        }
    )
