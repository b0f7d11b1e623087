"""The assessment by rules: stated thresholds over the results, saved through the same tool.

Promising: a Sharpe ratio of at least 0.8 that is above the benchmark's and, given how many were
tried, no luck with a probability of 95%; and accuracy over the base rate. Poor: a loss, or a Sharpe
ratio below 0. Mediocre: what lies between.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import JsonValue

from contracts.strategy_result import AssessmentDraft, Verdict
from libs.llm.rules.rule_set import EvidenceIndex, RuleSet, TaskData, ToolRequest, labelled

SAVE_ASSESSMENT = "save_assessment"
PROMISING_SHARPE = 0.8
NO_LUCK = 0.95
"""The least deflated Sharpe ratio, where strategies were counted."""
POINTS_MIN, POINTS_MAX = 2, 4
OTHERWISE = (
    (
        "all results are out of sample",
        "the backtest includes costs and fills at the next open",
    ),
    (
        "one period of one market is weak evidence",
        "not tested with doubled costs",
    ),
    ("test it on other tickers", "test it on another period"),
)
"""What is always true, said where the figures give too few strengths, weaknesses, suggestions."""
Point = tuple[bool, str, str]
"""Whether it speaks for the strategy, what is said then, and what is said else."""


def ask(task: TaskData) -> Sequence[ToolRequest]:
    """One call: save what the figures say."""
    draft = assess(task["training"], task["backtest"])
    arguments: dict[str, JsonValue] = draft.model_dump(mode="json")
    return (ToolRequest(SAVE_ASSESSMENT, arguments),)


def assess(training: Any, backtest: Any) -> AssessmentDraft:
    """The assessment of these figures."""
    points = _points(training, backtest)
    return AssessmentDraft(
        verdict=_verdict(training, backtest),
        strengths=_two_to_four([good for speaks, good, _ in points if speaks], OTHERWISE[0]),
        weaknesses=_two_to_four([bad for speaks, _, bad in points if not speaks], OTHERWISE[1]),
        suggestions=_two_to_four(_suggestions(training, backtest), OTHERWISE[2]),
    )


def _verdict(training: Mapping[str, Any], backtest: Mapping[str, Any]) -> Verdict:
    sharpe = backtest["sharpe_ratio"]
    if sharpe is None or sharpe < 0 or backtest["total_return"] <= 0:
        return Verdict.POOR
    better = sharpe > (backtest["benchmark_sharpe_ratio"] or 0)
    skilled = training["accuracy"] > training["base_rate"]
    no_luck = backtest["deflated_sharpe"] is None or backtest["deflated_sharpe"] >= NO_LUCK
    promising = sharpe >= PROMISING_SHARPE and better and skilled and no_luck
    return Verdict.PROMISING if promising else Verdict.MEDIOCRE


def _points(training: Mapping[str, Any], backtest: Mapping[str, Any]) -> Sequence[Point]:
    sharpe, benchmark = backtest["sharpe_ratio"], backtest["benchmark_sharpe_ratio"]
    skilled = training["accuracy"] > training["base_rate"]
    better = (sharpe or 0) > (benchmark or 0)
    against = "accuracy {training.accuracy}, base rate {training.base_rate}"
    own, held = _named(backtest, "sharpe_ratio"), _named(backtest, "benchmark_sharpe_ratio")
    ratios = f"Sharpe ratio {own}, buy-and-hold {held}"
    gain = "total return {backtest.total_return}, buy-and-hold {backtest.benchmark_return}"
    fall = "max drawdown {backtest.max_drawdown}"
    return (
        (
            skilled,
            f"accuracy is above the base rate: {against}",
            f"accuracy is not above the base rate: {against}",
        ),
        (better, f"higher risk-adjusted return: {ratios}", f"lower risk-adjusted return: {ratios}"),
        *_luck(backtest),
        (
            backtest["total_return"] > 0,
            f"profitable after costs: {gain}",
            f"a loss after costs: {gain}",
        ),
        (backtest["max_drawdown"] < 0.2, f"shallow drawdown: {fall}", f"deep drawdown: {fall}"),
    )


def _luck(backtest: Mapping[str, Any]) -> Sequence[Point]:
    probability = backtest["deflated_sharpe"]
    if probability is None:
        return ()
    tried = "{backtest.trials}, deflated Sharpe ratio {backtest.deflated_sharpe}"
    return ((probability >= NO_LUCK, f"unlikely to be luck: {tried}", f"may be luck: {tried}"),)


def _suggestions(training: Mapping[str, Any], backtest: Mapping[str, Any]) -> Sequence[str]:
    suggestions = []
    if training["accuracy"] <= training["base_rate"]:
        suggestions.append("choose other features: these predict no better than the base rate")
    if training["final_loss"] < 0.8 * training["log_loss"]:
        suggestions.append(
            "reduce overfitting: fewer or shallower trees, fewer epochs, a larger penalty"
        )
    if backtest["turnover"] > 20:
        suggestions.append("trade less: a turnover of {backtest.turnover} per year pays costs")
    suggestions.append("re-test on a new held-out period before trusting it")
    return suggestions


def _two_to_four(points: Sequence[str], further: Sequence[str]) -> tuple[str, ...]:
    """Two to four, the first ones; too few are filled up with what is always true."""
    full = [*points, *further]
    count = min(max(len(points), POINTS_MIN), POINTS_MAX)
    return tuple(labelled(point) for point in full[:count])


def _named(backtest: Mapping[str, Any], name: str) -> str:
    return "not defined" if backtest[name] is None else f"{{backtest.{name}}}"


def answer(task: TaskData, evidence: EvidenceIndex) -> AssessmentDraft:
    """The same assessment where it is asked for as an answer."""
    del evidence
    return assess(task["training"], task["backtest"])


RULES = RuleSet(answer=answer, ask=ask)
