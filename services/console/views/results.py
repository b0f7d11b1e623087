"""The results of decisions: each order with its round trip (libs/quant/standing.py)."""

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from uuid import UUID

from contracts.account import OrderStatus, OrderType
from contracts.cycle_query import CycleView
from contracts.execution import DecisionView
from contracts.performance import OrderResult, RoundTrip
from contracts.types import Money, plain_shares
from libs.postgres.pool import Record
from libs.quant.sizing import SHARE_STEP
from libs.quant.standing import AccountStanding
from libs.quant.ticks import PRICE_STEP
from libs.quant.trades import Closing, Trip
from libs.report.orders import BOOKED_LATER
from libs.report.results import WAITS, pending
from services.console.logic import rounded
from services.console.store import Store
from services.console.views.standings import standings_of

Key = tuple[UUID, str]
"""A decision: its cycle and pipeline."""


async def results(
    decisions: Iterable[tuple[str, UUID, str]], *, store: Store
) -> Mapping[Key, tuple[OrderResult, ...]]:
    """The results of these decisions (account, cycle, pipeline) that ordered something."""
    decided = {(account, cycle_id) for account, cycle_id, _ in decisions}
    orders = await store.orders_of(decided) if decided else ()
    stands = await standings_of(sorted({order["account"] for order in orders}), store)
    of: dict[Key, list[OrderResult]] = {}
    for order in orders:
        key = (order["cycle_id"], order["pipeline"])
        of.setdefault(key, []).append(_result(order, stands[order["account"]]))
    return {key: tuple(listed) for key, listed in of.items()}


async def of_cycles(views: Sequence[CycleView], *, store: Store) -> Sequence[CycleView]:
    """The cycles, each pipeline with its results."""
    of = await results(
        (
            (pipeline.account, view.cycle_id, pipeline.name)
            for view in views
            if view.cycle_id is not None
            for pipeline in view.pipelines
        ),
        store=store,
    )

    def filled(view: CycleView) -> CycleView:
        pipelines = tuple(
            lane.model_copy(update={"results": of.get((view.cycle_id, lane.name), ())})
            for lane in view.pipelines
            if view.cycle_id is not None
        )
        return view.model_copy(update={"pipelines": pipelines})

    return [filled(view) if view.cycle_id is not None else view for view in views]


async def of_decisions(views: Sequence[DecisionView], *, store: Store) -> Sequence[DecisionView]:
    """The decisions with their results."""
    of = await results(((it.account, it.cycle_id, it.pipeline) for it in views), store=store)
    return [
        it.model_copy(update={"results": of.get((it.cycle_id, it.pipeline), ())}) for it in views
    ]


def _result(order: Record, stands: AccountStanding | None) -> OrderResult:
    own = stands.by_order.get(order["order_id"]) if stands else None
    result = OrderResult.model_validate(
        {
            **order,
            "stop_price": _money(order["stop_price"], order["stop_currency"]),
            "reason": _why(order),
            "as_of": stands.close.session if stands else None,
            "gain": _money(own.gain, order["currency"]) if own else None,
            "trip": round_trip(own.trip, stands) if own and stands else None,
        }
    )
    # A value that is not known has its reason beside it.
    return result.model_copy(update={"reason": result.reason or pending(result)})


def _why(order: Record) -> str:
    """The order's own words, and of one that waits for an open how its fill is booked."""
    at_open = order["status"] == OrderStatus.WORKING and order["type"] == OrderType.MARKET
    waits = WAITS if order["at_broker"] else BOOKED_LATER
    return "; ".join(filter(None, (order["reason"], waits if at_open else "")))


def round_trip(trip: Trip, stands: AccountStanding) -> RoundTrip:
    """One round trip for people."""
    left, entered = trip.exit, trip.entry
    closing = left.closing if left else None
    if trip.closed is not None and left is None:
        closing = Closing.SPLIT
    return RoundTrip(
        ticker=trip.ticker,
        as_of=stands.close.session,
        opened=trip.opened,
        closed=trip.closed,
        sessions=trip.sessions(list(stands.grown)),
        quantity=plain_shares(trip.shares.quantize(SHARE_STEP)),
        sold=plain_shares(trip.shares_sold.quantize(SHARE_STEP)),
        held=trip.held,
        entry_price=rounded(trip.entry_price, PRICE_STEP),
        exit_price=rounded(trip.exit_price, PRICE_STEP),
        gain=trip.gain,
        gain_pct=rounded(trip.gain_pct),
        unrealised=trip.unrealised,
        dividends=trip.dividends,
        fees=trip.fees,
        sold_by=closing.value if closing else None,
        rules=left.rules if left else (),
        entry_cycle_id=entered.cycle_id if entered else None,
        entry_pipeline=entered.pipeline if entered else None,
        exit_cycle_id=left.cycle_id if left else None,
        exit_pipeline=left.pipeline if left else None,
    )


def _money(amount: Decimal | None, currency: str) -> Money | None:
    return None if amount is None else Money(amount=amount, currency=currency)
