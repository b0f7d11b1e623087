"""The leaderboard from what is on record: read the rows, let libs/quant compute, give the view."""

from collections.abc import Collection, Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import TypeVar

import numpy as np

from contracts.leaderboard import (
    CURVE_POINTS_MAX,
    ROWS_MAX,
    LeaderboardQuery,
    LeaderboardRow,
    LeaderboardView,
)
from libs.facts import amounts
from libs.postgres.pool import Record
from libs.quant import leaderboard as quant
from libs.quant.returns import AccountWorth
from libs.quant.strategy import performance as figures
from services.console import logic
from services.console.store import Store, sql
from services.console.views.benchmark import CYCLES_MAX, held_since
from services.console.views.board import counted
from services.console.views.board.counted import CountedSpan, Seat
from services.console.views.desk import DeskViews
from services.console.views.past_cycles import PastCycle
from services.console.views.summaries import THROW_AWAY

CASH, HOLDING = "cash", "buy-and-hold"
FALLBACK = "fallback"
"""Whose the sessions after a decision with a fallback are: no row's."""

T = TypeVar("T")


async def board(query: LeaderboardQuery, desk: DeskViews) -> LeaderboardView:
    """How the pipelines did, on the sessions that all compared ones have a return of."""
    store, past, history = desk.store, desk.past, desk.history
    first, last = query.since or date.min, query.until or date.max
    cycles = await past.newest(first, last, CYCLES_MAX)
    everybody = counted.seats(cycles)
    chosen = _chosen(query, everybody)
    if not chosen:
        return LeaderboardView(message=_nobody(query, everybody))
    sat = chosen if _is_named(query) or query.everything else await _lasting(store, chosen)
    accounts = sorted({account for seat in sat for account in seat.accounts})
    # No return is anybody's before the first decision.
    decided = min(cycle.as_of for cycle in cycles)
    equity, currencies = _equity(
        await store.rows(sql.equity_of_accounts, list(accounts), decided, last)
    )
    steered = quant.steered(_decisions(cycles), equity)
    returns = {seat.key: steered.get(seat.key, {}) for seat in sat}
    known = {key: returned for key, returned in returns.items() if returned}
    compared = frozenset(known) if _is_named(query) else quant.alongside(known)
    sessions = quant.common(known[key] for key in compared)
    span = CountedSpan(_began(sessions, equity), sessions[-1] if sessions else None)
    outcomes, trips = await counted.outcomes(past, sat), await past.trips(accounts)
    rows = []
    for seat in sat:
        is_compared = seat.key in compared
        days = sessions if is_compared else sorted(returns[seat.key])
        row = _row(seat, returns[seat.key], days, is_compared=is_compared or not days)
        # Of a row that is not compared all decisions count: the board's time is not its own.
        its = span if is_compared else CountedSpan()
        rows.append(counted.with_counts(row, seat, its, trips, outcomes))
    ranked = {account for seat in sat if seat.key in compared for account in seat.accounts}
    held = await held_since(store, history, cycles, span.began, sessions)
    message = _message(compared, rows, sessions, len(cycles))
    whole = _ranked([*rows, *_beside(held.returns, sessions)])
    return LeaderboardView(
        first=span.began,
        last=span.last,
        sessions=len(sessions),
        fills_after=counted.fills_after(span.last, (trips[account] for account in ranked)),
        rows=whole[:ROWS_MAX],
        days=() if span.began is None else tuple(_thinned([span.began, *sessions])),
        hidden=len(chosen) - len(sat),
        universe=held.tickers,
        absent=held.absent,
        currencies=currencies,
        market_source=history.described,
        message="; ".join(
            filter(None, (message, _left_out(whole), counted.uncounted(trips), held.unknown))
        ),
    )


def _left_out(rows: Sequence[LeaderboardRow]) -> str:
    more = len(rows) - ROWS_MAX
    return f"{amounts.count(more, 'more row')} not shown: name those you want" if more > 0 else ""


def _is_named(query: LeaderboardQuery) -> bool:
    return bool(query.pipelines or query.rows)


def _chosen(query: LeaderboardQuery, everybody: Mapping[str, Seat]) -> Sequence[Seat]:
    """Those that the query asks for, shown or not."""
    if not _is_named(query):
        return tuple(everybody.values())
    return tuple(
        seat
        for seat in everybody.values()
        if seat.key in query.rows or seat.pipeline in query.pipelines
    )


def _nobody(query: LeaderboardQuery, everybody: Mapping[str, Seat]) -> str:
    if not everybody or not _is_named(query):
        return "no decision cycle has ended here"
    names = everybody if query.rows else dict.fromkeys(it.pipeline for it in everybody.values())
    return f"no decision cycle of these has ended here; there are {', '.join(names)}"


