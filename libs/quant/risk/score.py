"""The desk's own risk score of a share, from its prices alone: what no model can talk lower.

The scale runs 0 to 10. A step is reached by either of two measures, both on closes adjusted for
splits and dividends and known at as_of: the volatility over a quarter (sample standard deviation of
the last 63 daily log returns times sqrt(252)), and the fall from the highest close of a year (252
sessions, or as many as there are). The worse of the two counts: a share that has lost half is not
made safe by a calm month.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isfinite, log, sqrt
from statistics import stdev

from contracts.facts import RISK_UNKNOWN
from libs.quant.bars import QUARTER_BARS, YEAR_BARS

RISK_CLOSES_MIN = QUARTER_BARS + 1
"""Closes without which nothing is measured: 63 returns."""
RISK_CLOSES_WANTED = YEAR_BARS


@dataclass(frozen=True, slots=True)
class RiskStep:
    """One step of the scale: reached at this volatility or this fall, both in percent."""

    score: float
    volatility_pct: float
    drawdown_pct: float
    meaning: str


STEPS: tuple[RiskStep, ...] = (
    RiskStep(0, 0, 0, "hardly moves, as cash and the shortest bonds"),
    RiskStep(1, 5, 5, "moves as a government bond does"),
    RiskStep(2, 10, 10, "moves as a broad index in a calm year, or is in a correction (10% down)"),
    RiskStep(3, 15, 15, "moves 1% on an ordinary day, as a broad index does in an ordinary year"),
    RiskStep(4, 25, 20, "moves as a steady large company, or is in a bear market (20% down)"),
    RiskStep(
        5, 35, 30, "moves 2% on an ordinary day, as a large company with news, or is 30% down"
    ),
    RiskStep(6, 45, 40, "moves 3% on an ordinary day, as a small company, or is 40% down"),
    RiskStep(7, 60, 50, "moves 4% on an ordinary day, as in a crisis, or has lost half"),
    RiskStep(8, 80, 60, "moves 5% on an ordinary day, as a speculation, or has lost 60%"),
    RiskStep(9, 100, 75, "moves 6% on an ordinary day, or has lost three quarters"),
    RiskStep(
        10, 130, 90, "moves 8% on an ordinary day, has lost nine tenths, or cannot be measured"
    ),
)


@dataclass(frozen=True, slots=True)
class MeasuredRisk:
    """A score of the scale with what was measured; the measures are None where none could be."""

    score: float
    reason: str
    volatility_pct: float | None = None
    drawdown_pct: float | None = None


def measured_risk(closes: Sequence[float]) -> MeasuredRisk:
    """The risk of a share by its closes, oldest first, the last one as_of's.

    Give RISK_CLOSES_WANTED of them; of more only the last count. With fewer than RISK_CLOSES_MIN,
    or with one that is no price above zero, the score is RISK_UNKNOWN.
    """
    year = closes[-RISK_CLOSES_WANTED:]
    if len(year) < RISK_CLOSES_MIN:
        return MeasuredRisk(
            RISK_UNKNOWN, f"{len(year)} closes, {RISK_CLOSES_MIN} are needed to measure its risk"
        )
    if not all(isfinite(close) and close > 0 for close in year):
        return MeasuredRisk(RISK_UNKNOWN, "a close that is not a price above zero")
    quarter = year[-RISK_CLOSES_MIN:]
    returns = [log(now / before) for before, now in pairwise(quarter)]
    volatility_pct = stdev(returns) * sqrt(YEAR_BARS) * 100
    drawdown_pct = (1 - year[-1] / max(year)) * 100
    score = max(
        step.score
        for step in STEPS
        if volatility_pct >= step.volatility_pct or drawdown_pct >= step.drawdown_pct
    )
    reason = f"volatility {volatility_pct:.0f}% a year, {drawdown_pct:.0f}% below its year's high"
    return MeasuredRisk(score, reason, volatility_pct, drawdown_pct)
