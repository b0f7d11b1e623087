"""The leaderboard from what is on record: read the rows, let libs/quant compute, give the view."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal

from contracts.leaderboard import ROWS_MAX, LeaderboardQuery, LeaderboardRow, LeaderboardView
from contracts.types import Usage
from libs.postgres.pool import Record
from libs.quant import leaderboard as quant
from libs.quant.returns import Worth
from services.console.store import Store
from services.console.views.accounts import worth_of
from services.console.views.benchmark import CYCLES_MAX, History, held_since
from services.console.views.past_cycles import PastCycle, PastCycles, Run

CASH, HOLDING = "cash", "buy-and-hold"


@dataclass
class _Ran:
    """One pipeline in all its cycles."""

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
    held = await held_since(store, history, cycles, began, sessions)
    return view.model_copy(
        update={
            "rows": _ranked([*rows, *_beside(held.returns, sessions)])[:ROWS_MAX],
            "message": "; ".join(filter(None, (view.message, held.unknown))),
            "universe": held.tickers,
            "absent": held.absent,
        }
    )


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
    """The usage, picks and hits of a pipeline's decisions in the board's time."""

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
    """The rows to compare pipelines with; nothing where there is nothing to compare."""
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
