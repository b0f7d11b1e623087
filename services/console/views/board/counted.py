"""The counts of a row of the leaderboard: what its decisions cost and how its picks went."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date

from contracts.leaderboard import LeaderboardRow
from contracts.types import Usage
from libs.quant import leaderboard as quant
from services.console.views.benchmark import CYCLES_MAX
from services.console.views.past_cycles import PastCycle, PastCycles, Run
from services.console.views.standings import MOVES_MAX, Past


@dataclass(frozen=True)
class CountedSpan:
    """From the close of `began` to the close of `last`; both None where all time counts."""

    began: date | None = None
    last: date | None = None

    def decides(self, day: date) -> bool:
        """Whether a decision of this day steers a session of the span."""
        return self.began is None or self.last is None or self.began <= day < self.last

    def ends(self, day: date) -> bool:
        """Whether what ended at this session ended in the span."""
        return self.began is None or self.last is None or self.began < day <= self.last


@dataclass
class Seat:
    """A pipeline on one account, in all its cycles; `accounts` are those it decided for."""

    key: str
    pipeline: str
    account: str
    providers: set[str] = field(default_factory=set)
    accounts: set[str] = field(default_factory=set)
    runs: list[tuple[PastCycle, Run]] = field(default_factory=list)


def seats(cycles: Sequence[PastCycle]) -> Mapping[str, Seat]:
    """By key."""
    by_key: dict[str, Seat] = {}
    for cycle in cycles:
        for run in cycle.runs:
            seat = by_key.setdefault(run.key, Seat(run.key, run.pipeline, run.seat))
            seat.providers.add(run.provider)
            seat.accounts.add(run.account)
            seat.runs.append((cycle, run))
    return by_key


async def outcomes(
    past: PastCycles, sat: Sequence[Seat]
) -> Mapping[tuple[object, str], Sequence[quant.Traded]]:
    """The known outcomes of filled picks, by the cycle and the pipeline that picked."""
    accounts = sorted({account for seat in sat for account in seat.accounts})
    since = min(cycle.as_of for seat in sat for cycle, _ in seat.runs)
    # A cycle leaves each account a memory at most, so no outcome of these cycles is left out.
    read = await past.outcomes(accounts, since, CYCLES_MAX)
    once = {(it.cycle_id, it.pipeline, it.ticker, it.action): it for it in read}
    by_run: dict[tuple[object, str], list[quant.Traded]] = {}
    for it in once.values():
        traded = quant.Traded(it.return_pct, sold=it.action == "sell")
        by_run.setdefault((it.cycle_id, it.pipeline), []).append(traded)
    return by_run


def uncounted(trips: Mapping[str, Past | None]) -> str:
    """The accounts whose round trips no row counts, and why; empty where there are none."""
    long = [account for account, past in trips.items() if past is None]
    if not long:
        return ""
    return f"round trips of {', '.join(long)} are not counted: over {MOVES_MAX:,} entries each"


def fills_after(last: date | None, past: Iterable[Past | None]) -> int:
    """The fills of accounts at sessions after `last`; 0 where nothing is counted yet."""
    fills = (day for it in past if it is not None for day in it.fills)
    return 0 if last is None else sum(day > last for day in fills)


def with_counts(
    row: LeaderboardRow,
    seat: Seat,
    span: CountedSpan,
    trips: Mapping[str, Past | None],
    known: Mapping[tuple[object, str], Sequence[quant.Traded]],
) -> LeaderboardRow:
    """The row with what is counted of the seat in the span."""
    all_inside = [(cycle, run) for cycle, run in seat.runs if span.decides(cycle.as_of)]
    # A decision with a fallback is not the pipeline's own: of it only the cost is counted.
    inside = [(cycle, run) for cycle, run in all_inside if not run.fell_back]
    others = {cycle.cycle_id for cycle, run in seat.runs if run.fell_back}
    traded = [it for cycle, run in inside for it in known.get((cycle.cycle_id, run.pipeline), ())]
    of_seat = [trips[account] for account in sorted(seat.accounts)]
    # A part of them would be a wrong number: where one account's are not counted, none are.
    ended = [
        trip
        for past in (() if None in of_seat else of_seat)
        for trip in (past.trips if past else ())
        if trip.pipeline == seat.pipeline and trip.cycle_id not in others and span.ends(trip.on)
    ]
    return row.model_copy(
        update={
            "hits": quant.hits(traded),
            "judged": len(traded),
            "closed": len(ended),
            "won": sum(trip.gain > 0 for trip in ended),
            "picks": sum(run.picks for _, run in inside),
            "vetoes": sum(run.vetoes for _, run in inside),
            "decisions": sum(run.completed for _, run in inside),
            "failed": sum(not run.completed for _, run in inside),
            "fallbacks": len(all_inside) - len(inside),
            "substitutes": tuple(dict.fromkeys(it for _, run in inside for it in run.set_stages)),
            "usage": sum((run.usage for _, run in all_inside), Usage()),
        }
    )
