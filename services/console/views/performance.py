"""How an account did: its closes and ledger are read, libs/quant computes, this gives the view."""

from collections.abc import Mapping
from datetime import date
from decimal import Decimal

import numpy as np

from contracts.performance import (
    MonthReturn,
    PerformanceFigures,
    PerformancePoint,
    PerformanceQuery,
    PerformanceView,
    RoundTrip,
    TickerReturn,
    TradeFigures,
    YearReturn,
)
from contracts.types import plain_shares
from libs.quant.returns import ONE, drawdowns, monthly, yearly
from libs.quant.sizing import SHARE_STEP
from libs.quant.standing import AccountStanding
from libs.quant.strategy import performance as figures
from libs.quant.ticks import PRICE_STEP
from libs.quant.trades import Closing, Trip
from libs.runtime.settings import Settings
from services.console import logic
from services.console.store import Store
from services.console.views import benchmark
from services.console.views.benchmark import CloseHistory, GrowthLine
from services.console.views.past_cycles import PastCycles
from services.console.views.standings import MOVES_MAX, not_counted, standing_of

TICKERS_MAX = 200
HUNDRED = Decimal(100)
STEP = Decimal("0.0001")
"""Percentages and ratios are given to four places."""
NO_CLOSE = "no close of this account could be valued yet"
TOO_MANY = f"round trips are not shown beyond {MOVES_MAX:,} entries"

Grown = Mapping[date, Decimal]


async def performance(
    query: PerformanceQuery,
    *,
    store: Store,
    past: PastCycles,
    history: CloseHistory,
    settings: Settings,
) -> PerformanceView:
    """One account from its opening to its newest close, beside its benchmark."""
    names = tuple(await store.accounts())
    row = await store.account(query.account)
    if row is None:
        return PerformanceView(found=False, accounts=names)
    stands = await standing_of(query.account, store)
    if stands is None:
        return PerformanceView(accounts=names, currency=row["currency"], message=NO_CLOSE)
    grown, trips = stands.grown, stands.trips or ()
    chosen = query.benchmark or settings.benchmark_of(query.account)
    held = await benchmark.line(
        chosen, query.account, list(grown), past=past, store=store, history=history
    )
    listed = sorted(trips, key=_newest_first)
    return PerformanceView(
        accounts=names,
        currency=row["currency"],
        first=stands.closes[0].session,
        last=stands.close.session,
        sessions=len(grown),
        not_counted=not_counted(stands),
        equity=stands.close.equity,
        paid_in=stands.close.paid_in,
        account=_figures(grown),
        benchmark=chosen,
        benchmark_tickers=held.tickers,
        benchmark_message=_absent(held),
        compared=_figures(held.grown),
        months=_months(grown, held.grown),
        years=tuple(
            YearReturn(year=year, return_pct=_pct(part)) for year, part in yearly(grown).items()
        ),
        trades=_trade_figures(stands),
        tickers=tuple(
            TickerReturn(ticker=it.ticker, trips=it.trips, gain=it.gain)
            for it in stands.by_ticker[:TICKERS_MAX]
        ),
        tickers_more=max(0, len(stands.by_ticker) - TICKERS_MAX),
        trips=tuple(round_trip(trip, stands) for trip in listed[: query.trips]),
        trips_more=len(listed) > query.trips,
        points=_points(stands, held.grown, query.points),
        message="" if stands.trips is not None else TOO_MANY,
    )


def _absent(held: GrowthLine) -> str:
    if held.message or not held.absent:
        return held.message
    return f"no price at the beginning for {', '.join(held.absent)}"


