"""The leaderboard from what is on record: read the rows, let libs/quant compute, give the view."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from itertools import pairwise
from typing import Protocol

import orjson

from contracts.http import HoldingPoint, HoldingView
from contracts.leaderboard import ROWS_MAX, LeaderboardQuery, LeaderboardRow, LeaderboardView
from contracts.types import Usage
from libs.postgres.pool import Record
from libs.quant import leaderboard as quant
from libs.quant.returns import Worth
from services.console import logic
from services.console.store import Store
from services.console.views.accounts import worth_of
from services.console.views.past_cycles import PastCycle, PastCycles, Run

CYCLES_MAX = 1_000
"""Cycles looked at, the newest: four years of one a day. Earlier ones with `since` and `until`."""
CASH, HOLDING = "cash", "buy-and-hold"


class History(Protocol):
    """Closing prices over time."""

    @property
    def described(self) -> str:
        """Where the prices are from."""
        ...

    async def closes(self, ticker: str, first: date, last: date) -> quant.Closes:
        """The closes from `first` to `last`, adjusted up to it; empty where there are none."""
        ...


@dataclass
class _Ran:
    """What one pipeline did in all its cycles."""

    providers: set[str] = field(default_factory=set)
    accounts: set[str] = field(default_factory=set)
    days: list[date] = field(default_factory=list)
    decisions: list[quant.Decision] = field(default_factory=list)


async def board(
    query: LeaderboardQuery, *, past: PastCycles, store: Store, history: History
) -> LeaderboardView:
    """How the pipelines did, on the sessions that all compared ones have a return of."""
    first, last = query.since or date.min, query.until or date.max
    cycles = await past.newest(first, last, CYCLES_MAX)
    everybody = _ran(cycles)
    ran = {
        name: did
        for name, did in everybody.items()
        if not query.pipelines or name in query.pipelines
    }
    if not ran:
        known = f"; there are {', '.join(everybody)}" if everybody else ""
        these = " of these" if query.pipelines else ""
        return LeaderboardView(message=f"no decision cycle{these} has ended here{known}")
    accounts = sorted({account for did in ran.values() for account in did.accounts})
    # No return is anybody's before the first decision.
    decided = min(cycle.as_of for cycle in cycles)
    equity, currencies = _equity(await store.equity_of(accounts, decided, last))
    # All decisions for these accounts: whoever took one over ends another's turn.
    decisions = [decision for other in everybody.values() for decision in other.decisions]
    steered = quant.steered(sorted(decisions, key=lambda choice: choice.session), equity)
    returns = {name: steered.get(name, {}) for name in ran}
    compared = {name: returned for name, returned in returns.items() if returned}
    sessions = quant.common(compared.values())
    began = _began(sessions, equity)
    counted = await _counted(past, cycles, ran, began, sessions)
    rows = [_row(name, did, counted[name], returns[name], sessions) for name, did in ran.items()]
    view = LeaderboardView(
        first=began,
        last=sessions[-1] if sessions else None,
        sessions=len(sessions),
        currencies=currencies,
        market_source=history.described,
        message=_message(compared, sessions, len(cycles)),
    )
    held = await _held(store, history, cycles, began, sessions)
    return view.model_copy(
        update={
            "rows": _ranked([*rows, *_beside(held.returns, sessions)])[:ROWS_MAX],
            "universe": held.tickers,
            "absent": held.absent,
        }
    )


async def holding(
    account: str, points: int, *, past: PastCycles, store: Store, history: History
) -> HoldingView:
    """What holding would have brought the account, at the sessions that its equity is told of."""
    row = await store.account(account)
    if row is None:
        return HoldingView(found=False)
    equity = {
        snapshot["session"]: worth_of(snapshot) for snapshot in await store.snapshots(account)
    }
    if len(equity) < 2:
        return HoldingView(message="holding is compared from the account's second session on")
    opened, newest = min(equity), max(equity)
    cycles = await past.newest(date.min, newest, CYCLES_MAX)
    decided = _first_decision(cycles, account, opened)
    began = next((day for day in equity if decided is not None and day >= decided), None)
    sessions = [day for day in equity if began is not None and day > began]
    held = await _held(store, history, cycles, began if sessions else None, sessions)
    view = HoldingView(tickers=held.tickers, absent=held.absent)
    if began is None or not held.returns:
        text = "there is no holding to compare with before a decision has named priced candidates"
        return view.model_copy(update={"message": text})
    # Until the first decision the money waits.
    waited = {day: Decimal(1) for day in equity if day < began}
    held_from = [day for day in equity if day >= began]
    worth = waited | dict(zip(held_from, quant.curve(held.returns, sessions), strict=True))
    days = logic.picked([day for day in worth if day < row["as_of"]], points - 1)
    days = [*days, *(day for day in worth if day == row["as_of"])]
    money = _held_money(equity, worth)
    points_of = [HoldingPoint(session=day, worth=money[day]) for day in days]
    return view.model_copy(update={"points": tuple(points_of)})


def _held_money(
    equity: Mapping[date, Worth], growth: Mapping[date, Decimal]
) -> Mapping[date, Decimal]:
    """What the account's money would have become at this growth: paid in and taken out as it was.

    More may have been taken out than holding would have had: then nothing is left of it.
    """
    days = [day for day in sorted(equity) if day in growth]
    money = {day: equity[day].equity for day in days[:1]}
    for before, day in pairwise(days):
        flow = equity[day].paid_in - equity[before].paid_in
        money[day] = max(Decimal(0), money[before] + flow) * growth[day] / growth[before]
    return money


def _first_decision(cycles: Sequence[PastCycle], account: str, opened: date) -> date | None:
    """The session of the account's opening, where any decision had named candidates by then; else
    that of its own first decision."""
    if any(cycle.as_of <= opened for cycle in cycles):
        return opened
    own = (cycle.as_of for cycle in cycles if any(run.account == account for run in cycle.runs))
    return min(own, default=None)


def _ran(cycles: Sequence[PastCycle]) -> Mapping[str, _Ran]:
    """By pipeline."""
    ran: dict[str, _Ran] = {}
    for cycle in cycles:
        for run in cycle.runs:
            did = ran.setdefault(run.pipeline, _Ran())
            did.providers.add(run.provider)
            did.accounts.add(run.account)
            did.days.append(cycle.as_of)
            if run.completed:
                did.decisions.append(quant.Decision(cycle.as_of, run.pipeline, run.account))
    return ran


def _equity(
    rows: Sequence[Record],
) -> tuple[Mapping[str, Mapping[date, Worth]], tuple[str, ...]]:
    worth: dict[str, dict[date, Worth]] = {}
    for row in rows:
        worth.setdefault(row["account"], {})[row["session"]] = worth_of(row)
    return worth, tuple(sorted({row["currency"] for row in rows}))


def _began(sessions: Sequence[date], equity: Mapping[str, Mapping[date, Worth]]) -> date | None:
    """The close that the first of the sessions is compared with."""
    if not sessions:
        return None
    known = {day for closes in equity.values() for day in closes if day < sessions[0]}
    return max(known)


@dataclass
class _Counted:
    """What a pipeline used, picked and hit by decisions in the board's time."""

    usage: Usage = Usage()
    picks: int = 0
    vetoes: int = 0
    decisions: int = 0
    failed: int = 0
    traded: list[quant.Traded] = field(default_factory=list)

    def add(self, run: Run) -> None:
        """Count one cycle's run."""
        self.usage += run.usage
        self.picks += run.picks
        self.vetoes += run.vetoes
        self.decisions += run.completed
        self.failed += not run.completed


