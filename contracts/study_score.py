"""The score of a study: what its cells show, and what they cannot. Answered from the record and the
market source's prices alone, for any horizon, cost and benchmark, as often as wanted."""

from datetime import date
from decimal import Decimal
from enum import StrEnum

from pydantic import Field

from contracts.message import PAGE_MAX, Message
from contracts.performance import Benchmark
from contracts.stages import Stage, Substitute
from contracts.study import ARMS_MAX, HORIZON_MAX, Study, StudyStatus
from contracts.types import Cost, Name, ShortText, Text, Ticker, Value

CURVE_POINTS_MAX = 200
"""Of a curve; the last of several dates stands for them."""
LEFT_OUT_MAX = 40
"""Assets and dates without prices that are named; the others are counted."""
SOURCES_MAX = 20
"""Studies and strategies that are named; the others are counted."""
RATIO_SESSIONS_LEAST = 90
"""From as many returns on a Sharpe ratio's interval holds the truth in 93 %, heavy tails or not
(`python -m benchmarks.evidence`)."""


class StudyScoreQuery(Message):
    """Ask for a study's score. A field that is left out is taken from its file; `horizon` is the
    first of those there."""

    name: Name
    horizon: int | None = Field(
        default=None,
        ge=1,
        le=HORIZON_MAX,
        description=(
            "Sessions from the open after a decision; by default the first in the study's file."
        ),
    )
    cost_bps: float | None = Field(
        default=None,
        ge=0,
        le=1_000,
        description="Cost per buy or sale in basis points; by default as in the study's file.",
    )
    benchmark: Benchmark | None = Field(
        default=None, description="Benchmark; by default as in the study's file."
    )


class Estimate(Value):
    """A mean over dates: its 95 % interval, and the probability `p` of one as far from nothing by
    luck. `needed` is how many such dates would show a true one of this size with a chance of 80 %;
    None where none would, since it is nothing."""

    estimate: float
    low: float
    high: float
    p: float
    dates: int
    needed: int | None = None
    resolved: bool

    @property
    def resolution(self) -> float:
        """q = N / N*: below 1 the dates are too few for a difference of this size."""
        return 0.0 if self.needed is None else self.dates / self.needed


class NotShown(Value):
    """Why there is no number; `dates` of `needed` if there are too few."""

    why: ShortText
    dates: int | None = None
    needed: int | None = None


Shown = Estimate | NotShown


class Measure(StrEnum):
    """The measures that two arms are compared by: the share of right choices, the excess return of
    a decision, and the loss of stated confidences (Brier's, lower is better)."""

    HITS = "hits"
    EXCESS = "excess"
    BRIER = "brier"


class LeakVerdict(StrEnum):
    """Whether a provider knows future prices. `not_resolved`: too few dates for a difference of
    that size, in either direction; `not_shown`: no available test could show it."""

    LEAKS = "leaks"
    CLEAR = "clear"
    NOT_RESOLVED = "not_resolved"
    NOT_SHOWN = "not_shown"


class Permuted(Value):
    """The permutation control: the mean excess return of an arm's choices before costs, and the
    95th percentile of its own weights dealt at random to the assets of each date. `passed`: above
    it."""

    actual: float
    permuted: float
    p: float
    passed: bool


class Foresight(Value):
    """How far an arm's choices look like knowledge of the week to come
    (libs/study/statistics): standard `deviations` above random ones, the share of `dates`
    at which a choice was `better` than the arm's average one with the interval's low end, and the
    part of perfect knowledge's gain that was `captured`."""

    deviations: float
    better: float
    better_low: float
    captured: float
    dates: int
    verdict: LeakVerdict


class ArmScore(Value):
    """An arm: what it decided, and how that came out. A `control` has no cells.

    `decisions` are cells that ended with a decision, `failed` those that did not, `picks` what it
    bought in all. `fallbacks` more are left out of everything but tokens and cost, as a stage was
    answered by its fallback; `substitutes` are the stages that are given to another provider.
    `invested` is the mean share of the equity that its decisions held. `hits` is the share of
    assets chosen rightly: bought and better than the benchmark, or not bought and not better; its p
    is against a coin. `excess` is the return of a decision above the benchmark after costs, as a
    part of the equity; what was not invested counts as the benchmark.
    """

    name: ShortText
    provider: ShortText = ""
    masked: bool = False
    control: bool = False
    decisions: int = 0
    failed: int = 0
    fallbacks: int = 0
    substitutes: tuple[Substitute, ...] = ()
    picks: int = 0
    invested: float = 0.0
    hits: Shown
    excess: Shown
    permuted: Permuted | NotShown
    foresight: Foresight | NotShown
    tokens: int = 0
    cost_usd: Cost = Decimal(0)
    curve: tuple[float, ...] = Field(default=(), max_length=CURVE_POINTS_MAX)


