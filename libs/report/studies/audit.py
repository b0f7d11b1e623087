"""The desk's own audit: the tests and columns by which others judge a desk of models. Pure.

Tests: The Alpha Illusion (arXiv 2605.16895). Columns: Beyond Agent Architecture (arXiv 2606.08285).
What this study does not answer says `not shown`, and why.
"""

from collections.abc import Sequence

from contracts.study import Study, StudyKind
from contracts.study_score import (
    AuditKind,
    AuditRow,
    CalibrationScore,
    Estimate,
    Foresight,
    LeakVerdict,
    StudyScore,
)
from libs.facts import amounts
from libs.report.studies import words
from libs.report.studies.lookahead import NO_PAIR, unseen

NOT_SHOWN = "not shown"
PATH_SHOWS_NOT = "a study of kind picks shows it"
MISSING = {
    "P3 counterfactual robustness": NO_PAIR,
    "P4 predictive calibration": "too few dates with stated confidences",
    "P6 multi-agent disaggregation": "no arm is without an agent's model",
    "split transparency": "no date was scored",
    "held-out period": "no model has enough dates on both sides of its knowledge cutoff",
}
"""What a study of picks lacks where it does not answer."""


def audit(score: StudyScore) -> tuple[AuditRow, ...]:
    """Six tests and seven columns, each with what the study answers and the command that prints
    it."""
    study = score.study
    if study is None:
        return ()
    command = f"deskbus study score {study.name}"
    rows = [*_tests(score, study), *_columns(score, study)]
    return tuple(
        AuditRow(
            kind=kind,
            name=name,
            answer=answer or f"{NOT_SHOWN}: {_why_not(name, score, study)}",
            shown=bool(answer),
            command=(other or command) if answer else "",
        )
        for kind, name, answer, other in rows
    )


def _why_not(name: str, score: StudyScore, study: Study) -> str:
    if study.kind is StudyKind.PATH and name != "split transparency":
        return PATH_SHOWS_NOT
    if name == "P1 temporal integrity":
        return unseen(score)
    if name == "held-out period" and not score.cutoffs:
        return "no arm asks a model"
    return MISSING[name]


Row = tuple[AuditKind, str, str, str]


def _tests(score: StudyScore, study: Study) -> Sequence[Row]:
    test = AuditKind.TEST
    return (
        (test, "P1 temporal integrity", _temporal(score), ""),
        (
            test,
            "P2 frictions",
            f"{_costs(score, study)}, filled at the open after the decision",
            "",
        ),
        (test, "P3 counterfactual robustness", _counterfactual(score), ""),
        (test, "P4 predictive calibration", _calibration(score), ""),
        (
            test,
            "P5 numerical execution",
            "code computes, sizes and places every order; models only name facts",
            "deskbus cycle replay CYCLE",
        ),
        (test, "P6 multi-agent disaggregation", _agents(score), ""),
    )


def _columns(score: StudyScore, study: Study) -> Sequence[Row]:
    column = AuditKind.COLUMN
    plan = f"deskbus study status {study.name}"
    strata = f", {study.dates.count} drawn in strata" if study.dates.count else ""
    return (
        (column, "point-in-time controls", "every read is cut at the decision's close", ""),
        (column, "split transparency", f"{_span(score)}{strata}" if score.first else "", ""),
        (column, "held-out period", _held_out(score), ""),
        (
            column,
            "cost and turnover",
            f"{_costs(score, study)}; {_invested(score)}",
            "",
        ),
        (
            column,
            "execution semantics",
            "market orders at the next open, whole shares, rules that may only cut",
            "",
        ),
        (column, "universe definition", f"{len(study.universe)} listed tickers, fixed", plan),
        (
            column,
            "artefact release",
            f"the file ({study.sha256[:12]}), every cycle with its journal, this report",
            f"deskbus study report {study.name}",
        ),
    )


def _costs(score: StudyScore, study: Study) -> str:
    if study.kind is StudyKind.PATH:
        return "the paper broker's fees and slippage"
    return f"{score.cost_bps:g} basis points a side"


def _temporal(score: StudyScore) -> str:
    verdicts = [
        (arm.name, arm.foresight.verdict)
        for arm in score.arms
        if isinstance(arm.foresight, Foresight)
    ]
    lit = isinstance(score.canary, Foresight) and score.canary.verdict is LeakVerdict.LEAKS
    if not lit or not verdicts:
        return ""
    leaks = [name for name, verdict in verdicts if verdict is LeakVerdict.LEAKS]
    if leaks:
        return f"the canary lights up red, and so do {', '.join(leaks)}"
    return f"the canary lights up red, none of {amounts.count(len(verdicts), 'arm')} does"


def _counterfactual(score: StudyScore) -> str:
    return "; ".join(
        f"{gap.named}: {words.share(gap.changed)} of choices change without names"
        for gap in score.masked
    )


def _calibration(score: StudyScore) -> str:
    return "; ".join(
        f"{one.arm}: {_confident(one.overconfidence)}"
        for one in score.calibration
        if isinstance(one, CalibrationScore) and isinstance(one.overconfidence, Estimate)
    )


def _agents(score: StudyScore) -> str:
    return "; ".join(
        f"{', '.join(gap.stages)} brings {gap.arm} {words.points(gap.hits.estimate)} points of"
        f" right choices, {'resolved' if gap.hits.resolved else 'not resolved'}"
        for gap in score.agents
        if isinstance(gap.hits, Estimate)
    )


def _held_out(score: StudyScore) -> str:
    return "; ".join(
        f"{one.arm}: after {one.cutoff}" for one in score.cutoffs if isinstance(one.gap, Estimate)
    )


def _span(score: StudyScore) -> str:
    what = "sessions" if score.equity else "dates"
    return f"{score.dates:,} {what}, {score.first} to {score.last}"


def _invested(score: StudyScore) -> str:
    arms = [arm for arm in score.arms if not arm.control]
    return ", ".join(f"{arm.name} {words.share(arm.invested)} invested" for arm in arms)


def _confident(over: Estimate) -> str:
    """Which way stated confidences err, by how much, and whether that is resolved."""
    way = "overconfident" if over.estimate > 0 else "underconfident"
    resolved = "" if over.resolved else ", not resolved"
    return f"{way} by {words.points(abs(over.estimate)).lstrip('+')} points{resolved}"