async def _counted(
    past: PastCycles,
    cycles: Sequence[PastCycle],
    ran: Mapping[str, _Ran],
    began: date | None,
    sessions: Sequence[date],
) -> Mapping[str, _Counted]:
    """Of the decisions whose sessions are counted; of all where no session is."""
    last = sessions[-1] if sessions else None
    counted = {name: _Counted() for name in ran}
    inside = {
        (cycle.cycle_id, run.pipeline): run
        for cycle in cycles
        if _is_inside(cycle.as_of, began, last)
        for run in cycle.runs
        if run.pipeline in ran
    }
    for run in inside.values():
        counted[run.pipeline].add(run)
    accounts = sorted({account for did in ran.values() for account in did.accounts})
    since = began or min(day for did in ran.values() for day in did.days)
    # A cycle leaves each account a memory at most, so no outcome of these cycles is left out.
    outcomes = await past.outcomes(accounts, since, CYCLES_MAX * len(accounts))
    once = {(it.cycle_id, it.pipeline, it.ticker, it.action): it for it in outcomes}
    for outcome in once.values():
        if (outcome.cycle_id, outcome.pipeline) in inside:
            traded = quant.Traded(outcome.return_pct, sold=outcome.action == "sell")
            counted[outcome.pipeline].traded.append(traded)
    return counted


