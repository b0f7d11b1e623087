"""Runs studies: asks for their cells, one after the other. Every instance of the service has one.

A study's row says how many of its cells were asked for; a cell's key names its cycle. So however
many look, and whatever dies in between, a cell is one cycle.

Running a study again that has ended or was stopped begins another round, where cells failed for a
reason that can pass: such a cell is asked for under the key of that round, as another cycle in
new accounts. What was paid for is on record under its address, and is not paid again.

The live desk comes first. While a live cycle is at work no cell begins; the desk lets the further
commands of those in progress rest (services/orchestrator/schedulers/resting.py).
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import structlog
from pydantic import ValidationError

from contracts.cycle import CycleRequest, RequestAnswer
from contracts.study import (
    FREE_PROVIDERS,
    STUDIES_MAX,
    RunStudy,
    StopStudy,
    Study,
    StudyAnswer,
    StudyBudget,
    StudyKind,
    StudyStatus,
)
from contracts.subjects.subject import AGENTS
from contracts.types import shortened
from libs.market.errors import MarketError, NotASession, NothingTraded
from libs.market.sessions import Sessions
from libs.postgres.pool import Pool, Record
from libs.postgres.queries import Queries
from libs.runtime import ids
from libs.runtime.background import event_within
from libs.runtime.errors import DeskError
from libs.runtime.extras import ExtraMissing, require
from libs.runtime.settings import Settings
from libs.study.cells import caveats, designed
from libs.study.statistics.design import (
    NOTHING_SPENT,
    CellCosts,
    DesignCell,
    DesignError,
    file_field,
    request_of,
)

PAUSE_S = 0.01
"""Between two looks, however often something is committed."""
REASON_CHARS_MAX = 400
OF_THE_CELL = frozenset({"unknown_ticker", "no_history", "not_a_session"})
"""Refusals that speak of one cell's session: the others may begin all the same."""
CAN_PASS = (
    "account_exhausted",
    "budget_exhausted",
    "key_refused",
    "model_unknown",
    "poison",
    "provider_fault",
    "provider_not_usable",
    "provider_unavailable",
    "rate_limited",
    "source_unavailable",
    "sources_failed",
    "timed_out",
    "unavailable",
)
"""Failures of operations that the same question may not meet again: budgets, keys, outages, limits
of time. All else, such as a wrong answer, would come out the same from what is on record."""
CellKey = tuple[str, int, int]
"""Kind, number and sample."""

# Requests a cycle. Raises DeskNotReachable.
Ask = Callable[[CycleRequest], Awaitable[RequestAnswer]]

sql = Queries(Path(__file__).parent / "runner.sql")
log = structlog.get_logger()


@dataclass(frozen=True)
class Round:
    """A way through all cells of a study. Those that are `settled` it leaves as they are; `spent`
    is what others cost before it."""

    sha256: str = ""
    number: int = 1
    cells: Sequence[DesignCell] = ()
    settled: frozenset[CellKey] = frozenset()
    spent: Mapping[CellKey, CellCosts] = field(default_factory=dict)

    def next_from(self, place: int) -> int:
        """The place of the first cell from `place` on that is to be asked for; past the end where
        none is."""
        places = range(place, len(self.cells))
        left = (at for at in places if _key(self.cells[at]) not in self.settled)
        return next(left, len(self.cells))


