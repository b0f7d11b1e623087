"""An arm's stated confidences as probabilities, as they are shown. Pure."""

from collections.abc import Sequence

from contracts.study_score import CalibrationScore, NoCalibration, ReliabilityPoint
from libs.study.statistics.calibration import Stated, calibration
from libs.study.statistics.means import TooFewDates
from libs.study.statistics.shown import shown


def calibrated(
    arm: str, stated: Sequence[Stated], overlap: int
) -> CalibrationScore | NoCalibration:
    """How far the arm's confidences can be trusted."""
    if not stated:
        return NoCalibration(arm=arm, why="no pick of it that could be scored states a confidence")
    try:
        result = calibration(stated, overlap)
    except TooFewDates as few:
        why = f"{few.dates} dates with a stated confidence, needs {few.needed}"
        return NoCalibration(arm=arm, why=why)
    return CalibrationScore(
        arm=arm,
        score=result.score,
        miscalibration=result.miscalibration,
        discrimination=result.discrimination,
        uncertainty=result.uncertainty,
        skill=result.skill,
        overconfidence=shown(lambda: result.overconfidence),
        outcomes=result.outcomes,
        curve=tuple(
            ReliabilityPoint(
                stated=point.stated, happened=point.happened, low=point.low, high=point.high
            )
            for point in result.curve
        ),
    )
