"""A replay of the schedule: the equity that is shown while it runs, and what is refused."""

from datetime import UTC, date, datetime
from decimal import Decimal
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from contracts.account import Portfolio
from contracts.account_query import AccountQuery, AccountView
from contracts.schedule import JobAnswer, JobRun, JobView, ScheduleView
from contracts.subjects.schedule import RUN_JOB
from contracts.subjects.schedule import SCHEDULE as SCHEDULE_QUERY
from contracts.types import Money
from libs.bus.client import DeskNotReachable
from libs.market.calendar import exchange_calendar
from services.cli.shell import slots
from services.cli.shell.problem import CliProblem, ExitCode
from services.cli.shell.slots import REPLAY_HINT, RunningEquity, Slots, slots_of

JOBS = [
    JobView(name="decide", kind="decision", when=("close",), accounts=("main", "new"), missed="run")
]


class Books:
    """A desk whose account main gains a dollar whenever it is asked for."""

    def __init__(self) -> None:
        self.asked = 0

    async def ask(self, _row: Any, query: AccountQuery) -> AccountView:
        if query.account != "main":
            return AccountView(found=False)
        self.asked += 1
        money = Money(amount=Decimal(100_000 + self.asked))
        books = Portfolio(
            cycle_id=UUID(int=0),
            op_id=UUID(int=0),
            as_of=date(2012, 6, 29),
            account="main",
            cash=money,
            equity=money,
        )
        return AccountView(portfolio=books)


class Clock:
    """Seconds as the test wants them."""

    now_s = 100.0

    def monotonic(self) -> float:
        return self.now_s


async def test_the_running_equity_is_that_of_the_jobs_open_accounts_asked_for_once_a_second(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock, books = Clock(), Books()
    monkeypatch.setattr(slots, "time", clock)
    desk: Any = books
    equity = RunningEquity(desk, JOBS)

    assert [await equity.of("decide") for _ in range(840)] == [", main 100,001 USD"] * 840
    clock.now_s += 1
    assert await equity.of("decide") == ", main 100,002 USD"
    assert books.asked == 2


async def test_a_console_that_is_away_for_a_moment_ends_no_replay(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock, books = Clock(), Books()
    monkeypatch.setattr(slots, "time", clock)
    desk: Any = books
    equity = RunningEquity(desk, JOBS)
    shown = await equity.of("decide")

    async def away(_row: Any, _query: AccountQuery) -> AccountView:
        raise DeskNotReachable("console did not answer")

    monkeypatch.setattr(books, "ask", away)
    clock.now_s += 1
    assert await equity.of("decide") == shown


@pytest.mark.parametrize(
    ("as_of", "hint"),
    [
        (date(2012, 3, 1), REPLAY_HINT),
        (date(2012, 6, 29), ""),
    ],
)
async def test_a_run_that_its_account_has_passed_is_refused_with_commands_that_replay_it(
    as_of: date, hint: str
) -> None:
    at = datetime(2012, 3, 1, 21, tzinfo=UTC)
    run = JobRun(job="decide", slot=at, session=as_of, as_of=as_of, outcome="rejected", reason="no")
    books = Books()

    async def ask(row: Any, query: Any) -> Any:
        if row is RUN_JOB:
            return JobAnswer(outcome="accepted", run=run)
        if row is SCHEDULE_QUERY:
            return ScheduleView(clock="replay", exchange="XNYS", zone="UTC", jobs=tuple(JOBS))
        return await books.ask(row, query)

    desk: Any = SimpleNamespace(ask=ask)
    with pytest.raises(CliProblem) as problem:
        await Slots(desk).asked("decide", at)

    assert problem.value.code is ExitCode.REJECTED
    assert str(problem.value) == f"the desk refused decide of {as_of}: no"
    assert problem.value.hint == hint


def test_sessions_are_those_of_the_calendar_however_far_the_dates_lie() -> None:
    calendar = exchange_calendar()
    sessions = [slot.session for _, slot in slots_of(JOBS, calendar, date.min, date(1990, 1, 5))]
    assert sessions == list(calendar.sessions(date(1990, 1, 1), date(1990, 1, 5)))
    assert not list(slots_of(JOBS, calendar, date(9999, 1, 1), date.max))
