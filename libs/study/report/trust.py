"""The sections on how far an arm's word can be trusted: agreement, calibration, and what each
agent's model brings. Pure."""

from collections.abc import Iterator

from contracts.study_score import CalibrationScore, StudyScore
from libs.report.view import table
from libs.study.report import words
from libs.study.report.parts import Missing, StudySection, numbers, text


def missing(score: StudyScore) -> Iterator[Missing]:
    """The parts that the sections below do not show."""
    if not score.stability:
        yield Missing("stability", "it needs more than one sample of a date")
    for it in score.calibration:
        if not isinstance(it, CalibrationScore):
            yield Missing(f"calibration of {it.arm}", it.why)


def agents(score: StudyScore) -> StudySection | None:
    """The rows of what agents bring; None where no arm is without one."""
    if not score.agents:
        return None
    columns = (
        *text("Agent", "With it", "Without"),
        *numbers("Right choices"),
        *text("95% interval", spare=1),
        *numbers("Excess"),
        *text("95% interval"),
        *numbers("q", "Changed"),
        *text("Verdict"),
    )
    rows = [
        (
            ", ".join(gap.stages),
            words.arm(gap.arm),
            words.arm(gap.less),
            *words.measured(gap.hits, words.points),
            *words.measured(gap.excess, words.gain),
            words.tested(gap.excess)[1],
            words.share(gap.changed),
            words.verdict(gap.excess),
        )
        for gap in score.agents
    ]
    return StudySection(
        "Agents",
        "An arm less the same in which the rules speak in an agent's place: what its model brings,"
        " in percentage points of right choices and in excess return of a decision. Changed:"
        " choices that are others without it. The verdict is by excess.",
        [table(columns, rows)],
    )


def stability(score: StudyScore) -> StudySection | None:
    """The agreement of samples; None where no date has two."""
    if not score.stability:
        return None
    figures = ("Samples", "Choices", "Agreement", "Spread of weights", "Stable")
    rows = [
        (
            words.arm(it.arm),
            f"{it.samples}",
            f"{it.choices:,}",
            words.share(it.agreement),
            words.share(it.spread),
            words.share(it.stable),
        )
        for it in score.stability
    ]
    return StudySection(
        "Stability",
        "Whether samples of the same evidence agree, over assets that any of them bought. Spread:"
        " the standard deviation of a weight as a part of its mean. Stable: four of five agree, and"
        " the spread is at most 50%.",
        [table((*text("Arm"), *numbers(*figures)), rows)],
    )


def calibration(score: StudyScore) -> StudySection | None:
    """Confidences as probabilities; None where no arm's could be scored: the last section says
    why."""
    scored = [it for it in score.calibration if isinstance(it, CalibrationScore)]
    if not scored:
        return None
    columns = (
        *text("Arm"),
        *numbers("Outcomes", "Brier score"),
        *numbers("Miscalibration", "Discrimination", "Uncertainty", spare=1),
        *numbers("Skill", "Overconfidence"),
        *text("95% interval"),
    )
    rows = [
        (
            words.arm(it.arm),
            f"{it.outcomes:,}",
            f"{it.score:.4f}",
            f"{it.miscalibration:.4f}",
            f"{it.discrimination:.4f}",
            f"{it.uncertainty:.4f}",
            "" if it.skill is None else f"{it.skill:+.3f}",
            *words.measured(it.overconfidence, words.points),
        )
        for it in scored
    ]
    return StudySection(
        "Calibration",
        "The trader's confidence in a pick as the probability that it beats the benchmark over the"
        " horizon. Each arm is scored on all of its own picks: two arms' scores are not of the same"
        " picks. Score = miscalibration - discrimination + uncertainty; on the diagonal as much"
        " came true as was stated; the band is the 95% interval of each point, if no less comes"
        " true where more is stated. Overconfidence: what was stated above that, in points.",
        [table(columns, rows)],
        reliability=[it for it in scored if it.curve],
    )
