"""Studies at work: their cells, asked for one after the other. Every orchestrator has one of these.

A study's row says how many of its cells were asked for; a cell's key names its cycle. So however
many look, and whatever dies in between, a cell is one cycle. It is asked for as anybody's request
is, in the name `study`, which no key on the bus has.

The live desk comes first. While a live cycle is at work no cell begins, and the further commands of
those in progress rest: their operations are written as resting (`store.write`), in whose table any
orchestrator finds them, and `Studies` sends them when no live cycle is at work any more, or when
they have rested for `study_rest_s_max`.
"""

import asyncio
import contextlib
from collections.abc import Sequence
from pathlib import Path

import structlog

from contracts.cycle import RequestAnswer
from contracts.message import MESSAGE_BYTES_MAX
from contracts.study import (
    FREE_PROVIDERS,
    STUDIES_MAX,
    STUDY,
    RunStudy,
    StopStudy,
    Study,
    StudyAnswer,
    StudyKind,
    StudyStatus,
)
from contracts.subjects import RUN_STUDY, STOP_STUDY
from libs.bus.server import Server
from libs.market.errors import MarketError, OutsideData
from libs.market.sessions import Sessions
from libs.postgres.pool import Pool, Record
from libs.postgres.queries import Queries
from libs.quant.study.design import Cell, DesignError, cells_of, dates_of, request_of
from libs.runtime import ids
from libs.runtime.errors import DeskError
from libs.runtime.settings import Settings
from libs.telemetry import metrics
from services.orchestrator.clocks.schedule import Ask
from services.orchestrator.commit import Command, Outbox
from services.orchestrator.preflight import OutlookOf

PAUSE_S = 0.01
"""Between two looks, however often something is committed."""
REASON_CHARS_MAX = 400
RESUMED_MAX = 500
"""Commands that one look sends at most; the rest waits for the next."""
OF_THE_CELL = frozenset({"unknown_ticker", "no_history", "not_a_session"})
"""Refusals that speak of one cell's session: the others may begin all the same."""

sql = Queries(Path(__file__).parent / "studies.sql")
log = structlog.get_logger()