class PairedDifference(Value):
    """How much the first arm's measure is above the second's, over what both have.

    `compared` counts that: choices (an asset on a date) of `hits`, decisions of `excess`, of
    `brier` the picks that both made with a stated confidence. `differing` of them have another
    value in each arm.
    """

    measure: Measure
    first: ShortText
    second: ShortText
    difference: Shown
    compared: int = 0
    differing: int = 0


class RankInterval(Value):
    """The ranks that an arm may have by a measure; arms without a significant difference share
    them."""

    measure: Measure
    arm: ShortText
    best: int
    worst: int


class MaskGap(Value):
    """A provider's named arm less its masked one: below 0 names distract. `changed` is the share of
    choices that differ, `moved` the mean distance of the weights, `verdict` what names bring."""

    provider: Name
    named: ShortText
    masked: ShortText
    hits: Shown
    excess: Shown
    changed: float
    moved: float
    verdict: LeakVerdict = LeakVerdict.NOT_SHOWN


class AgentGap(Value):
    """An arm less the same arm without the models of some stages: what these bring. `changed` is
    the share of choices that differ."""

    arm: ShortText
    less: ShortText
    stages: tuple[Stage, ...]
    hits: Shown
    excess: Shown
    changed: float


class CutoffGap(Value):
    """An arm's excess returns that ended by its model's knowledge cutoff, less those after it."""

    arm: ShortText
    cutoff: date | None = None
    gap: Shown


class Probe(Value):
    """How many masked inputs an arm's model could identify in `cells`, a date each: the part, its
    Wilson interval, and the part that guessing reaches. `industries` of `industries_asked` were
    right, and `dates` within 90 days. `blind`: hardly more than by guessing at the interval's high
    end. Of fewer dates than `needed` there is no interval, and `blind` is None."""

    provider: Name
    arm: ShortText = ""
    cells: int = 0
    hits: int
    asked: int
    needed: int = 0
    low: float | None = None
    high: float | None = None
    by_guessing: float
    industries: int = 0
    industries_asked: int = 0
    dates: int = 0
    blind: bool | None = None


class Leakage(Value):
    """Whether a provider knows the prices to come: by the `foresight` of its `arms`, and by what
    `names` bring it. One look that shows a leak is enough; it is cleared by both alone, and where
    it was `probed` only if it is `blind`, which too few dates do not show (None)."""

    provider: Name
    arms: tuple[ShortText, ...]
    foresight: LeakVerdict
    names: LeakVerdict
    probed: bool = False
    blind: bool | None = None
    verdict: LeakVerdict


class Stability(Value):
    """The agreement of an arm's samples on the same evidence: the mean share of samples with the
    most frequent choice over assets that any of them bought, and the part of these that is stable
    enough to act on. `spread` is the mean deviation of a weight as a part of its mean."""

    arm: ShortText
    samples: int
    agreement: float
    spread: float
    stable: float
    choices: int


class ReliabilityPoint(Value):
    """How often came true what was `stated`, with its 95 % interval."""

    stated: float
    happened: float
    low: float
    high: float


class CalibrationScore(Value):
    """Stated confidences as probabilities of beating the benchmark: Brier's `score` and its parts
    (score = miscalibration - discrimination + uncertainty). `skill` is the part of the base rate's
    score that is saved; `overconfidence` what was stated above what came true."""

    arm: ShortText
    score: float
    miscalibration: float
    discrimination: float
    uncertainty: float
    skill: float | None
    overconfidence: Shown
    outcomes: int
    curve: tuple[ReliabilityPoint, ...] = ()


class NoCalibration(Value):
    """The reason why an arm's confidences were not scored."""

    arm: ShortText
    why: ShortText