def _figures(grown: Grown) -> PerformanceFigures | None:
    """The figures of what 1 has become; None where there is no second close."""
    if len(grown) < 2:
        return None
    days = sorted(grown)
    curve = [grown[day] for day in days]
    worth = np.array([float(value) for value in curve])
    returns = figures.daily_returns(worth)
    deviation = float(returns.std(ddof=1)) if len(returns) > 1 else None
    falls = drawdowns(grown)
    deepest = max(days, key=falls.__getitem__)
    return PerformanceFigures(
        return_pct=_pct(curve[-1] / curve[0] - ONE),
        annual_pct=_pct(float(figures.cagr(worth))) if len(returns) > 1 else None,
        volatility_pct=None
        if deviation is None
        else _pct(deviation * float(np.sqrt(figures.YEAR_SESSIONS))),
        sharpe=_ratio(float(figures.sharpe_ratio(returns))),
        sortino=_ratio(float(figures.sortino_ratio(returns))),
        max_drawdown_pct=_pct(falls[deepest]),
        max_drawdown_on=deepest if falls[deepest] else None,
    )


def _pct(part: Decimal | float) -> Decimal:
    exact = part if isinstance(part, Decimal) else Decimal(str(part))
    return (exact * HUNDRED).quantize(STEP)


def _ratio(value: float) -> Decimal | None:
    return Decimal(str(value)).quantize(STEP) if np.isfinite(value) else None


def _months(grown: Grown, held: Grown) -> tuple[MonthReturn, ...]:
    beside = monthly(held)
    return tuple(
        MonthReturn(
            month=month,
            return_pct=_pct(part),
            benchmark_pct=_pct(beside[month]) if month in beside else None,
        )
        for month, part in monthly(grown).items()
    )


def _points(stands: AccountStanding, held: Grown, count: int) -> tuple[PerformancePoint, ...]:
    grown, falls = stands.grown, drawdowns(stands.grown)
    return tuple(
        PerformancePoint(
            session=day,
            return_pct=_pct(grown[day] - ONE),
            benchmark_pct=_pct(held[day] - ONE) if day in held else None,
            drawdown_pct=_pct(falls[day]),
            exposure_pct=close.exposure_pct.quantize(STEP),
        )
        for close in logic.picked(stands.closes, count)
        for day in [close.session]
    )


def _newest_first(trip: Trip) -> tuple[bool, int, str]:
    """Open ones first, then the ones closed last."""
    ended = trip.closed or trip.opened
    return trip.closed is not None, -ended.toordinal(), trip.ticker


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
        entry_price=_price(trip.entry_price),
        exit_price=_price(trip.exit_price),
        gain=trip.gain,
        gain_pct=None if trip.gain_pct is None else trip.gain_pct.quantize(STEP),
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


def _price(amount: Decimal | None) -> Decimal | None:
    return None if amount is None else amount.quantize(PRICE_STEP)


def _trade_figures(stands: AccountStanding) -> TradeFigures:
    of, trips, days = stands.tally, stands.trips or (), list(stands.grown)
    held = [trip.sessions(days) for trip in trips]
    closed = [sessions for sessions in held if sessions is not None]
    invested = [close for close in stands.closes if close.equity > 0]
    mean = (
        sum((it.equity for it in invested), Decimal(0)) / len(invested) if invested else Decimal(0)
    )
    exposures = [it.exposure_pct for it in invested]
    years = Decimal(max(len(days) - 1, 1)) / figures.YEAR_SESSIONS
    return TradeFigures(
        closed=of.closed,
        open=sum(trip.closed is None for trip in trips),
        won=of.won,
        win_rate_pct=None if of.win_rate_pct is None else of.win_rate_pct.quantize(STEP),
        mean_win=_money(of.mean_win),
        mean_loss=_money(of.mean_loss),
        best=of.best,
        worst=of.worst,
        profit_factor=None if of.profit_factor is None else of.profit_factor.quantize(STEP),
        sessions_held=(Decimal(sum(closed)) / len(closed)).quantize(STEP) if closed else None,
        fees=sum((trip.fees for trip in trips), Decimal(0)),
        turnover=(stands.traded / mean / years).quantize(STEP) if mean and len(days) > 1 else None,
        exposure_pct=(sum(exposures, Decimal(0)) / len(exposures)).quantize(STEP)
        if exposures
        else None,
    )


def _money(amount: Decimal | None) -> Decimal | None:
    return None if amount is None else amount.quantize(Decimal("0.01"))
