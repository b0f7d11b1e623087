"""The leaderboard's counts: of an account with too many entries none is shown as if it had none."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from contracts.leaderboard import LeaderboardRow
from contracts.stages import Substitute, Why
from services.console.views import standings as views
from services.console.views.board import counted
from services.console.views.board.counted import CountedSpan, Seat
from services.console.views.past_cycles import PastCycle, Run
from services.console.views.standings import Closed, Past, PastTrips

DAY = date(2012, 6, 29)
WON, LOST = Closed(DAY, "rules", Decimal(5)), Closed(DAY, "rules", Decimal(-1))
ROW = LeaderboardRow(name="rules", kind="pipeline", account="main")


def with_trips(**trips: Sequence[Closed] | None) -> LeaderboardRow:
    seat = Seat("rules@main", "rules", "main", accounts={*trips})
    return counted.with_counts(ROW, seat, CountedSpan(), past(**trips), {})


def past(**trips: Sequence[Closed] | None) -> Mapping[str, Past | None]:
    return {name: None if of is None else Past(of) for name, of in trips.items()}


def test_round_trips_of_all_accounts_of_a_row_are_counted() -> None:
    row = with_trips(main=[WON, LOST], rules=[WON])

    assert (row.closed, row.won) == (3, 2)
    assert counted.uncounted(past(main=[WON], rules=[])) == ""


def test_where_one_accounts_are_too_many_none_are_counted_and_the_board_says_so() -> None:
    row = with_trips(main=None, rules=[WON])

    assert (row.closed, row.won) == (0, 0)
    said = counted.uncounted(past(main=None, rules=[WON]))
    assert said == "round trips of main are not counted: over 50,000 entries each"


def test_decisions_with_a_fallback_are_left_out_and_counted() -> None:
    given = Substitute(stage="planner", by="claude", why=Why.SETTING)
    fallback = Substitute(stage="trader", by="rules", why=Why.FALLBACK, reason="timed_out")
    own = Run("rules", "rules", "main", "main", completed=True, picks=2, substitutes=(given,))
    other = replace(own, substitutes=(given, fallback))
    remembered = replace(own, substitutes=(replace_stage(fallback),))
    cycles = [PastCycle(UUID(int=n), DAY, (run,), None) for n, run in enumerate((own, other))]
    runs = [(cycle, cycle.runs[0]) for cycle in cycles]
    seat = Seat("rules@main", "rules", "main", accounts={"main"}, runs=runs)
    trips = [Closed(DAY, "rules", Decimal(5), UUID(int=n)) for n in (0, 1)]

    row = counted.with_counts(ROW, seat, CountedSpan(), past(main=trips), {})

    assert (row.decisions, row.fallbacks, row.picks) == (1, 1, 2)
    assert (row.closed, row.won) == (1, 1)
    assert row.substitutes == (given,)
    assert not remembered.fell_back, "a memory is written after the decision"


def replace_stage(fallback: Substitute) -> Substitute:
    return fallback.model_copy(update={"stage": "memory"})


class Ledgers:
    """A store of ledgers with so many entries each, and how often each was read."""

    def __init__(self, **entries: int) -> None:
        self.entries = entries
        self.asked = 0
        self.closed = DAY
        self.read: Counter[str] = Counter()

    async def newest_entries(
        self, accounts: Sequence[str]
    ) -> Mapping[str, tuple[int, date | None]]:
        self.asked += 1
        return {name: (self.entries[name], self.closed) for name in accounts if self.entries[name]}

    async def snapshots(self, accounts: Sequence[str]) -> Sequence[Any]:
        (account,) = accounts
        names = ("cash", "positions", "paid_in", "realised", "unrealised", "dividends", "fees")
        close = dict.fromkeys((*names, "paid_in_now"), Decimal(0))
        known = {"account": account, "session": self.closed}
        return [{**known, "closes": "[]", **close}] if self.entries[account] else []

    async def moves(self, accounts: Sequence[str], limit: int) -> Sequence[Any]:
        (account,) = accounts
        self.read[account] += 1
        bought = {"session": DAY, "ticker": "AAPL", "quantity": 1, "cost": 1, "cycle_id": None}
        nothing = dict.fromkeys(("realised", "dividends", "fees", "traded"), Decimal(0))
        return [{**bought, **nothing, "account": account, "is_split": False}] * min(
            self.entries[account], limit
        )


async def test_one_question_tells_which_ledgers_have_grown_and_only_those_are_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(views, "MOVES_MAX", 3)
    store = Ledgers(main=2, long=4, empty=0)
    kept = PastTrips(store)  # type: ignore[arg-type]

    first = await kept.of(["empty", "long", "main"])
    store.entries["main"] = 3
    second = await kept.of(["empty", "long", "main"])

    assert first == second == {"empty": Past(), "long": None, "main": Past([])}
    assert store.asked == 2
    assert store.read == {"long": 1, "main": 2}


async def test_a_new_close_is_a_reason_to_read_a_ledger_again() -> None:
    store = Ledgers(main=2)
    kept = PastTrips(store)  # type: ignore[arg-type]

    await kept.of(["main"])
    store.closed = date(2012, 7, 2)
    await kept.of(["main"])

    assert store.read == {"main": 2}, "what was filled at its open counts from now on"


def test_fills_after_the_boards_last_session_are_counted_as_not_counted() -> None:
    later = date(2012, 7, 2)

    assert counted.fills_after(DAY, [Past(fills=[DAY, later, later]), None]) == 2
    assert counted.fills_after(None, [Past(fills=[DAY])]) == 0
