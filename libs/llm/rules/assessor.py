"""The assessment by rules: stated thresholds over the results, saved through the same tool.

Promising: a Sharpe ratio of at least 0.8 that is above the benchmark's and, given how many were
tried, no luck with a probability of 95%; and accuracy over the base rate. Poor: a loss, or a Sharpe
ratio below 0. Mediocre: what lies between.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import JsonValue

from contracts.strategy_result import AssessmentDraft, Verdict
from libs.llm.rules.rule_set import Ask, Found, RuleSet, TaskData, said

SAVE_ASSESSMENT = "save_assessment"
PROMISING_SHARPE = 0.8
NO_LUCK = 0.95
"""The least deflated Sharpe ratio, where strategies were counted."""
POINTS_MIN, POINTS_MAX = 2, 4
OTHERWISE = (
    (
        "every figure comes from sessions that it was not trained on",
        "costs were paid in the backtest, at the open after each signal",
    ),
    (
        "one period of one market says little",
        "how it would do with costs twice as high was not tried",
    ),
    ("run it on other tickers", "run it on another period"),
)
"""What is always true, said where the figures give too few strengths, weaknesses, suggestions."""
Point = tuple[bool, str, str]
"""Whether it speaks for the strategy, what is said then, and what is said else."""


def ask(task: TaskData) -> Sequence[Ask]:
    """One call: save what the figures say."""
    draft = assess(task["training"], task["backtest"])
    arguments: dict[str, JsonValue] = draft.model_dump(mode="json")
    return (Ask(SAVE_ASSESSMENT, arguments),)


def assess(training: Any, backtest: Any) -> AssessmentDraft:
    """The assessment of these figures."""
    points = _points(training, backtest)
    return AssessmentDraft(
        verdict=_verdict(training, backtest),
        strengths=_listed([good for speaks, good, _ in points if speaks], OTHERWISE[0]),
        weaknesses=_listed([bad for speaks, _, bad in points if not speaks], OTHERWISE[1]),
        suggestions=_listed(_suggestions(training, backtest), OTHERWISE[2]),
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
    against = f"accuracy {training['accuracy']:.1%}, base rate {training['base_rate']:.1%}"
    ratios = f"Sharpe ratio {_number(sharpe)}, buy and hold {_number(benchmark)}"
    gain = f"total return {backtest['total_return']:.1%}, {backtest['benchmark_return']:.1%} held"
    fall = f"the deepest fall was {backtest['max_drawdown']:.1%}"
    return (
        (skilled, f"skill: {against}", f"no skill: {against}"),
        (better, f"better paid risk: {ratios}", f"worse paid risk: {ratios}"),
        *_luck(backtest),
        (
            backtest["total_return"] > 0,
            f"a gain after costs: {gain}",
            f"a loss after costs: {gain}",
        ),
        (backtest["max_drawdown"] < 0.2, f"falls stayed small: {fall}", f"falls were deep: {fall}"),
    )


def _luck(backtest: Mapping[str, Any]) -> Sequence[Point]:
    probability = backtest["deflated_sharpe"]
    if probability is None:
        return ()
    tried = f"{backtest['trials']} tried in all, deflated Sharpe ratio {probability:.2f}"
    return ((probability >= NO_LUCK, f"hardly luck: {tried}", f"may well be luck: {tried}"),)


def _suggestions(training: Mapping[str, Any], backtest: Mapping[str, Any]) -> Sequence[str]:
    found = []
    if training["accuracy"] <= training["base_rate"]:
        found.append("choose other features: these say no more than always saying the same")
    if training["final_loss"] < 0.8 * training["log_loss"]:
        found.append("learn less by heart: fewer or flatter trees, fewer epochs, a larger penalty")
    if backtest["turnover"] > 20:
        found.append(f"trade less: {backtest['turnover']:.0f} times the equity a year pays costs")
    found.append("hold out another period before any of it is believed")
    return found


def _listed(points: Sequence[str], further: Sequence[str]) -> tuple[str, ...]:
    """Two to four, the first ones; too few are filled up with what is always true."""
    full = [*points, *further]
    count = min(max(len(points), POINTS_MIN), POINTS_MAX)
    return tuple(said(point) for point in full[:count])


def _number(value: float | None) -> str:
    return "not defined" if value is None else f"{value:.2f}"


def answer(task: TaskData, found: Found) -> AssessmentDraft:
    """The same assessment where it is asked for as an answer."""
    del found
    return assess(task["training"], task["backtest"])


RULES = RuleSet(answer=answer, ask=ask)
