"""`deskbus study plan`: what a study would cost, and what it could tell. Asks nobody."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from math import ceil
from statistics import median
from typing import TYPE_CHECKING

from pydantic import BaseModel
from rich.text import Text

from contracts.cycle import DECISION, PROBE
from contracts.study import FREE_PROVIDERS, Study, StudyArm, StudyKind
from libs.market.calendar import exchange_calendar
from libs.quant.study.design import DesignError, cells_of, dates_of
from libs.runtime.model_settings import Price
from libs.runtime.nearest import did_you_mean, nearest
from libs.runtime.settings import Settings
from services.cli.shell.options import JsonOption
from services.cli.shell.problem import ExitCode, Problem
from services.cli.shell.running import load_settings
from services.cli.shell.terminal import emit, out, table, write
from services.cli.studies.file import EXAMPLE_HINT, FileArgument, read_study

if TYPE_CHECKING:
    from libs.llm.endpoints.endpoint import Endpoint

STAGES = {
    "sentiment": (1, "small"),
    "planner": (1, "medium"),
    "quant": (3, "medium"),
    "research": (3, "medium"),
    "trader": (3, "large"),
    "risk": (1, "medium"),
    "memory": (1, "small"),
}
"""Calls of a decision's stages and the size of their models: those with tools ask twice before they
answer."""
PROBE_STAGES = {"trader": (1, "large")}
CALLS = sum(calls for calls, _ in STAGES.values())
IN_TOKENS, IN_TOKENS_A_TICKER, OUT_TOKENS = 3_000, 600, 900
"""Tokens of a call: the task with its facts, and the answer."""
PROBE_IN_TOKENS_A_TICKER = 2_500
"""The course of a quarter of sessions, with its indicators."""
CALL_S, FREE_ARM_S = 8.0, 0.12
"""Seconds of a model's call, and of an arm without any in one cell."""
APART = 0.4
"""The part of judgements that one of two arms has right and the other wrong."""
DAY_DEVIATION = 0.01
"""The standard deviation of one arm's return a session less another's, before costs."""
ASSETS_ALONE = 5
"""Assets of a date count as so many independent ones at most."""


class ArmPlan(BaseModel):
    """An arm's calls, `probes` among them, tokens and dollars over the whole study. `usd` None: no
    price is known."""

    arm: str
    provider: str
    calls: int
    tokens: int
    usd: Decimal | None
    probes: int = 0

    def with_probes(self, probes: "ArmPlan") -> "ArmPlan":
        """The arm with what its probes need besides."""
        usd = None if self.usd is None or probes.usd is None else self.usd + probes.usd
        return self.model_copy(
            update={
                "calls": self.calls + probes.calls,
                "tokens": self.tokens + probes.tokens,
                "usd": usd,
                "probes": probes.calls,
            }
        )


class HorizonPlan(BaseModel):
    """The differences that a study of so many dates shows with a chance of 80 %, if they are there;
    None where so few dates show nothing. `dates_least` are needed for any interval."""

    horizon: int
    overlap: int
    dates_least: int
    hits_pct: float | None = None
    return_bps: float | None = None


class Plan(BaseModel):
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
    horizons: tuple[HorizonPlan, ...]


def plan(file: FileArgument, json: JsonOption = False) -> None:
    """Show what a study would cost and which differences it could tell from luck.

    No model and no desk is asked. Tokens and dollars are estimates; the budget in the file is
    what can be spent at most.
    """
    study, settings = read_study(file), load_settings()
    result = plan_of(study, settings)
    if json:
        emit([result])
        return
    _show(study, result)


def plan_of(study: Study, settings: Settings) -> Plan:
    """The plan of a study by the exchange's calendar. Raises `Problem`."""
    calendar = exchange_calendar()
    wish = study.dates
    days = [day for day in (wish.first, wish.last, *wish.sessions) if day is not None]
    try:
        dates = dates_of(study, calendar.sessions(min(days), max(days)))
        cells = cells_of(study, dates)
    except DesignError as error:
        raise Problem(ExitCode.USAGE, f"{error.field}: {error}", EXAMPLE_HINT) from None
    kinds = Counter(cell.kind for cell in cells)
    providers = _providers(settings)
    arms = tuple(
        _arm(arm, len(study.universe), kinds[DECISION], providers).with_probes(
            _probes(arm, study, kinds[PROBE], providers)
        )
        for arm in study.arms
    )
    gaps = [len(calendar.sessions(a, b)) - 1 for a, b in pairwise(dates)]
    gap = max(1, round(median(gaps))) if gaps else 1
    return Plan(
        study=study.name,
        kind=study.kind,
        dates=len(dates),
        first=dates[0].isoformat(),
        last=dates[-1].isoformat(),
        cells=len(cells),
        arms=arms,
        usd_most=study.budget.cost_usd if any(arm.calls for arm in arms) else Decimal(0),
        minutes=_minutes(study, len(cells) - kinds[PROBE], kinds[PROBE], settings),
        horizons=tuple(_horizon(study, horizon, len(dates), gap) for horizon in study.horizons),
    )


@dataclass(frozen=True)
class _Providers:
    """The providers of the settings, and what their models cost."""

    known: frozenset[str]
    endpoints: "Mapping[str, Endpoint]"
    prices: Mapping[str, Price]


def _providers(settings: Settings) -> _Providers:
    from libs.llm.endpoints.endpoint import endpoints_of, prices_of  # noqa: PLC0415 - slow
    from libs.llm.registry import all_providers  # noqa: PLC0415

    return _Providers(
        frozenset(all_providers(settings)), endpoints_of(settings), prices_of(settings)
    )


