"""Scores studies: reads the record and the prices, has them computed, keeps the newest answers."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from time import monotonic
from typing import Protocol
from uuid import UUID

import polars as pl

from contracts.cycle import PROBE
from contracts.performance import CANDIDATES, CASH
from contracts.study import (
    FREE_PROVIDERS,
    CellView,
    Study,
    StudyCells,
    StudyCellsQuery,
    StudyKind,
    StudyStatus,
)
from contracts.study_score import StudyScore, StudyScoreQuery
from libs.market.calendar import ExchangeCalendar
from libs.market.errors import UNPRICED
from libs.market.sessions import Sessions
from libs.postgres.pool import Pool, Record
from libs.quant.study.canary import CANARY_SESSIONS
from libs.quant.study.record import Bars, Recorded, common_sessions
from libs.runtime.computing import computed, request_of
from libs.runtime.settings import Settings
from services.console.store import Store
from services.console.studies import record, tried

COMPUTE = "services.console.studies.compute"
KEPT_MAX = 16
"""Scores that are kept: what has ended does not change, and people look twice."""
COMING_MAX = 8
"""Scores that are computed, one after the other, for pages that ask again; further ones wait."""
RUNNING_SCORE_S = 30.0
"""How long a score of a study that runs is good enough for a page, though cells have ended since.
"""


class Prices(Protocol):
    """Prices over time, as the market source has them."""

    @property
    def described(self) -> str:
        """Where they are from."""
        ...

    async def frame(self, ticker: str, as_of: date, sessions: int) -> pl.DataFrame:
        """The newest bars up to the session's close (BAR_SCHEMA), of a share that traded no more
        those up to its last one. Raises `MarketError`."""
        ...


@dataclass(frozen=True)
class Wanted:
    """A score that somebody wants: of these cells and probes, as `chosen` says, with prices up to
    `last`. `first_round` is the one that a path's accounts are of; `beside` changes with what else
    the desk has tried."""

    study: Study
    status: StudyStatus
    first_round: int
    ended: Sequence[Record]
    probes: Sequence[Record]
    chosen: StudyScoreQuery
    prices: str
    last: date
    beside: str

    @property
    def question(self) -> tuple[str, ...]:
        """The question without the cells that have ended so far."""
        chosen = self.chosen.model_dump_json()
        return (self.study.sha256, chosen, self.prices, str(self.last), self.beside)

    def is_answered_by(self, kept: "Kept") -> bool:
        """Whether no cell has ended since, for the first time or once more."""
        return kept.cycles == self.cycles

    @property
    def cycles(self) -> frozenset[UUID]:
        """Those that the cells which have ended are by now, probes among them."""
        return frozenset(cell["cycle_id"] for cell in (*self.ended, *self.probes))


@dataclass(frozen=True)
class Kept:
    """A score, of which cycles, and when it was computed."""

    score: StudyScore
    cycles: frozenset[UUID]
    at_s: float


class Scores:
    """Scores studies, one at a time: each takes a core for a while."""

    def __init__(
        self,
        pool: Pool,
        store: Store,
        prices: Prices,
        sessions: Sessions,
        settings: Settings,
        now_s: Callable[[], float] = monotonic,
    ) -> None:
        self._pool = pool
        self._now_s = now_s
        self._store = store
        self._prices = prices
        self._sessions = sessions
        self._settings = settings
        self._one = asyncio.Lock()
        self._kept: OrderedDict[tuple[str, ...], Kept] = OrderedDict()
        self._coming: dict[tuple[str, ...], asyncio.Task[Kept]] = {}

    async def score(self, query: StudyScoreQuery) -> StudyScore:
        """The study's score at the query's horizon, cost and benchmark, or its file's. Raises
        MarketError where the source cannot say how far its prices go, or is away."""
        wanted = await self._wanted(query)
        if isinstance(wanted, StudyScore):
            return wanted
        kept = await self._scored(wanted)
        return kept.score.model_copy(update={"status": wanted.status})

    async def at_once(self, query: StudyScoreQuery) -> "StudyScore | Wanted":
        """The score where it takes no time: one that is kept, of a study that runs also one of a
        while ago. Else what is wanted; it is computed meanwhile, so ask again. Raises as `score`
        does, and what ended the computing."""
        wanted = await self._wanted(query)
        if isinstance(wanted, StudyScore):
            return wanted
        question = wanted.question
        coming = self._coming.get(question)
        if coming is not None and coming.done():
            del self._coming[question]
            coming.result()
            coming = None
        kept = self._kept.get(question)
        if kept is not None and self._is_good_enough(kept, wanted):
            return kept.score.model_copy(update={"status": wanted.status})
        if coming is None and self._has_room():
            self._coming[question] = asyncio.create_task(self._scored(wanted))
        return wanted

    def _has_room(self) -> bool:
        """Whether one more may be computed. Those that have ended and that nobody asked for again
        make way: they are kept, or what ended them comes again."""
        if len(self._coming) >= COMING_MAX:
            ended = [question for question, task in self._coming.items() if task.done()]
            for task in map(self._coming.pop, ended):
                if not task.cancelled():
                    task.exception()  # seen, so that asyncio complains of none
        return len(self._coming) < COMING_MAX

    async def close(self) -> None:
        """End what is being computed for nobody any more."""
        for task in self._coming.values():
            task.cancel()
        await asyncio.gather(*self._coming.values(), return_exceptions=True)
        self._coming.clear()

    def _is_good_enough(self, kept: Kept, wanted: Wanted) -> bool:
        is_young = self._now_s() - kept.at_s < RUNNING_SCORE_S
        runs = wanted.status is StudyStatus.RUNNING
        return wanted.is_answered_by(kept) or (runs and is_young)

    async def _wanted(self, query: StudyScoreQuery) -> Wanted | StudyScore:
        """The wish with all that follows from it; a score where there is nothing to compute."""
        known = await record.study_of(query.name, self._pool)
        if known is None:
            return StudyScore(found=False, studies=await record.names(self._pool))
        study, status, first_round = known
        ended = await record.cells(study.name, self._pool)
        probes = await record.cells(study.name, self._pool, kind=PROBE) if study.probe else ()
        if not ended:
            nothing = "no cell of it has ended yet"
            return StudyScore(study=study, status=status, message=nothing)
        chosen = StudyScoreQuery(
            name=study.name,
            horizon=query.horizon or study.horizons[0],
            cost_bps=study.cost_bps if query.cost_bps is None else query.cost_bps,
            benchmark=query.benchmark or study.benchmark,
        )
        last = await self._sessions.latest()
        beside = await tried.mark(study, self._pool)
        described = self._prices.described
        return Wanted(*(study, status, first_round, ended, probes, chosen, described, last, beside))

    async def _scored(self, wanted: Wanted) -> Kept:
        """The score that is wanted, computed where nobody had it computed before."""
        question = wanted.question
        async with self._one:
            kept = self._kept.get(question)
            if kept is None or not wanted.is_answered_by(kept):
                score = await self._computed(wanted)
                kept = self._kept[question] = Kept(score, wanted.cycles, self._now_s())
                self._kept.move_to_end(question)
                while len(self._kept) > KEPT_MAX:
                    self._kept.popitem(last=False)
        return kept

    async def _computed(self, wanted: Wanted) -> StudyScore:
        recorded = await self._recorded(wanted)
        body = await asyncio.to_thread(recorded.model_dump_json)
        answer = await computed(COMPUTE, request_of({}, body.encode()), _unseen)
        score = StudyScore.model_validate(answer)
        return score.model_copy(update={"market_source": self._prices.described})

    async def _recorded(self, wanted: Wanted) -> Recorded:
        study, ended, chosen = wanted.study, wanted.ended, wanted.chosen
        is_path = study.kind is StudyKind.PATH
        decided = await record.decided(study, ended, self._pool)
        accounts = await record.equity(study, wanted.first_round, self._store) if is_path else ()
        # An account that a fallback has traded for is not its arm's own.
        others = {(one.arm, one.sample) for one in decided if one.fell_back}
        accounts = [it for it in accounts if (it.arm, it.sample) not in others]
        days = [cell["as_of"] for cell in ended]
        days += [day for account in accounts for day in account.sessions]
        horizon = chosen.horizon or study.horizons[0]
        reach = max(horizon, CANARY_SESSIONS)
        sessions = _sessions(self._sessions.calendar, days, reach, wanted.last)
        benchmark = chosen.benchmark or study.benchmark
        assets = dict.fromkeys(study.universe)
        if benchmark not in {CANDIDATES, CASH}:
            assets[benchmark.upper()] = None
        return Recorded(
            study=study,
            horizon=horizon,
            cost_bps=study.cost_bps if chosen.cost_bps is None else chosen.cost_bps,
            benchmark=benchmark,
            sessions=tuple(sessions),
            bars=await self._bars(tuple(assets), sessions),
            decided=tuple(decided),
            accounts=tuple(accounts),
            cutoffs=self._cutoffs(study),
            probed=tuple(await record.probed(wanted.probes, self._pool)),
            tried=tuple(await tried.tried(study, common_sessions(accounts), self._pool)),
        )

    async def _bars(self, assets: Sequence[str], sessions: Sequence[date]) -> Mapping[str, Bars]:
        """The prices of those that have some, of one that stopped trading up to its last session;
        the others are left out, and the score names them. Raises what says nothing about an asset,
        such as a source that is away."""
        bars = {}
        for asset in assets:
            try:
                frame = await self._prices.frame(asset, sessions[-1], len(sessions))
            except UNPRICED:
                continue
            bars[asset] = Bars(
                sessions=tuple(frame["date"].to_list()),
                open=tuple(frame["open"].to_list()),
                close=tuple(frame["close"].to_list()),
            )
        return bars

    def _cutoffs(self, study: Study) -> dict[str, date | None]:
        endpoints = self._settings.providers
        return {
            arm.name: endpoints[arm.provider].knowledge_cutoff
            if arm.provider in endpoints
            else None
            for arm in study.arms
            if arm.provider not in FREE_PROVIDERS
        }

    async def cells(self, query: StudyCellsQuery) -> StudyCells:
        """The cells that figures of a study are from, by arm and date."""
        known = await record.study_of(query.name, self._pool)
        if known is None:
            return StudyCells(found=False)
        study, _, _ = known
        rows = await record.cells(
            study.name,
            self._pool,
            kind=query.kind,
            on=query.on,
            skip=query.skip,
            limit=query.limit + 1,
        )
        shown, more = rows[: query.limit], len(rows) > query.limit
        if query.kind == PROBE:
            return StudyCells(cells=await self._probes(study, shown, query), more=more)
        ids = {(cell["number"], cell["sample"]): cell for cell in shown}
        return StudyCells(
            cells=tuple(
                CellView(
                    cycle_id=ids[one.number, one.sample]["cycle_id"],
                    on=one.on,
                    number=one.number,
                    sample=one.sample,
                    arm=one.arm,
                    status="decided" if one.ended else "fallback" if one.fell_back else "failed",
                    weights=one.weights,
                )
                for one in await record.decided(study, shown, self._pool)
                if query.arm is None or one.arm == query.arm
            ),
            more=more,
        )

    async def _probes(
        self, study: Study, ended: Sequence[Record], query: StudyCellsQuery
    ) -> tuple[CellView, ...]:
        """The probes among ended cells, an arm each."""
        guessed = {(it.number, it.arm): it for it in await record.probed(ended, self._pool)}
        views = []
        for cell in ended:
            for arm in study.probed:
                if query.arm is not None and query.arm != arm.name:
                    continue
                it = guessed.get((cell["number"], arm.name))
                right = [guess.ticker for guess in it.guesses if guess.right] if it else ()
                views.append(
                    CellView(
                        cycle_id=cell["cycle_id"],
                        on=cell["as_of"],
                        number=cell["number"],
                        sample=cell["sample"],
                        arm=arm.name,
                        status="asked" if it else "failed",
                        kind=PROBE,
                        identified=tuple(right),
                    )
                )
        return tuple(views)


def _sessions(
    calendar: ExchangeCalendar, days: Sequence[date], horizon: int, last: date
) -> Sequence[date]:
    """From the first of the days to the end of the last one's horizon, as far as there are
    prices."""
    end = max(days)
    for _ in range(horizon):
        if end >= last:
            break
        end = calendar.next_session(end)
    return calendar.sessions(min(days), min(end, last))


async def _unseen(_: float, __: str) -> None:
    """Nobody is told how far a score is: it takes seconds."""
