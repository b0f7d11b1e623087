"""The sections on how far an arm's word can be trusted: agreement and calibration. Pure."""

from contracts.study_score import CalibrationScore, Measure, StudyScore
from libs.report.studies import words
from libs.report.studies.parts import Cell, Column, Reliability, Section, Table


def stability(score: StudyScore) -> Section:
    """The agreement of samples."""
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
    notes = () if rows else ("not shown: it needs more than one sample of a date",)
    return Section(
        "Stability",
        "Whether samples of the same evidence agree, over assets that any of them bought. Spread:"
        " the standard deviation of a weight as a part of its mean. Stable: four of five agree, and"
        " the spread is at most 50%.",
        [Table(columns, rows)] if rows else (),
        notes=notes,
    )


def calibration(score: StudyScore) -> Section:
    """Confidences as probabilities."""
    columns = (
        *(Column("arm"), Column("outcomes", right=True), Column("Brier score", right=True)),
        *(
            Column("miscalibration", right=True, wide=True),
            Column("discrimination", right=True, wide=True),
        ),
        *(Column("uncertainty", right=True, wide=True), Column("skill", right=True)),
        *(Column("overconfidence", right=True), Column("95% interval")),
    )
    rows, notes, curves = [], [], []
    for it in score.calibration:
        if not isinstance(it, CalibrationScore):
            notes.append(f"{it.arm}: not shown, {it.why}")
            continue
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
    return Section(
        "Calibration",
        "The trader's confidence in a pick as the probability that it beats the benchmark over the"
        " horizon. Score = miscalibration - discrimination + uncertainty; on the diagonal as much"
        " came true as was stated; the band is the 95% interval of each point, if no less comes"
        " true where more is stated. Overconfidence: what was stated above that, in points.",
        [Table(columns, rows)] if rows else (),
        reliability=[curve for curve in curves if curve.points],
        notes=notes,
    )
