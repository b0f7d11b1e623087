"""What a study would cost, and what it could tell. Asks nobody."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from math import ceil
from statistics import median

from pydantic import BaseModel

from contracts.cycle import DECISION, EXIT, PROBE
from contracts.study import FREE_PROVIDERS, Study, StudyArm, StudyKind
from libs.market.errors import MarketError, UnknownTicker
from libs.runtime.errors import DeskError, few
from libs.runtime.extras import require
from libs.runtime.nearest import did_you_mean, nearest
from libs.runtime.settings import Settings
from libs.study.cells import caveats, designed, over
from libs.study.estimate import (
    FREE_ARM_S,
    NO_RECORD,
    Calls,
    Providers,
    StageSteps,
    decision_calls,
    probe_calls,
    sources,
)
from libs.study.statistics.design import DesignError

FAILS = "its arms would fail for want of budget; raise cell_tokens"
LIVE_TICKERS = (
    "tickers: of live data only the desk can say which there are; it asks before the study begins, "
    "and refuses one that the source does not know"
)
APART = 0.4
"""The part of judgements that one of two arms has right and the other wrong."""
DAY_DEVIATION = 0.01
"""The standard deviation of one arm's return a session less another's, before costs."""
ASSETS_ALONE = 5
"""Assets of a date count as so many independent ones at most."""


class NoPlan(DeskError):
    """A study's file is invalid: `field` says where, `hint` what is possible."""

    code = "invalid"

    def __init__(self, field: str, text: str, hint: str = "") -> None:
        super().__init__(f"{field}: {text}")
        self.field, self.hint = field, hint


class ArmPlan(BaseModel):
    """An arm's calls, `probes` among them, tokens and dollars over the whole study. `usd` None: no
    price is known. `recorded`: by how many calls on record; 0 where all is as stated."""

    arm: str
    provider: str
    calls: int
    tokens: int
    usd: Decimal | None
    probes: int = 0
    recorded: int = 0


class HorizonPlan(BaseModel):
    """The differences that a study shows with a chance of 80 %, if they are there; None where so
    few dates show nothing: `dates` are those whose horizon is over, `dates_least` how many any
    interval needs."""

    horizon: int
    dates: int
    overlap: int
    dates_least: int
    hits_pct: float | None = None
    return_bps: float | None = None


class StudyPlan(BaseModel):
    """A study before it is run."""

    study: str
    kind: StudyKind
    dates: int
    first: str
    last: str
    cells: int
    arms: tuple[ArmPlan, ...]
    usd_most: Decimal
    minutes: float
    estimates: tuple[str, ...] = ()
    horizons: tuple[HorizonPlan, ...]
    notes: tuple[str, ...] = ()


async def plan_of(study: Study, settings: Settings, recorded: StageSteps = NO_RECORD) -> StudyPlan:
    """The plan of a study by the sessions of the source, and by what calls took that are on record.
    Raises NoPlan."""
    require("strategies", "the plan of a study")
    from libs.market.choice import SourceName, source_of  # noqa: PLC0415
    from libs.market.sources import sessions_of  # noqa: PLC0415 - slow

    sessions, is_recorded = sessions_of(settings), source_of(settings) is SourceName.REPLAY
    calendar = sessions.calendar
    if is_recorded:
        _known_tickers(study, settings)
    try:
        cells = await designed(study, sessions)
        last = await sessions.latest()
    except DesignError as error:
        raise NoPlan(error.field, str(error)) from None
    except MarketError as error:
        raise NoPlan("dates", error.message) from None
    dates = tuple(dict.fromkeys(cell.as_of for cell in cells))
    kinds = Counter(cell.kind for cell in cells)
    providers = Providers.of(settings)
    estimate = _Estimate(study, kinds[DECISION], kinds[EXIT], kinds[PROBE], recorded)
    arms = tuple(_arm(arm, estimate, providers) for arm in study.arms)
    gaps = [len(calendar.sessions(a, b)) - 1 for a, b in pairwise(dates)]
    gap = max(1, round(median(gaps))) if gaps else 1
    reached = over(dates, study.horizons, calendar, last)
    notes = [*caveats(study, settings, dates, calendar, last)]
    needed = sum(it.tokens for arm in study.arms for it in estimate.decision(arm))
    if needed > study.budget.cell_tokens:
        most = f"about {needed:,.0f} tokens and may cost {study.budget.cell_tokens:,}"
        notes.insert(0, f"budget: a cell takes {most}: {FAILS}")
    if not is_recorded:
        notes.append(LIVE_TICKERS)
    return StudyPlan(
        study=study.name,
        kind=study.kind,
        dates=len(dates),
        first=dates[0].isoformat(),
        last=dates[-1].isoformat(),
        cells=len(cells),
        arms=arms,
        usd_most=study.budget.cost_usd if any(arm.calls for arm in arms) else Decimal(0),
        minutes=estimate.minutes(settings),
        estimates=tuple(sources(study, recorded)),
        horizons=tuple(
            _horizon(study, horizon, reached[horizon], gap) for horizon in study.horizons
        ),
        notes=tuple(notes),
    )