class Studies:
    """Begins, stops and runs studies. `wake` after a commit that freed the desk of a cycle; `run`
    in one task."""

    def __init__(self, pool: Pool, ask: Ask, sessions: Sessions, settings: Settings) -> None:
        self._pool = pool
        self._ask = ask
        self._sessions = sessions
        self._settings = settings
        self._woken = asyncio.Event()
        self._at_work = True
        self._round = Round()

    def wake(self) -> None:
        """A cycle is no longer at work: a cell may begin."""
        if self._at_work:
            self._woken.set()

    async def run(self) -> None:
        """Ask for cells until cancelled."""
        while True:
            self._woken.clear()
            try:
                while await self._step():
                    pass
            except (DeskError, ValidationError) as error:
                # What cannot be read is of a later version, whose instances go on with it.
                log.warning("study.interrupted", error=f"{type(error).__name__}: {error}"[:400])
            await event_within(self._woken, self._settings.orchestrator.sweep_s)
            await asyncio.sleep(PAUSE_S)

    # --- what people ask ----------------------------------------------------------------------

    async def begin(self, caller: str, wish: RunStudy) -> StudyAnswer:
        """Begin a study or go on with it, as a person asks; returns the answer."""
        row = await self._pool.fetchrow(sql.of_name, wish.study.name)
        if caller in AGENTS and (why := _for_a_person(wish.study, row)):
            return _no("for_a_person", why, "budget")
        return await (self._new(caller, wish) if row is None else self._go_on(wish, row))

    async def _new(self, caller: str, wish: RunStudy) -> StudyAnswer:
        study, settings = wish.study, self._settings
        try:
            cells = await designed(study, self._sessions)
        except DesignError as error:
            return _no("invalid", str(error), error.field)
        except MarketError as error:
            return _no(error.code, error.message, "dates")
        if (rejection := await self._hindered(study, cells)) is not None:
            return rejection
        dates = tuple(dict.fromkeys(cell.as_of for cell in cells))
        last, calendar = await self._sessions.latest(), self._sessions.calendar
        notes = tuple(caveats(study, settings, dates, calendar, last))
        if wish.dry_run:
            return StudyAnswer(outcome="accepted", notes=notes)
        study_id, body = ids.study_id(study.name), study.model_dump_json().encode()
        await self._pool.execute(
            sql.begin, study_id, study.name, study.sha256, body, wish.offline, len(cells)
        )
        self._begun()
        log.info("study.begun", study=study.name, cells=len(cells), by=caller)
        running = StudyStatus.RUNNING
        return StudyAnswer(outcome="accepted", changed=True, status=running, notes=notes)

    async def stop(self, caller: str, wish: StopStudy) -> StudyAnswer:
        """Let a study rest, as a person asks; returns the answer."""
        row = await self._pool.fetchrow(sql.of_name, wish.name)
        if row is None:
            return _no("not_found", f"no study is named {wish.name!r}", "name")
        reason = wish.reason or f"stopped by {caller}"
        status = await self._pool.execute(sql.stop, wish.name, reason)
        changed = not status.endswith(" 0")
        now = StudyStatus.STOPPED if changed else StudyStatus(row["status"])
        return StudyAnswer(outcome="accepted", changed=changed, status=now)

    async def _go_on(self, wish: RunStudy, row: Record) -> StudyAnswer:
        study = wish.study
        if row["sha256"] != study.sha256:
            text = (
                f"{study.name} was started with another file: only its budget may change; give the "
                "new study another name"
            )
            return _no("changed_file", text, "name")
        body = study.model_dump_json().encode()
        before = StudyStatus(row["status"])
        if wish.dry_run:
            return StudyAnswer(outcome="accepted", status=before)
        if before is not StudyStatus.RUNNING and (failed := await self._failed_for_now(row)):
            return await self._try_again(wish, row, failed)
        await self._pool.execute(sql.go_on, study.name, body, wish.offline)
        self._begun()
        if before is StudyStatus.STOPPED:
            return StudyAnswer(outcome="accepted", changed=True, status=StudyStatus.RUNNING)
        return StudyAnswer(outcome="accepted", status=before)

    async def _failed_for_now(self, row: Record) -> int:
        """How many cells failed for a reason that can pass; those that the desk would not begin
        are had again too."""
        rows = await self._pool.fetch(sql.before, row["name"], row["round"] + 1, CAN_PASS)
        refused: int = row["refused"] if row["status"] == StudyStatus.COMPLETED else 0
        return sum(bool(one["again"]) for one in rows) + refused

    async def _try_again(self, wish: RunStudy, row: Record, failed: int) -> StudyAnswer:
        """Begin a round more. Two orchestrators that are asked at once begin one."""
        study, is_path = wish.study, wish.study.kind is StudyKind.PATH
        body = study.model_dump_json().encode()
        done = await self._pool.execute(
            sql.try_again, study.name, body, wish.offline, row["round"], is_path
        )
        self._begun()
        what = "cell is tried" if failed == 1 else "cells are tried"
        text = f"{failed:,} {what} again"
        if is_path:
            text = f"{failed:,} failed, so its accounts start again"
        log.info("study.tried_again", study=study.name, cells=failed, round=row["round"] + 1)
        return StudyAnswer(
            outcome="accepted",
            changed=not done.endswith(" 0"),
            status=StudyStatus.RUNNING,
            message=f"{text}; recorded answers are not paid again",
        )

    def _begun(self) -> None:
        self._at_work = True
        self.wake()

    # --- cells --------------------------------------------------------------------------------

    async def _step(self) -> bool:
        """Whether a cell was asked for, and another may follow."""
        row = await self._pool.fetchrow(sql.standing)
        # Where none is at work, a cycle's end is no news.
        self._at_work = row is not None
        if row is None:
            return False
        study = Study.model_validate_json(row["body"])
        try:
            round_ = await self._round_of(study, row["round"])
        except (DesignError, NothingTraded, NotASession) as error:
            # The source has other sessions than when it began: others must not wait behind it.
            why = shortened(f"its cells are not what they were: {error}", REASON_CHARS_MAX)
            await self._give_up(study, why)
            return True
        place = round_.next_from(row["next_cell"])
        if place >= len(round_.cells):
            if not row["running"]:
                await self._pool.execute(sql.complete, study.name, row["round"])
                log.info("study.completed", study=study.name, cells=len(round_.cells))
            return not row["running"]
        side_by_side = 1 if study.kind is StudyKind.PATH else self._settings.study.cells_max
        if row["live"] or row["running"] >= side_by_side:
            return False
        if (short := await self._short(study, row)) is not None:
            if not row["running"]:
                await self._give_up(study, short)
            return not row["running"]
        return await self._asked(study, round_, place, row)

    async def _asked(self, study: Study, round_: Round, place: int, row: Record) -> bool:
        cell = round_.cells[place]
        request = request_of(
            study,
            cell,
            offline=row["offline"],
            round_=round_.number,
            spent=round_.spent.get(_key(cell), NOTHING_SPENT),
        )
        answer = await self._ask(request)
        if answer.code == "busy":
            return False
        # A cell that was asked for before its budget grew runs, or ran, with the smaller one.
        refused = answer.outcome == "rejected" and answer.code != "key_reused"
        why = shortened(f"{cell.as_of}: {answer.message}", REASON_CHARS_MAX) if refused else ""
        if refused and answer.code not in OF_THE_CELL:
            await self._give_up(study, why)
            return False
        if refused:
            log.warning("study.cell_refused", study=study.name, as_of=str(cell.as_of), why=why)
        await self._pool.execute(
            sql.asked, study.name, row["next_cell"], place + 1, int(refused), why, row["round"]
        )
        return True

    async def _give_up(self, study: Study, why: str) -> None:
        """Stop a study for want of something, until a person runs it again."""
        await self._pool.execute(sql.stop, study.name, why)
        log.warning("study.stopped", study=study.name, why=why)

    async def _short(self, study: Study, row: Record) -> str | None:
        """Why the study cannot pay for the most that a further cell may cost; None where it can."""
        budget = study.budget
        if row["offline"] or all(arm.provider in FREE_PROVIDERS for arm in study.arms):
            return None
        spent = await self._pool.fetchrow(sql.spent, study.name)
        coming = row["running"] + 1
        tokens = spent["tokens"] + coming * budget.cell_tokens
        cost = spent["cost_usd"] + coming * budget.cell_cost_usd
        if tokens <= budget.tokens and cost <= budget.cost_usd:
            return None
        return (
            f"its budget pays no further cell: {spent['tokens']:,} of {budget.tokens:,} tokens and "
            f"{spent['cost_usd']:.4f} of {budget.cost_usd:.2f} USD are spent, and a cell may need "
            f"{budget.cell_tokens:,} tokens and {budget.cell_cost_usd:.2f} USD; raise the budget "
            "in its file and run it again"
        )

    async def _round_of(self, study: Study, number: int) -> Round:
        """The study's round of that number, kept while it is at work."""
        sha256 = study.sha256
        if (self._round.sha256, self._round.number) != (sha256, number):
            cells = await designed(study, self._sessions)
            before = await self._pool.fetch(sql.before, study.name, number, CAN_PASS)
            rows = {(row["kind"], row["number"], row["sample"]): row for row in before}
            self._round = Round(
                sha256,
                number,
                cells,
                frozenset(key for key, row in rows.items() if not row["again"]),
                {key: CellCosts(row["tokens"], row["cost_usd"]) for key, row in rows.items()},
            )
        return self._round

    async def _hindered(self, study: Study, cells: Sequence[DesignCell]) -> StudyAnswer | None:
        """Why it cannot be scored, or its first cell cannot begin, as the desk judges it; None
        where both can."""
        try:
            require("strategies", "the score of a study")
        except ExtraMissing as error:
            return _no(error.code, error.message)
        if await self._pool.fetchval(sql.count) >= STUDIES_MAX:
            return _no("too_many", f"there are {STUDIES_MAX} studies already", "name")
        answer = await self._ask(request_of(study, cells[0], dry_run=True))
        if answer.outcome == "accepted":
            return None
        field = None if answer.field is None else file_field(answer.field)
        return _no(answer.code or "invalid", answer.message, field)


def _key(cell: DesignCell) -> CellKey:
    return cell.kind, cell.number, cell.sample


def _for_a_person(study: Study, row: Record | None) -> str:
    """Why a model of another program may not ask for this; empty where it may. The day's budget
    does not count what studies spend, and what a person has set or stopped stays so."""
    most, asked = StudyBudget(), study.budget
    if row is None and (asked.tokens > most.tokens or asked.cost_usd > most.cost_usd):
        usd = f"{most.cost_usd:.2f} USD"
        return f"over MCP it may be at most {most.tokens:,} tokens and {usd}; a person may set more"
    if row is not None and row["status"] == StudyStatus.STOPPED:
        return f"{study.name} is stopped: a person resumes it, with `deskbus study run FILE`"
    if row is not None and Study.model_validate_json(row["body"]).budget != asked:
        return f"{study.name} has another one, which a person alone changes"
    return ""


def _no(code: str, message: str, field: str | None = None) -> StudyAnswer:
    return StudyAnswer(outcome="rejected", code=code, field=field, message=message)