def _arm(arm: StudyArm, tickers: int, decisions: int, providers: _Providers) -> ArmPlan:
    if arm.provider not in providers.known:
        near = did_you_mean(nearest(arm.provider, providers.known))
        raise Problem(
            ExitCode.USAGE,
            f"arms: {arm.name}: no provider is named {arm.provider!r}{near}",
            "docs/providers.md lists them",
        )
    if arm.provider in FREE_PROVIDERS:
        return ArmPlan(arm=arm.name, provider=arm.provider, calls=0, tokens=0, usd=Decimal(0))
    calls, in_tokens = CALLS * decisions, IN_TOKENS + IN_TOKENS_A_TICKER * tickers
    return ArmPlan(
        arm=arm.name,
        provider=arm.provider,
        calls=calls,
        tokens=calls * (in_tokens + OUT_TOKENS),
        usd=_usd(arm, in_tokens, decisions, providers),
    )


def _probes(arm: StudyArm, study: Study, count: int, providers: _Providers) -> ArmPlan:
    """One call of the trader's model a probe, in which it reads the courses of all tickers."""
    calls = count if arm in study.probed else 0
    in_tokens = IN_TOKENS + PROBE_IN_TOKENS_A_TICKER * len(study.universe)
    tokens = calls * (in_tokens + OUT_TOKENS)
    usd = _usd(arm, in_tokens, calls, providers, PROBE_STAGES) if calls else Decimal(0)
    return ArmPlan(arm=arm.name, provider=arm.provider, calls=calls, tokens=tokens, usd=usd)


def _usd(
    arm: StudyArm,
    in_tokens: int,
    times: int,
    providers: _Providers,
    stages: Mapping[str, tuple[int, str]] = STAGES,
) -> Decimal | None:
    """Dollars by the prices of the models that the arm's stages use; None where one has none."""
    endpoint = providers.endpoints.get(arm.provider)
    if endpoint is None:
        return None
    if endpoint.free:
        return Decimal(0)
    total = Decimal(0)
    for stage, (calls, size) in stages.items():
        model = arm.models.get(stage) or endpoint.models.get(stage) or endpoint.models.get(size)
        price = providers.prices.get(model or "")
        if price is None:
            return None
        total += calls * (in_tokens * price.input + OUT_TOKENS * price.output) / 1_000_000
    return (total * times).quantize(Decimal("0.01"))


def _minutes(study: Study, cells: int, probes: int, settings: Settings) -> float:
    paid = any(arm.provider not in FREE_PROVIDERS for arm in study.arms)
    a_cell = CALLS * CALL_S if paid else FREE_ARM_S * len(study.arms)
    side_by_side = 1 if study.kind is StudyKind.PATH or not paid else settings.study_cells_max
    return round((cells * a_cell + probes * CALL_S) / side_by_side / 60, 1)


def _horizon(study: Study, horizon: int, dates: int, gap: int) -> HorizonPlan:
    from libs.quant.study.means import dates_least, smallest_difference  # noqa: PLC0415 - scipy

    overlap = ceil(horizon / gap)
    least = dates_least(overlap)
    if dates < least:
        return HorizonPlan(horizon=horizon, overlap=overlap, dates_least=least)
    hits = (APART / min(len(study.universe), ASSETS_ALONE)) ** 0.5
    returns = DAY_DEVIATION * horizon**0.5
    return HorizonPlan(
        horizon=horizon,
        overlap=overlap,
        dates_least=least,
        hits_pct=round(100 * smallest_difference(dates, hits, overlap), 1),
        return_bps=round(10_000 * smallest_difference(dates, returns, overlap)),
    )


def _show(study: Study, result: Plan) -> None:
    console = out()
    cells = f"{result.dates:,} dates from {result.first} to {result.last}, {result.cells:,} cells"
    console.print(Text.assemble((study.name, "bold"), f": {study.kind}, {cells}"), soft_wrap=True)
    columns = (("calls", "right"), ("probes", "right"), ("tokens", "right"), ("USD", "right"))
    grid = table("arm", "provider", *columns)
    for arm in result.arms:
        usd = "no price" if arm.usd is None else f"{arm.usd:,.2f}"
        counts = (f"{count:,}" for count in (arm.calls, arm.probes, arm.tokens))
        grid.add_row(arm.arm, arm.provider, *counts, usd)
    write(grid, console)
    budget = study.budget
    if result.usd_most:
        console.print(
            f"at most {budget.cost_usd:,.2f} USD and {budget.tokens:,} tokens: its budget",
            soft_wrap=True,
        )
    console.print(f"about {result.minutes:g} min, if the desk has nothing else to do")
    console.print()
    console.print("differences between two arms that would be seen with a chance of 80 %:")
    grid = table(
        ("horizon", "right"), ("right judgements", "right"), ("return a date", "right"), "note"
    )
    for row in result.horizons:
        if row.hits_pct is None or row.return_bps is None:
            why = f"not shown: {result.dates} dates, an interval needs {row.dates_least}"
            grid.add_row(f"{row.horizon}", "-", "-", why)
            continue
        why = f"each horizon reaches into {row.overlap} dates" if row.overlap > 1 else ""
        points, bps = f"{row.hits_pct:.1f} points", f"{row.return_bps:,} bp"
        grid.add_row(f"{row.horizon}", points, bps, why)
    write(grid, console)
    console.print(
        f"supposed: two arms differ in {APART:.0%} of judgements, and by {DAY_DEVIATION:.0%} a "
        "session; the report has the figures of this study",
        style="dim",
        soft_wrap=True,
    )
