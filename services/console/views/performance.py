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
    TickerReturn,
    TradeFigures,
    YearReturn,
)
from libs.quant.returns import ONE, at_exposure, drawdowns, monthly, yearly
from libs.quant.standing import AccountStanding
from libs.quant.strategy import performance as figures
from libs.quant.trades import Trip
from services.console.logic import PCT_STEP, pct, picked, ratio, rounded
from services.console.views import benchmark
from services.console.views.benchmark import GrowthLine
from services.console.views.desk import DeskViews
from services.console.views.results import round_trip
from services.console.views.standings import MOVES_MAX, not_counted, standing_of

TICKERS_MAX = 200
CENT = Decimal("0.01")
NO_CLOSE = "no close of this account could be valued yet"
TOO_MANY = f"round trips are not shown beyond {MOVES_MAX:,} entries"

Grown = Mapping[date, Decimal]


async def performance(
    query: PerformanceQuery,
    desk: DeskViews,
) -> PerformanceView:
    """One account from its opening to its newest close, beside its benchmark."""
    store = desk.store
    names = tuple(await store.accounts())
    row = await store.account(query.account)
    if row is None:
        return PerformanceView(found=False, accounts=names)
    stands = await standing_of(query.account, store)
    if stands is None:
        return PerformanceView(accounts=names, currency=row["currency"], message=NO_CLOSE)
    grown, trips = stands.grown, stands.trips or ()
    chosen = query.benchmark or desk.settings.benchmark_of(query.account)
    held = await benchmark.line(chosen, query.account, list(grown), desk)
    invested = {close.session: close.exposure_pct / 100 for close in stands.closes}
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
        exposed=_figures(at_exposure(held.grown, invested)),
        months=_months(grown, held.grown),
        years=tuple(
            YearReturn(year=year, return_pct=pct(part)) for year, part in yearly(grown).items()
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
        return_pct=pct(curve[-1] / curve[0] - ONE),
        annual_pct=pct(float(figures.cagr(worth))) if len(returns) > 1 else None,
        volatility_pct=None
        if deviation is None
        else pct(deviation * float(np.sqrt(figures.YEAR_SESSIONS))),
        sharpe=ratio(float(figures.sharpe_ratio(returns))),
        sortino=ratio(float(figures.sortino_ratio(returns))),
        max_drawdown_pct=pct(falls[deepest]),
        max_drawdown_on=deepest if falls[deepest] else None,
    )


def _months(grown: Grown, held: Grown) -> tuple[MonthReturn, ...]:
    beside = monthly(held)
    return tuple(
        MonthReturn(
            month=month,
            return_pct=pct(part),
            benchmark_pct=pct(beside[month]) if month in beside else None,
        )
        for month, part in monthly(grown).items()
    )


def _points(stands: AccountStanding, held: Grown, count: int) -> tuple[PerformancePoint, ...]:
    grown, falls = stands.grown, drawdowns(stands.grown)
    return tuple(
        PerformancePoint(
            session=day,
            return_pct=pct(grown[day] - ONE),
            benchmark_pct=pct(held[day] - ONE) if day in held else None,
            drawdown_pct=pct(falls[day]),
            exposure_pct=close.exposure_pct.quantize(PCT_STEP),
        )
        for close in picked(stands.closes, count)
        for day in [close.session]
    )


def _newest_first(trip: Trip) -> tuple[bool, int, str]:
    """Open ones first, then the ones closed last."""
    ended = trip.closed or trip.opened
    return trip.closed is not None, -ended.toordinal(), trip.ticker


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
        win_rate_pct=rounded(of.win_rate_pct),
        mean_win=rounded(of.mean_win, CENT),
        mean_loss=rounded(of.mean_loss, CENT),
        best=of.best,
        worst=of.worst,
        profit_factor=rounded(of.profit_factor),
        sessions_held=rounded(Decimal(sum(closed)) / len(closed) if closed else None),
        fees=sum((trip.fees for trip in trips), Decimal(0)),
        turnover=(stands.traded / mean / years).quantize(PCT_STEP)
        if mean and len(days) > 1
        else None,
        exposure_pct=rounded(sum(exposures, Decimal(0)) / len(exposures) if exposures else None),
    )
