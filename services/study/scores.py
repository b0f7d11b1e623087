"""Scores studies: reads the record and the prices, has them computed, keeps the newest answers."""

import asyncio
from collections import OrderedDict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from contracts.cycle import PROBE
from contracts.performance import CANDIDATES, CASH, Benchmark
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
from libs.market.source import MarketData, bars_until
from libs.postgres.pool import Pool, Record
from libs.runtime.settings import Settings
from libs.runtime.worker_process import computed, request_of
from libs.study.statistics.canary import CANARY_SESSIONS
from libs.study.statistics.record import AssetBars, StudyRecord, common_sessions
from services.study import record, tried

COMPUTE = "services.study.compute"
KEPT_MAX = 16
"""Scores that are kept: what has ended does not change, and people look twice."""
ScoreKey = tuple[Hashable, ...]


@dataclass(frozen=True)
class ScoreRequest:
    """A score that somebody wants: of these cells and probes, with prices up to `last`.
    `first_round` is the one that a path's accounts are of; `beside` changes with what else the desk
    has tried."""

    study: Study
    status: StudyStatus
    first_round: int
    ended: Sequence[Record]
    probes: Sequence[Record]
    horizon: int
    cost_bps: float
    benchmark: Benchmark
    last: date
    beside: str

    @property
    def key(self) -> ScoreKey:
        """The same where the score is the same: the cycles that the cells are by now, and all that
        they are scored by."""
        cycles = frozenset(cell["cycle_id"] for cell in (*self.ended, *self.probes))
        chosen = self.horizon, self.cost_bps, self.benchmark
        return self.study.sha256, cycles, chosen, self.last, self.beside


class Scores:
    """Scores studies, one at a time: each takes a core for a while."""

    def __init__(
        self,
        pool: Pool,
        market: MarketData,
        sessions: Sessions,
        settings: Settings,
    ) -> None:
        self._pool = pool
        self._market = market
        self._sessions = sessions
        self._settings = settings
        self._one = asyncio.Lock()
        self._kept: OrderedDict[ScoreKey, StudyScore] = OrderedDict()

    async def score(self, _: str, query: StudyScoreQuery) -> StudyScore:
        """The study's score at the query's horizon, cost and benchmark, or its file's. Raises
        MarketError where the source cannot say how far its prices go, or is away."""
        wanted = await self._wanted(query)
        if isinstance(wanted, StudyScore):
            return wanted
        score = await self._scored(wanted)
        return score.model_copy(update={"status": wanted.status})

    async def _wanted(self, query: StudyScoreQuery) -> ScoreRequest | StudyScore:
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
        return ScoreRequest(
            study,
            status,
            first_round,
            ended,
            probes,
            horizon=query.horizon or study.horizons[0],
            cost_bps=study.cost_bps if query.cost_bps is None else query.cost_bps,
            benchmark=query.benchmark or study.benchmark,
            last=await self._sessions.latest(),
            beside=await tried.mark(study, self._pool),
        )

    async def _scored(self, wanted: ScoreRequest) -> StudyScore:
        """The score that is wanted, computed where nobody had it computed before."""
        # What the source is called changes with a folder's settings.
        key = self._market.label.in_words, *wanted.key
        async with self._one:
            if key not in self._kept:
                self._kept[key] = await self._computed(wanted)
                while len(self._kept) > KEPT_MAX:
                    self._kept.popitem(last=False)
            return self._kept[key]

    async def _computed(self, wanted: ScoreRequest) -> StudyScore:
        recorded = await self._recorded(wanted)
        body = await asyncio.to_thread(recorded.model_dump_json)
        answer = await computed(COMPUTE, request_of({}, body.encode()), _unseen)
        score = StudyScore.model_validate(answer)
        return score.model_copy(update={"market_source": self._market.label.in_words})

    async def _recorded(self, wanted: ScoreRequest) -> StudyRecord:
        study, ended = wanted.study, wanted.ended
        is_path = study.kind is StudyKind.PATH
        decided = await record.decided(study, ended, self._pool)
        accounts = await record.equity(study, wanted.first_round, self._pool) if is_path else ()
        # An account that a fallback has traded for is not its arm's own.
        others = {(one.arm, one.sample) for one in decided if one.fell_back}
        accounts = [it for it in accounts if (it.arm, it.sample) not in others]
        days = [cell["as_of"] for cell in ended]
        days += [day for account in accounts for day in account.sessions]
        reach = max(wanted.horizon, CANARY_SESSIONS)
        sessions = _sessions(self._sessions.calendar, days, reach, wanted.last)
        assets = dict.fromkeys(study.universe)
        if wanted.benchmark not in {CANDIDATES, CASH}:
            assets[wanted.benchmark.upper()] = None
        return StudyRecord(
            study=study,
            horizon=wanted.horizon,
            cost_bps=wanted.cost_bps,
            benchmark=wanted.benchmark,
            sessions=tuple(sessions),
            bars=await self._bars(tuple(assets), sessions),
            decided=tuple(decided),
            accounts=tuple(accounts),
            cutoffs=self._cutoffs(study),
            probed=tuple(await record.probed(wanted.probes, self._pool)),
            tried=tuple(await tried.tried(study, common_sessions(accounts), self._pool)),
        )

    async def _bars(
        self, assets: Sequence[str], sessions: Sequence[date]
    ) -> Mapping[str, AssetBars]:
        """The prices of those that have some, of one that stopped trading up to its last session;
        the others are left out, and the score names them. Raises what says nothing about an asset,
        such as a source that is away."""
        bars = {}
        for asset in assets:
            try:
                frame = await bars_until(self._market, asset, sessions[-1], len(sessions))
            except UNPRICED:
                continue
            bars[asset] = AssetBars(
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

    async def cells(self, _: str, query: StudyCellsQuery) -> StudyCells:
        """The cells that figures of a study are from, by arm and date."""
        known = await record.study_of(query.name, self._pool)
        if known is None:
            return StudyCells(found=False)
        study = known[0]
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