async def _lasting(store: Store, seats: Sequence[Seat]) -> Sequence[Seat]:
    """Without throw-away accounts and those that never held a share; all where that leaves none."""
    accounts = sorted({account for seat in seats for account in seat.accounts})
    traded = await store.traded_among(accounts)
    kept = [
        seat
        for seat in seats
        if not THROW_AWAY.fullmatch(seat.account) and not traded.isdisjoint(seat.accounts)
    ]
    return kept or seats


def _decisions(cycles: Sequence[PastCycle]) -> Sequence[quant.Decision]:
    """All of them in their order of time: whoever took an account over ended another's turn."""
    return sorted(
        (
            quant.Decision(cycle.as_of, FALLBACK if run.fell_back else run.key, run.account)
            for cycle in cycles
            for run in cycle.runs
            if run.completed
        ),
        key=lambda choice: choice.session,
    )


def _equity(
    rows: Sequence[Record],
) -> tuple[Mapping[str, Mapping[date, AccountWorth]], tuple[str, ...]]:
    worth: dict[str, dict[date, AccountWorth]] = {}
    for row in rows:
        worth.setdefault(row["account"], {})[row["session"]] = AccountWorth(
            row["equity"], row["paid_in"]
        )
    return worth, tuple(sorted({row["currency"] for row in rows}))


def _began(
    sessions: Sequence[date], equity: Mapping[str, Mapping[date, AccountWorth]]
) -> date | None:
    """The close that the first of the sessions is compared with."""
    if not sessions:
        return None
    known = {day for closes in equity.values() for day in closes if day < sessions[0]}
    return max(known)


def _row(
    seat: Seat, returns: quant.Returns, days: Sequence[date], *, is_compared: bool
) -> LeaderboardRow:
    row = LeaderboardRow(
        name=seat.pipeline,
        kind="pipeline",
        providers=tuple(sorted(seat.providers)),
        account=seat.account,
        accounts=tuple(sorted(seat.accounts)),
        compared=is_compared,
    )
    return _with_figures(row, returns, days) if returns and days else row


def _with_figures(
    row: LeaderboardRow, returns: quant.Returns, days: Sequence[date]
) -> LeaderboardRow:
    worth = quant.curve(returns, days)
    sharpe = float(figures.sharpe_ratio(np.array([float(returns[day]) for day in days])))
    return row.model_copy(
        update={
            "sessions": len(days),
            "return_pct": quant.return_pct(worth),
            "sharpe": logic.ratio(sharpe),
            "max_drawdown_pct": quant.max_drawdown_pct(worth),
            "curve": tuple(value.quantize(logic.PCT_STEP) for value in _thinned(worth)),
        }
    )


def _thinned(of_each: Sequence[T]) -> Sequence[T]:
    """The same places of any two lists of one length, so that days and values stay together."""
    return logic.picked(of_each, CURVE_POINTS_MAX)


def _beside(held: quant.Returns, sessions: Sequence[date]) -> Sequence[LeaderboardRow]:
    """The rows to compare pipelines with; nothing where there is nothing to compare."""
    if not sessions:
        return ()
    cash = LeaderboardRow(
        name=CASH,
        kind="cash",
        sessions=len(sessions),
        return_pct=Decimal(0),
        max_drawdown_pct=Decimal(0),
    )
    if not held:
        return (cash,)
    return cash, _with_figures(LeaderboardRow(name=HOLDING, kind="buy_and_hold"), held, sessions)


def _ranked(rows: Sequence[LeaderboardRow]) -> tuple[LeaderboardRow, ...]:
    """The best return first; who is not compared after them, who has none last."""

    def key(row: LeaderboardRow) -> tuple[bool, bool, Decimal, str]:
        return row.return_pct is None, not row.compared, -(row.return_pct or Decimal(0)), row.key

    return tuple(sorted(rows, key=key))


def _message(
    compared: Collection[str],
    rows: Sequence[LeaderboardRow],
    sessions: Sequence[date],
    cycles: int,
) -> str:
    parts = []
    if not compared:
        parts.append(
            "no session has passed since the first decision: an account's close is known once a "
            "later cycle has moved its clock on"
        )
    elif not sessions:
        names = ", ".join(sorted(compared))
        parts.append(f"{names} have no session in common; choose some of them")
    apart = [row.key for row in rows if not row.compared]
    if apart:
        parts.append(
            f"not ranked, as too few sessions are shared with the others: {', '.join(apart)}"
        )
    if cycles == CYCLES_MAX:
        parts.append(
            f"only the newest {CYCLES_MAX:,} cycles were looked at; earlier ones with --until"
        )
    return "; ".join(parts)