class Studies:
    """Begins, stops and runs studies. `wake` after a commit that freed the desk of a cycle; `run`
    in one task."""

    def __init__(
        self,
        pool: Pool,
        ask: Ask,
        outbox: Outbox,
        outlook_of: OutlookOf,
        sessions: Sessions,
        settings: Settings,
    ) -> None:
        self._pool = pool
        self._ask = ask
        self._outbox = outbox
        self._outlook_of = outlook_of
        self._sessions = sessions
        self._settings = settings
        self._woken = asyncio.Event()
        self._at_work = True
        self._cells: tuple[str, Sequence[Cell]] = ("", ())

    async def serve(self, server: Server) -> None:
        """Begin to answer requests about studies."""
        await server.serve(RUN_STUDY, self.begin)
        await server.serve(STOP_STUDY, self.stop)

    def wake(self) -> None:
        """A cycle is no longer at work: a cell may begin, or resume."""
        if self._at_work:
            self._woken.set()

    async def run(self) -> None:
        """Resume and ask for cells until cancelled."""
        while True:
            self._woken.clear()
            try:
                await self._resume()
                while await self._step():
                    pass
            except DeskError as error:
                log.warning("study.interrupted", error=f"{type(error).__name__}: {error}"[:400])
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._settings.sweep_s):
                    await self._woken.wait()
            await asyncio.sleep(PAUSE_S)

    # --- what people ask ----------------------------------------------------------------------

    async def begin(self, caller: str, wish: RunStudy) -> StudyAnswer:
        """Begin a study or go on with it, as a person asks; returns the answer."""
        row = await self._pool.fetchrow(sql.of_name, wish.study.name)
        if row is not None:
            return await self._go_on(wish, row)
        study = wish.study
        try:
            cells = await self._designed(study)
        except DesignError as error:
            return _no("invalid", str(error), error.field)
        except MarketError as error:
            return _no(error.code, error.message, "dates")
        if (hindrance := await self._hindered(study, cells)) is not None:
            return hindrance
        if await self._pool.fetchval(sql.count) >= STUDIES_MAX:
            return _no("too_many", f"there are {STUDIES_MAX} studies already", "name")
        study_id, body = ids.study_id(study.name), study.model_dump_json().encode()
        await self._pool.execute(
            sql.begin, study_id, study.name, study.sha256, body, wish.offline, len(cells)
        )
        self._begun()
        log.info("study.begun", study=study.name, cells=len(cells), by=caller)
        return StudyAnswer(outcome="accepted", changed=True, status=StudyStatus.RUNNING)

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
                f"{study.name} was begun with another file: only its budget may change; give the "
                "new one a name of its own"
            )
            return _no("changed_file", text, "name")
        body = study.model_dump_json().encode()
        await self._pool.execute(sql.go_on, study.name, body, wish.offline)
        self._begun()
        before = StudyStatus(row["status"])
        if before is StudyStatus.STOPPED:
            return StudyAnswer(outcome="accepted", changed=True, status=StudyStatus.RUNNING)
        return StudyAnswer(outcome="accepted", status=before)

    def _begun(self) -> None:
        self._at_work = True
        self.wake()

    # --- cells --------------------------------------------------------------------------------

    async def _resume(self) -> None:
        """Send what rests and may go on."""
        settings = self._settings
        rows = await self._pool.fetch(
            sql.resume, settings.study_rest_s_max, settings.resend_after_s, RESUMED_MAX
        )
        for row in rows:
            # What no service could read is left to the sweep, which fails its operation.
            if len(row["command"]) <= MESSAGE_BYTES_MAX:
                await self._outbox.send(
                    Command(
                        row["service"], row["step"], row["cycle_id"], row["op_id"], row["command"]
                    )
                )
            metrics.CELLS_RESUMED.add()

    async def _step(self) -> bool:
        """Whether a cell was asked for, and another may follow."""
        row = await self._pool.fetchrow(sql.standing)
        # Where none is at work, what the desk commits is no news; what rests of one that was
        # stopped is resumed by and by.
        self._at_work = row is not None
        if row is None:
            return False
        study = Study.model_validate_json(row["body"])
        cells = await self._known(study)
        if row["next_cell"] >= len(cells):
            if not row["running"]:
                await self._pool.execute(sql.complete, study.name)
                log.info("study.completed", study=study.name, cells=len(cells))
            return not row["running"]
        side_by_side = 1 if study.kind is StudyKind.PATH else self._settings.study_cells_max
        if row["live"] or row["running"] >= side_by_side:
            return False
        if (short := await self._short(study, row)) is not None:
            if not row["running"]:
                await self._pool.execute(sql.stop, study.name, short)
                log.warning("study.stopped", study=study.name, why=short)
            return not row["running"]
        return await self._asked(study, cells[row["next_cell"]], row)

    async def _asked(self, study: Study, cell: Cell, row: Record) -> bool:
        answer = await self._ask(STUDY, request_of(study, cell, offline=row["offline"]))
        if answer is None or answer.code == "busy":
            return False
        # A cell that was asked for before its budget grew runs, or ran, with the smaller one.
        refused = answer.outcome == "rejected" and answer.code != "key_reused"
        why = f"{cell.as_of}: {answer.message}"[:REASON_CHARS_MAX] if refused else ""
        if refused and answer.code not in OF_THE_CELL:
            await self._pool.execute(sql.stop, study.name, why)
            log.warning("study.stopped", study=study.name, why=why)
            return False
        if refused:
            log.warning("study.cell_refused", study=study.name, as_of=str(cell.as_of), why=why)
        await self._pool.execute(sql.asked, study.name, row["next_cell"] + 1, int(refused), why)
        return True

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

    async def _known(self, study: Study) -> Sequence[Cell]:
        """The study's cells, kept while it is at work."""
        sha256 = study.sha256
        if self._cells[0] != sha256:
            self._cells = (sha256, await self._designed(study))
        return self._cells[1]

    async def _designed(self, study: Study) -> Sequence[Cell]:
        """The cells of a study on the source's sessions. Raises DesignError and MarketError."""
        wish = study.dates
        ends = [day for day in (wish.first, wish.last, *wish.sessions[:1]) if day is not None]
        span = await self._sessions.span()
        for day in (*ends, *wish.sessions[-1:]):
            if day > span.last or (span.first is not None and day < span.first):
                near = span.last if day > span.last else span.first or span.last
                raise OutsideData(day, self._sessions.source, span.first, span.last, near)
        first, calendar = min((*ends, *wish.sessions)), self._sessions.calendar
        sessions = calendar.sessions(first, max((*ends, *wish.sessions)))
        dates = dates_of(study, sessions)
        after = len(calendar.sessions(dates[0], span.last)) - 1
        if after < min(study.horizons):
            raise DesignError(
                "horizons",
                f"{self._sessions.source} has {after} sessions after {dates[0]}, the first date: "
                "no horizon is over by then",
            )
        return cells_of(study, dates)

    async def _hindered(self, study: Study, cells: Sequence[Cell]) -> StudyAnswer | None:
        """Why its first cell could not begin; None where nothing speaks against it."""
        first = cells[0]
        outlook = await self._outlook_of(STUDY, request_of(study, first), first.as_of)
        answer: RequestAnswer | None = outlook.hindrance
        if answer is None:
            return None
        return _no(answer.code or "invalid", answer.message, answer.field)


def _no(code: str, message: str, field: str | None = None) -> StudyAnswer:
    return StudyAnswer(outcome="rejected", code=code, field=field, message=message)
