"""The desk's own audit: the tests and columns by which others judge a desk of models. Pure.

Tests: The Alpha Illusion (arXiv 2605.16895). Columns: Beyond Agent Architecture (arXiv 2606.08285).
What this study does not answer says `not shown`, and why.
"""

from contracts.study import StudyKind
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
from libs.study.report import words
from libs.study.report.lookahead import NO_PAIR, unseen

NOT_SHOWN = "not shown"
PATH_SHOWS_NOT = "a study of kind picks shows it"


def audit(score: StudyScore) -> tuple[AuditRow, ...]:
    """Six tests and seven columns, each with what the study answers and the command that prints
    it."""
    study = score.study
    if study is None:
        return ()
    is_path = study.kind is StudyKind.PATH
    command = f"deskbus study score {study.name}"

    def row(name: str, answer: str, why: str = "", printed_by: str = command) -> AuditRow:
        """An answer, or `why` there is none: a path lacks all that a study of picks may lack."""
        why = PATH_SHOWS_NOT if is_path and name != "split transparency" else why
        return AuditRow(
            kind=AuditKind.TEST if name.startswith("P") else AuditKind.COLUMN,
            name=name,
            answer=answer or f"{NOT_SHOWN}: {why}",
            shown=bool(answer),
            command=printed_by if answer else "",
        )

    costs = f"{score.cost_bps:g} basis points a side"
    costs = "the paper broker's fees and slippage" if is_path else costs
    strata = f", {study.dates.count} drawn in strata" if study.dates.count else ""
    what = "sessions" if score.equity else "dates"
    span = f"{score.dates:,} {what}, {score.first} to {score.last}{strata}"
    too_few = "no model has enough dates on both sides of its knowledge cutoff"
    return (
        row("P1 temporal integrity", _temporal(score), unseen(score)),
        row("P2 frictions", f"{costs}, filled at the open after the decision"),
        row("P3 counterfactual robustness", _counterfactual(score), NO_PAIR),
        row(
            "P4 predictive calibration",
            _calibration(score),
            "too few dates with stated confidences",
        ),
        row(
            "P5 numerical execution",
            "code computes, sizes and places every order; models only name facts",
            printed_by="deskbus cycle replay CYCLE",
        ),
        row("P6 multi-agent disaggregation", _agents(score), "no arm is without an agent's model"),
        row("point-in-time controls", "every read is cut at the decision's close"),
        row("split transparency", span if score.first else "", "no date was scored"),
        row(
            "held-out period",
            _held_out(score),
            too_few if score.cutoffs else "no arm asks a model",
        ),
        row("cost and turnover", f"{costs}; {_invested(score)}"),
        row(
            "execution semantics",
            "market orders at the next open, whole shares, rules that may only cut",
        ),
        row(
            "universe definition",
            f"{len(study.universe)} listed tickers, fixed",
            printed_by=f"deskbus study status {study.name}",
        ),
        row(
            "artefact release",
            f"the file ({study.sha256[:12]}), every cycle with its journal, this report",
            printed_by=f"deskbus study report {study.name}",
        ),
    )


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


def _invested(score: StudyScore) -> str:
    arms = [arm for arm in score.arms if not arm.control]
    return ", ".join(f"{arm.name} {words.share(arm.invested)} invested" for arm in arms)


def _confident(over: Estimate) -> str:
    """Which way stated confidences err, by how much, and whether that is resolved."""
    way = "overconfident" if over.estimate > 0 else "underconfident"
    resolved = "" if over.resolved else ", not resolved"
    return f"{way} by {words.points(abs(over.estimate)).lstrip('+')} points{resolved}"
