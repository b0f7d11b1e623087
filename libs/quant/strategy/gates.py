"""The gates of the strategy cycle: declared rules over results, each with a value and a reason.

Most designs fail one on real prices. That is a well-explained end and not an error: the result
names every rule that failed, with the value and the threshold.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

from contracts.gate import GateCheck, GateResult, GateThresholds
from contracts.strategy_result import BacktestResult, TrainingResult

ResultT = TypeVar("ResultT")
DIGITS_MAX = 9
# A loss from 1.0 to 0.8 has fallen by 20%, which floats make 19.999999999999996%.
_BLUR = 1e-12


@dataclass(frozen=True, slots=True)
class GateRule(Generic[ResultT]):
    """One row of a gate: what it looks at, and the threshold that is its `least` or its most.

    `percent` says how the value is shown; `undefined` why there may be none.
    """

    name: str
    value: Callable[[ResultT], float | None]
    threshold: Callable[[GateThresholds], float | None]
    least: bool
    percent: bool = False
    undefined: str = "it is not defined"


TRAINING_RULES: tuple[GateRule[TrainingResult], ...] = (
    GateRule("accuracy", lambda r: r.accuracy, lambda t: t.accuracy_min, least=True, percent=True),
    GateRule("final_loss", lambda r: r.final_loss, lambda t: t.final_loss_max, least=False),
    GateRule(
        "loss_decrease",
        lambda r: r.loss_decrease,
        lambda t: t.loss_decrease_min,
        least=True,
        percent=True,
    ),
    GateRule("skill", lambda r: r.skill, lambda t: t.skill_min, least=True, percent=True),
)
BACKTEST_RULES: tuple[GateRule[BacktestResult], ...] = (
    GateRule(
        "win_rate",
        lambda r: r.win_rate,
        lambda t: t.win_rate_min,
        least=True,
        percent=True,
        undefined="no trade was closed",
    ),
    GateRule(
        "max_drawdown",
        lambda r: r.max_drawdown,
        lambda t: t.max_drawdown_max,
        least=False,
        percent=True,
    ),
    GateRule(
        "sharpe_ratio",
        lambda r: r.sharpe_ratio,
        lambda t: t.sharpe_ratio_min,
        least=True,
        undefined="the equity never changed",
    ),
    GateRule(
        "deflated_sharpe",
        lambda r: r.deflated_sharpe,
        lambda t: t.deflated_sharpe_min,
        least=True,
        percent=True,
        undefined="the equity never changed, or nobody counted what was tried",
    ),
)

PERCENT = frozenset(
    [rule.name for rule in TRAINING_RULES if rule.percent]
    + [rule.name for rule in BACKTEST_RULES if rule.percent]
)
"""The rules whose values are fractions, shown in percent."""


def training_gate(result: TrainingResult, thresholds: GateThresholds) -> GateResult:
    """Judge whether the model is worth a backtest."""
    return _gate("training", TRAINING_RULES, result, thresholds)


def backtest_gate(result: BacktestResult, thresholds: GateThresholds) -> GateResult:
    """Judge whether the strategy is worth an assessment."""
    return _gate("backtest", BACKTEST_RULES, result, thresholds)


def _gate(
    name: Literal["training", "backtest"],
    rules: Sequence[GateRule[ResultT]],
    result: ResultT,
    thresholds: GateThresholds,
) -> GateResult:
    limits = [(rule, rule.threshold(thresholds)) for rule in rules]
    checks = tuple(
        _check(rule, rule.value(result), limit) for rule, limit in limits if limit is not None
    )
    failed = [check.reason for check in checks if not check.passed]
    return GateResult(
        gate=name,
        profile=thresholds.profile,
        passed=not failed,
        checks=checks,
        reason=f"{name.capitalize()} gate failed: {'; '.join(failed)}" if failed else "",
    )


def _check(rule: GateRule[ResultT], value: float | None, limit: float) -> GateCheck:
    if value is None:
        passed, reason = False, f"{rule.name}_not_defined ({rule.undefined})"
    else:
        passed = value >= limit - _BLUR if rule.least else value <= limit + _BLUR
        reason = _reason(rule, value, limit, passed=passed)
    return GateCheck(rule=rule.name, passed=passed, value=value, threshold=limit, reason=reason)


def _reason(rule: GateRule[ResultT], value: float, limit: float, *, passed: bool) -> str:
    sign = (">=" if rule.least else "<=") if passed else ("<" if rule.least else ">")
    left, against = _apart(value, limit, percent=rule.percent)
    comparison = f"({left} {sign} {against})"
    if passed:
        return f"{rule.name} {comparison}"
    return f"{rule.name}_{'below' if rule.least else 'above'}_threshold {comparison}"


def _apart(value: float, limit: float, *, percent: bool) -> tuple[str, str]:
    """Both as text, with as many digits as tell them apart: 45.0% < 45.0% would say nothing.

    Counts have no digits: 173 < 200.
    """
    if isinstance(value, int) and isinstance(limit, int):
        return str(value), str(limit)
    digits = 1 if percent else 2
    while True:
        form = f".{digits}{'%' if percent else 'f'}"
        left, against = format(value, form), format(limit, form)
        if left != against or digits == DIGITS_MAX:
            return left, against
        digits += 1
