"""Stated probabilities: what they are worth."""

from datetime import date, timedelta

import numpy as np
import pytest

from libs.study.statistics.calibration import (
    Stated,
    calibration,
    overconfidence,
)


def stated(dates: int, promised_more: float, seed: int = 0) -> list[Stated]:
    """Five picks a date with 40 to 90 %, of which less comes true by `promised_more`."""
    random = np.random.default_rng(seed)
    rows = []
    for day in range(dates):
        for chance in random.uniform(0.4, 0.9, 5):
            happened = bool(random.random() < chance - promised_more)
            rows.append(Stated(date(2010, 1, 4) + timedelta(days=day), float(chance), happened))
    return rows


def test_its_parts_add_up_to_briers_score():
    from sklearn.metrics import brier_score_loss  # noqa: PLC0415 - two seconds

    rows = stated(60, 0.1)
    result = calibration(rows)
    score = brier_score_loss([row.happened for row in rows], [row.probability for row in rows])
    assert result.score == pytest.approx(score)
    parts = result.miscalibration - result.discrimination + result.uncertainty
    assert parts == pytest.approx(result.score)
    assert result.miscalibration >= 0
    assert result.discrimination >= 0


def test_promises_that_are_too_high_are_convicted_and_honest_ones_acquitted():
    assert calibration(stated(60, 0.15)).overconfidence.low > 0
    assert not calibration(stated(60, 0.0)).overconfidence.resolved


def test_honest_promises_are_convicted_in_five_of_a_hundred_studies():
    alarms = [overconfidence(stated(20, 0.0, seed)).resolved for seed in range(400)]
    assert np.mean(alarms) == pytest.approx(0.05, abs=0.033)


def test_the_curve_rises_and_lies_within_its_band():
    curve = calibration(stated(60, 0.1)).curve
    happened = [point.happened for point in curve]
    assert happened == sorted(happened)
    assert all(0 <= point.low <= point.happened <= point.high <= 1 for point in curve)


@pytest.mark.slow
@pytest.mark.parametrize(("dates", "promised_more"), [(8, 0.0), (20, 0.1), (60, 0.0)])
def test_the_curves_interval_holds_what_comes_true_however_few_the_dates(dates, promised_more):
    held = [
        point.low <= point.stated - promised_more <= point.high
        for seed in range(100)
        for point in calibration(stated(dates, promised_more, seed)).curve
    ]
    assert np.mean(held) >= 0.93


def test_where_horizons_overlap_the_curves_interval_is_wider():
    rows = stated(120, 0.0)
    alone, together = (calibration(rows, overlap).curve for overlap in (1, 5))
    reach = [[point.high - point.low for point in curve] for curve in (alone, together)]
    assert all(one < other for one, other in zip(*reach, strict=True))


def test_only_what_always_came_true_has_no_skill_to_speak_of():
    rows = [Stated(row.on, row.probability, True) for row in stated(20, 0.0)]
    assert calibration(rows).skill is None
