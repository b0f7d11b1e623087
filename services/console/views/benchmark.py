"""The benchmark of an account over its own sessions: shares bought once, or cash."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from itertools import pairwise

import orjson

from contracts.http import HoldingPoint, HoldingView
from contracts.performance import CANDIDATES, CASH
from libs.facts import amounts
from libs.market.errors import MarketError
from libs.quant import leaderboard as quant
from libs.quant.returns import ONE, AccountWorth
from services.console import logic
from services.console.market_history import MarketHistory
from services.console.store import Store
from services.console.views.desk import DeskViews
from services.console.views.past_cycles import PastCycle
from services.console.views.standings import close_of

CYCLES_MAX = 1_000
"""Cycles looked at, the newest: four years of one a day. The leaderboard takes `since` and `until`
for earlier ones."""
UNKNOWN_CHARS = 300
TOO_FEW = "a benchmark is compared from the account's second session on"
NOT_BEGUN = "there is nothing to compare with before a decision has named priced candidates"


@dataclass(frozen=True)
class HeldBasket:
    """Equal parts of `tickers`, bought at one close and left alone; `absent` had no price then.

    `unknown` is why nobody can say: prices could not be read, which is not the same as none.
    """

    returns: quant.Returns = field(default_factory=dict)
    tickers: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    unknown: str = ""


@dataclass(frozen=True)
class GrowthLine:
    """The growth of 1 by each of an account's closes; empty where `message` says why."""

    grown: Mapping[date, Decimal] = field(default_factory=dict)
    tickers: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    message: str = ""


async def line(
    benchmark: str,
    account: str,
    sessions: Sequence[date],
    desk: DeskViews,
) -> GrowthLine:
    """The benchmark of an account over its sessions, oldest first."""
    if len(sessions) < 2:
        return GrowthLine(message=TOO_FEW)
    opened, newest = sessions[0], sessions[-1]
    if benchmark == CASH:
        return GrowthLine(dict.fromkeys(sessions, ONE))
    if benchmark != CANDIDATES:
        held = await _left_alone([benchmark.upper()], opened, sessions[1:], desk.history)
        if not held.returns:
            why = f"there is no price of {benchmark.upper()} at {opened}: {desk.history.described}"
            return GrowthLine(absent=held.absent, message=held.unknown or why)
        return _from(opened, sessions, held)
    cycles = await desk.past.newest(date.min, newest, CYCLES_MAX)
    decided = _first_decision(cycles, account, opened)
    began = next((day for day in sessions if decided is not None and day >= decided), None)
    later = [day for day in sessions if began is not None and day > began]
    held = await held_since(desk.store, desk.history, cycles, began if later else None, later)
    if began is None or not held.returns:
        return GrowthLine(
            tickers=held.tickers, absent=held.absent, message=held.unknown or NOT_BEGUN
        )
    return _from(began, sessions, held)


def _from(began: date, sessions: Sequence[date], held: HeldBasket) -> GrowthLine:
    """Until `began` the money waits."""
    waited = {day: ONE for day in sessions if day < began}
    later = [day for day in sessions if day > began]
    curve = quant.curve(held.returns, later)
    grown = waited | dict(zip([began, *later], curve, strict=True))
    return GrowthLine(grown, held.tickers, held.absent)


async def holding(account: str, points: int, desk: DeskViews) -> HoldingView:
    """The worth of the account had it held, at the sessions that its equity is told of."""
    if await desk.store.account(account) is None:
        return HoldingView(found=False)
    equity = {row["session"]: close_of(row).worth for row in await desk.store.snapshots([account])}
    held = await line(CANDIDATES, account, list(equity), desk)
    view = HoldingView(tickers=held.tickers, absent=held.absent, message=held.message)
    if not held.grown:
        return view
    money = _money(equity, held.grown)
    days = logic.picked(list(held.grown), points)
    points_of = [HoldingPoint(session=day, worth=money[day]) for day in days]
    return view.model_copy(update={"points": tuple(points_of)})


def _money(
    equity: Mapping[date, AccountWorth], grown: Mapping[date, Decimal]
) -> Mapping[date, Decimal]:
    """The account's money at this growth: paid in and taken out as it was.

    More may have been taken out than holding would have had: then nothing is left of it.
    """
    days = [day for day in sorted(equity) if day in grown]
    money = {day: equity[day].equity for day in days[:1]}
    for before, day in pairwise(days):
        flow = equity[day].paid_in - equity[before].paid_in
        money[day] = max(Decimal(0), money[before] + flow) * grown[day] / grown[before]
    return money


def _first_decision(cycles: Sequence[PastCycle], account: str, opened: date) -> date | None:
    """The session of the account's opening, where any decision had named candidates by then; else
    that of its own first decision."""
    if any(cycle.as_of <= opened for cycle in cycles):
        return opened
    own = (cycle.as_of for cycle in cycles if any(run.account == account for run in cycle.runs))
    return min(own, default=None)


async def held_since(
    store: Store,
    history: MarketHistory,
    cycles: Sequence[PastCycle],
    began: date | None,
    sessions: Sequence[date],
) -> HeldBasket:
    """Equal parts of the candidates that the newest decision up to `began` named, over the later
    sessions."""
    if began is None:
        return HeldBasket()
    offered = await _candidates(store, [cycle for cycle in cycles if cycle.as_of <= began])
    return await _left_alone(offered, began, sessions, history)


async def _left_alone(
    offered: Sequence[str], began: date, sessions: Sequence[date], history: MarketHistory
) -> HeldBasket:
    try:
        closes = {name: await history.closes(name, began, sessions[-1]) for name in offered}
    except MarketError as error:
        return HeldBasket(unknown=amounts.cut(f"prices could not be read: {error}", UNKNOWN_CHARS))
    bought = tuple(name for name in offered if began in closes[name])
    return HeldBasket(
        returns=quant.buy_and_hold(closes, began, sessions),
        tickers=bought,
        absent=tuple(name for name in offered if name not in bought),
    )


async def _candidates(store: Store, cycles: Sequence[PastCycle]) -> Sequence[str]:
    """The candidates of the newest of these cycles that has a digest."""
    for cycle in reversed(cycles):
        if cycle.digest is not None:
            bodies = await store.contracts([cycle.digest])
            if cycle.digest in bodies:
                candidates = orjson.loads(bodies[cycle.digest])["candidates"]
                return [candidate["ticker"] for candidate in candidates]
    return ()