def _arm(arm: StudyArm, estimate: "_Estimate", providers: Providers) -> ArmPlan:
    if arm.provider not in providers.known:
        near = did_you_mean(nearest(arm.provider, providers.known))
        text = f"{arm.name}: no provider is named {arm.provider!r}{near}"
        raise NoPlan("arms", text, "docs/providers.md lists them")
    decision, probe = estimate.decision(arm), estimate.probe(arm)
    costs = [(estimate.decisions, decision), (estimate.probes, probe)]
    usd = [(times, providers.usd(arm, calls)) for times, calls in costs if calls]
    known = [times * dollars for times, dollars in usd if dollars is not None]
    return ArmPlan(
        arm=arm.name,
        provider=arm.provider,
        calls=round(sum(times * sum(it.count for it in calls) for times, calls in costs)),
        tokens=round(sum(times * sum(it.tokens for it in calls) for times, calls in costs)),
        usd=sum(known, Decimal(0)).quantize(Decimal("0.01")) if len(known) == len(usd) else None,
        probes=round(estimate.probes * sum(it.count for it in probe)),
        recorded=sum(it.recorded for it in (*decision, *probe)),
    )


@dataclass(frozen=True)
class _Estimate:
    """The calls of a study's cells, of each kind so many."""

    study: Study
    decisions: int
    exits: int
    probes: int
    recorded: StageSteps

    def decision(self, arm: StudyArm) -> Sequence[Calls]:
        calls = decision_calls(arm.provider, len(self.study.universe), self.recorded)
        return [it for it in calls if it.stage not in arm.without]

    def probe(self, arm: StudyArm) -> Sequence[Calls]:
        if not self.probes or arm not in self.study.probed:
            return ()
        return probe_calls(arm.provider, len(self.study.universe), self.recorded)

    def minutes(self, settings: Settings) -> float:
        """The arms of a cell are asked at the same time."""
        arms = self.study.arms
        is_paid = any(arm.provider not in FREE_PROVIDERS for arm in arms)
        is_path = self.study.kind is StudyKind.PATH
        cell = max(sum(it.count * it.seconds for it in self.decision(arm)) for arm in arms)
        probe = max(sum(it.count * it.seconds for it in self.probe(arm)) for arm in arms)
        in_all = self.decisions * cell + self.probes * probe
        in_all += (self.decisions + self.exits) * FREE_ARM_S * len(arms)
        side_by_side = 1 if is_path or not is_paid else settings.study.cells_max
        return round(in_all / side_by_side / 60, 1)


def _known_tickers(study: Study, settings: Settings) -> None:
    """Raises NoPlan for a ticker that recorded data does not have."""
    from libs.market.sources import sessions_of, tickers_of  # noqa: PLC0415 - slow

    there = tickers_of(settings)
    for ticker in study.universe:
        if ticker not in there:
            near = did_you_mean(nearest(ticker, there))
            error = UnknownTicker(ticker, sessions_of(settings).source)
            raise NoPlan("universe", f"{error.message}{near}", f"the source has {few(there)}")


def _horizon(study: Study, horizon: int, dates: int, gap: int) -> HorizonPlan:
    from libs.study.statistics.means import dates_least, smallest_difference  # noqa: PLC0415 - scipy

    overlap = ceil(horizon / gap)
    plan = HorizonPlan(
        horizon=horizon, dates=dates, overlap=overlap, dates_least=dates_least(overlap)
    )
    if dates >= plan.dates_least:
        hits = (APART / min(len(study.universe), ASSETS_ALONE)) ** 0.5
        returns = DAY_DEVIATION * horizon**0.5
        plan.hits_pct = round(100 * smallest_difference(dates, hits, overlap), 1)
        plan.return_bps = round(10_000 * smallest_difference(dates, returns, overlap))
    return plan
