"""The gates of the strategy cycle: what they ask for, and what they say."""

from typing import Annotated, Literal

from pydantic import Field

from contracts.types import Name, Text, Value

CHECKS_MAX = 20

Fraction = Annotated[float, Field(ge=0, le=1)]


class GateThresholds(Value):
    """The thresholds of a profile; None asks for nothing. Fractions, not percent.

    `skill_min` is accuracy over the base rate. `deflated_sharpe_min` is the probability that the
    Sharpe ratio is above 0 in truth, given how many strategies were tried before this one.
    """

    profile: Name = "default"
    accuracy_min: Fraction | None = 0.45
    final_loss_max: float | None = Field(default=0.8, ge=0)
    loss_decrease_min: float | None = Field(default=0.2, le=1)
    skill_min: float | None = Field(default=None, ge=-1, le=1)
    win_rate_min: Fraction | None = 0.45
    max_drawdown_max: float | None = Field(default=0.4, ge=0)
    sharpe_ratio_min: float | None = -0.5
    deflated_sharpe_min: Fraction | None = None


DEFAULT = GateThresholds()
STRICT = GateThresholds(profile="strict", skill_min=0.01, deflated_sharpe_min=0.95)
"""Asks for skill, and for more of it the more strategies were tried."""


class GateCheck(Value):
    """One rule of a gate: what it saw (None: not defined), against which threshold."""

    rule: Name
    passed: bool
    value: float | None
    threshold: float
    reason: Text


class GateResult(Value):
    """A gate's verdict. `reason` is empty where it passed, else names every rule that failed:
    `Training gate failed: accuracy_below_threshold (42.3% < 45.0%)`.
    """

    gate: Literal["training", "backtest"]
    profile: Name
    passed: bool
    checks: tuple[GateCheck, ...] = Field(max_length=CHECKS_MAX)
    reason: Text = ""
