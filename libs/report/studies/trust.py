"""The sections on how far an arm's word can be trusted: agreement and calibration. Pure."""

from collections.abc import Iterator

from contracts.study_score import CalibrationScore, Measure, StudyScore
from libs.report.studies import words
from libs.report.studies.parts import Cell, Column, Missing, Reliability, Section, Table


def missing(score: StudyScore) -> Iterator[Missing]:
    """The parts that the sections below do not show."""
    if not score.stability:
        yield Missing("stability", "it needs more than one sample of a date")
    for it in score.calibration:
        if not isinstance(it, CalibrationScore):
            yield Missing(f"calibration of {it.arm}", it.why)


def stability(score: StudyScore) -> Section | None:
    """The agreement of samples; None where no date has two."""
    if not score.stability:
        return None
    columns = (
        *(Column("arm"), Column("samples", right=True), Column("choices", right=True)),
        *(Column("agreement", right=True), Column("spread of weights", right=True)),
        Column("stable", right=True),
    )
    rows = [
        [
            Cell(it.arm, arm=it.arm),
            Cell(f"{it.samples}"),
            Cell(f"{it.choices:,}", arm=it.arm),
            Cell(words.share(it.agreement)),
            Cell(words.share(it.spread)),
            Cell(words.share(it.stable)),
        ]
        for it in score.stability
    ]
    return Section(
        "Stability",
        "Whether samples of the same evidence agree, over assets that any of them bought. Spread:"
        " the standard deviation of a weight as a part of its mean. Stable: four of five agree, and"
        " the spread is at most 50%.",
        [Table(columns, rows)],
    )


def calibration(score: StudyScore) -> Section | None:
    """Confidences as probabilities; None where no arm's could be scored."""
    columns = (
        *(Column("arm"), Column("outcomes", right=True), Column("Brier score", right=True)),
        *(
            Column("miscalibration", right=True, wide=True),
            Column("discrimination", right=True, wide=True),
        ),
        *(Column("uncertainty", right=True, wide=True), Column("skill", right=True)),
        *(Column("overconfidence", right=True), Column("95% interval")),
    )
    rows, curves = [], []
    for it in score.calibration:
        if not isinstance(it, CalibrationScore):
            continue  # the last section says why
        over = it.overconfidence
        rows.append(
            [
                Cell(it.arm, arm=it.arm),
                Cell(f"{it.outcomes:,}", arm=it.arm),
                Cell(f"{it.score:.4f}"),
                Cell(f"{it.miscalibration:.4f}"),
                Cell(f"{it.discrimination:.4f}"),
                Cell(f"{it.uncertainty:.4f}"),
                Cell("" if it.skill is None else f"{it.skill:+.3f}"),
                words.estimate(over, words.points, it.arm),
                Cell(words.interval(over, Measure.HITS)),
            ]
        )
        curves.append(
            Reliability(it.arm, [(p.stated, p.happened, p.low, p.high) for p in it.curve])
        )
    if not rows:
        return None
    return Section(
        "Calibration",
        "The trader's confidence in a pick as the probability that it beats the benchmark over the"
        " horizon. Each arm is scored on all of its own picks: two arms' scores are not of the same"
        " picks. Score = miscalibration - discrimination + uncertainty; on the diagonal as much"
        " came true as was stated; the band is the 95% interval of each point, if no less comes"
        " true where more is stated. Overconfidence: what was stated above that, in points.",
        [Table(columns, rows)],
        reliability=[curve for curve in curves if curve.points],
    )