def _is_inside(day: date, began: date | None, last: date | None) -> bool:
    return began is None or last is None or began <= day < last


def _row(
    name: str, ran: _Ran, counted: _Counted, returns: quant.Returns, sessions: Sequence[date]
) -> LeaderboardRow:
    worth = quant.curve(returns, sessions) if returns and sessions else None
    return LeaderboardRow(
        name=name,
        kind="pipeline",
        providers=tuple(sorted(ran.providers)),
        accounts=tuple(sorted(ran.accounts)),
        return_pct=quant.return_pct(worth) if worth else None,
        max_drawdown_pct=quant.max_drawdown_pct(worth) if worth else None,
        hits=quant.hits(counted.traded),
        judged=len(counted.traded),
        picks=counted.picks,
        vetoes=counted.vetoes,
        decisions=counted.decisions,
        failed=counted.failed,
        usage=counted.usage,
    )


def _beside(held: quant.Returns, sessions: Sequence[date]) -> Sequence[LeaderboardRow]:
    """What the pipelines are compared with; nothing where there is nothing to compare."""
    if not sessions:
        return ()
    cash = LeaderboardRow(
        name=CASH, kind="cash", return_pct=Decimal(0), max_drawdown_pct=Decimal(0)
    )
    if not held:
        return (cash,)
    worth = quant.curve(held, sessions)
    return (
        cash,
        LeaderboardRow(
            name=HOLDING,
            kind="buy_and_hold",
            return_pct=quant.return_pct(worth),
            max_drawdown_pct=quant.max_drawdown_pct(worth),
        ),
    )


@dataclass(frozen=True)
class _Held:
    """Equal parts of all candidates of the board's first decision."""

    returns: quant.Returns = field(default_factory=dict)
    tickers: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()


async def _held(
    store: Store,
    history: History,
    cycles: Sequence[PastCycle],
    began: date | None,
    sessions: Sequence[date],
) -> _Held:
    if began is None:
        return _Held()
    offered = await _candidates(store, [cycle for cycle in cycles if cycle.as_of <= began])
    closes = {name: await history.closes(name, began, sessions[-1]) for name in offered}
    bought = tuple(name for name in offered if began in closes[name])
    return _Held(
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


def _ranked(rows: Sequence[LeaderboardRow]) -> tuple[LeaderboardRow, ...]:
    """The best return first; who has none last."""

    def key(row: LeaderboardRow) -> tuple[bool, Decimal, str]:
        return row.return_pct is None, -(row.return_pct or Decimal(0)), row.name

    return tuple(sorted(rows, key=key))


def _message(compared: Mapping[str, quant.Returns], sessions: Sequence[date], cycles: int) -> str:
    parts = []
    if not compared:
        parts.append(
            "no session has passed since the first decision: an account's close is known once a "
            "later cycle has moved its clock on"
        )
    elif not sessions:
        names = ", ".join(sorted(compared))
        parts.append(f"{names} have no session in common; choose some with --pipeline")
    if cycles == CYCLES_MAX:
        parts.append(
            f"only the newest {CYCLES_MAX:,} cycles were looked at; earlier ones with --until"
        )
    return "; ".join(parts)