class Equity(Value):
    """The account of an arm's sample on a path, after costs, or a control of the same sessions.

    Returns and drawdown are parts; a year is 252 sessions, and a shorter account has no annual
    return. `sharpe_low` and `sharpe_high` are a 95 % interval; of fewer than RATIO_SESSIONS_LEAST
    returns there is none, nor what rests on it. `deflated_sharpe` is the probability that the ratio
    is above that of the luckiest of all configurations on record; `sessions_needed` how many
    sessions would show that it is above 0. `usd_bp` and `tokens_bp` are what models cost for each
    basis point of return above the benchmark, where it is one.
    """

    name: ShortText
    arm: ShortText = ""
    sample: int = 0
    control: bool = False
    sessions: int
    total_return: float
    annual_return: float | None = None
    sharpe: float | None = None
    sharpe_low: float | None = None
    sharpe_high: float | None = None
    drawdown: float
    deflated_sharpe: float | None = None
    sessions_needed: int | None = None
    tokens_decision: int | None = None
    usd_decision: float | None = None
    usd_bp: float | None = None
    tokens_bp: float | None = None
    curve: tuple[float, ...] = Field(default=(), max_length=CURVE_POINTS_MAX)


class ConfigurationKind(StrEnum):
    """How a configuration was tried: `own`, on this path; `path`, on another study's; `strategy`,
    in a strategy's backtest; `picks`, by a study without an account."""

    OWN = "own"
    PATH = "path"
    STRATEGY = "strategy"
    PICKS = "picks"


class Configurations(Value):
    """The configurations of a kind that this desk has tried on assets and sessions of the study:
    how many there are, and of how many a return is on record for each of its sessions. They are of
    these `sources`, studies or strategies, and as many `more`."""

    kind: ConfigurationKind
    count: int
    with_returns: int = 0
    sources: tuple[ShortText, ...] = Field(default=(), max_length=SOURCES_MAX)
    more: int = 0


class OverfittingScore(Value):
    """The probability that the best of so many configurations was the best by luck."""

    probability: float
    configurations: int
    splits: int


class AuditKind(StrEnum):
    """A test of how a desk was tried, or a column of how it is reported."""

    TEST = "test"
    COLUMN = "column"


class AuditRow(Value):
    """One of the six tests (The Alpha Illusion, 2026) or seven columns (Beyond Agent Architecture,
    2026) by which a desk of models is judged, and this study's answer; `shown` where there is one,
    `command` prints what it is from."""

    kind: AuditKind
    name: ShortText
    answer: Text
    shown: bool
    command: ShortText = ""


class LeftOut(Value):
    """Something that was not scored, an asset on a date or with `ticker` None the date, and why."""

    on: date
    ticker: Ticker | None = None
    why: ShortText


class StudyScore(Message):
    """The score of a study at one horizon, cost and benchmark.

    `dates` were scored, from `first` to `last`; each horizon reaches into `overlap` of them, its
    own included. `points` are the dates (or sessions) of all curves. Of a `picks` there is no
    `equity`, of a `path` nothing else than that, tokens, failures and audit: their figures are
    never mixed.
    """

    found: bool = True
    studies: tuple[Name, ...] = Field(default=(), max_length=PAGE_MAX)
    study: Study | None = None
    status: StudyStatus | None = None
    cells: int = 0
    decided: int = 0
    failed: int = 0
    fallbacks: int = 0
    horizon: int = 0
    cost_bps: float = 0.0
    benchmark: ShortText = ""
    market_source: Text = ""
    synthetic: bool = False
    dates: int = 0
    first: date | None = None
    last: date | None = None
    overlap: int = 1
    left_out: tuple[LeftOut, ...] = Field(default=(), max_length=LEFT_OUT_MAX)
    left_out_more: int = 0
    arms: tuple[ArmScore, ...] = Field(default=(), max_length=ARMS_MAX + 2)
    canary: Foresight | NotShown = NotShown(why="nothing was scored")
    differences: tuple[PairedDifference, ...] = ()
    ranks: tuple[RankInterval, ...] = ()
    masked: tuple[MaskGap, ...] = ()
    agents: tuple[AgentGap, ...] = ()
    cutoffs: tuple[CutoffGap, ...] = ()
    probes: tuple[Probe, ...] = ()
    leakage: tuple[Leakage, ...] = ()
    stability: tuple[Stability, ...] = ()
    calibration: tuple[CalibrationScore | NoCalibration, ...] = ()
    equity: tuple[Equity, ...] = ()
    configurations: tuple[Configurations, ...] = ()
    overfitting: OverfittingScore | NotShown = NotShown(why="only a path has equity")
    points: tuple[date, ...] = Field(default=(), max_length=CURVE_POINTS_MAX)
    audit: tuple[AuditRow, ...] = ()
    message: Text = ""
