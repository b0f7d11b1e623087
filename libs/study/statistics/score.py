"""The score of a study of independent cells (`picks`). Pure; the same for the same record.

Every comparison is one number a date (choices.py), and the mean over dates of it (means.py).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import isfinite

import numpy as np

from contracts.study_score import (
    LEFT_OUT_MAX,
    ArmScore,
    Estimate,
    Foresight,
    LeakVerdict,
    Measure,
    NotShown,
    PairedDifference,
    RankInterval,
    Shown,
    StudyScore,
)
from libs.study.statistics.calibration import calibrated
from libs.study.statistics.canary import CANARY_SESSIONS
from libs.study.statistics.choices import Choices, choices, equal_weight, of_weights, seen_ahead
from libs.study.statistics.foresight import foresight, permuted
from libs.study.statistics.means import mean_over_dates
from libs.study.statistics.outcomes import StudyOutcomes, outcomes
from libs.study.statistics.paired import (
    PairedOutcome,
    difference,
    every_two,
    hit_difference,
    rank_intervals,
)
from libs.study.statistics.record import Decided, StudyRecord
from libs.study.statistics.shown import shown, thinned
from libs.study.statistics.treatments import (
    agent_gaps,
    cutoff_gaps,
    leakage,
    mask_gaps,
    probes,
    stability,
)

EQUAL_WEIGHT = "equal weight"
"""The control that everybody knows: equal parts of the universe, held without costs."""
COIN = 0.5
"""The share of right choices that nobody needs to know anything for."""


@dataclass(frozen=True, slots=True)
class Scored:
    """An arm with its choices at the horizon that is scored, and over the week after each date."""

    decided: Sequence[Decided]
    chosen: Choices
    week: Choices


def score_picks(recorded: StudyRecord) -> StudyScore:
    """All that the cells show at one horizon, cost and benchmark."""
    study = recorded.study
    arms = recorded.by_arm()
    dates = [one.on for one in recorded.decided]
    at = partial(outcomes, dates, study.universe, recorded.bars, recorded.sessions)
    of, week = (
        at(sessions, recorded.benchmark) for sessions in (recorded.horizon, CANARY_SESSIONS)
    )
    scored = {
        name: Scored(
            decided,
            choices(decided, of, recorded.cost_bps),
            choices(decided, week, recorded.cost_bps),
        )
        for name, decided in arms.items()
    }
    canary = foresight(seen_ahead(week), week, canary_lit=True)
    lit = isinstance(canary, Foresight) and canary.verdict is LeakVerdict.LEAKS
    equal = of_weights(equal_weight(of), of)
    compared = {name: it.chosen for name, it in scored.items()} | {EQUAL_WEIGHT: equal}
    differences = paired(compared, of)
    own = [_arm(recorded, name, it, of, week, canary_lit=lit) for name, it in scored.items()]
    gaps, asked = mask_gaps(study.arms, compared, of), probes(study.arms, recorded.probed)
    return StudyScore(
        **recorded.heading,
        dates=len(of.dates),
        first=min(of.dates, default=None),
        last=max(of.dates, default=None),
        overlap=of.overlap,
        left_out=of.left_out[:LEFT_OUT_MAX],
        left_out_more=max(len(of.left_out) - LEFT_OUT_MAX, 0),
        arms=(*own, _control(EQUAL_WEIGHT, equal, of)),
        canary=canary,
        differences=tuple(differences),
        ranks=tuple(_ranks(differences)),
        masked=gaps,
        probes=asked,
        leakage=leakage(study.arms, own, gaps, asked),
        agents=agent_gaps(study.arms, compared, of),
        cutoffs=cutoff_gaps(recorded.cutoffs, compared, of),
        stability=stability(arms),
        calibration=tuple(
            calibrated(name, it.chosen.stated, of.overlap) for name, it in scored.items()
        ),
        points=thinned(of.dates),
    )


def paired(compared: Mapping[str, Choices], of: StudyOutcomes) -> Sequence[PairedDifference]:
    """Every two arms by each measure, over what both have. A measure that an arm has not, as a
    control without confidences, is left out for it."""
    return [
        PairedDifference(
            measure=measure,
            first=first,
            second=second,
            difference=_difference(pairs, measure, of.overlap),
            compared=len(pairs),
            differing=sum(pair.first != pair.second for pair in pairs),
        )
        for measure in Measure
        for first, second in every_two(name for name, one in compared.items() if _has(one, measure))
        for pairs in (_pairs(compared[first], compared[second], measure, of),)
    ]


def _difference(pairs: Sequence[PairedOutcome], measure: Measure, overlap: int) -> Shown:
    # The same choices are a result: neither arm is better. Two losses are the same where both arms
    # state the same confidence, whatever that is worth: it says nothing of either.
    if measure is Measure.BRIER and all(pair.first == pair.second for pair in pairs):
        why = "no pick of both has a stated confidence"
        if pairs:
            why = "both state the same confidence in all picks of both"
        return NotShown(why=why)
    test = hit_difference if measure is Measure.HITS else difference
    return shown(lambda: test(pairs, overlap))


def _has(chosen: Choices, measure: Measure) -> bool:
    return measure is not Measure.BRIER or bool(np.isfinite(chosen.loss).any())


def _pairs(
    first: Choices, second: Choices, measure: Measure, of: StudyOutcomes
) -> list[PairedOutcome]:
    if measure is Measure.EXCESS:
        rows = zip(of.dates, first.excess, second.excess, strict=True)
        return [PairedOutcome(on, a, b) for on, a, b in rows if isfinite(a) and isfinite(b)]
    one, other = (first.hit, second.hit) if measure is Measure.HITS else (first.loss, second.loss)
    return [
        PairedOutcome(of.dates[row], float(one[row, asset]), float(other[row, asset]))
        for row, asset in np.argwhere(np.isfinite(one) & np.isfinite(other))
    ]


def _ranks(differences: Sequence[PairedDifference]) -> Iterator[RankInterval]:
    for measure in Measure:
        of = [it for it in differences if it.measure is measure]
        estimates = {
            (it.second, it.first) if measure is Measure.BRIER else (it.first, it.second): mean
            for it in of
            if isinstance(mean := it.difference, Estimate)
        }
        if len(estimates) == len(of):  # else an arm could not be compared: it has no place
            yield from rank_intervals(measure, estimates)


def _arm(
    recorded: StudyRecord,
    name: str,
    scored: Scored,
    of: StudyOutcomes,
    week: StudyOutcomes,
    *,
    canary_lit: bool,
) -> ArmScore:
    return recorded.arm_score(
        name,
        scored.decided,
        hits=_hits(scored.chosen, of),
        excess=_excess(scored.chosen, of),
        permuted=permuted(scored.chosen.weight, of, recorded.study.seed),
        foresight=foresight(scored.week.weight, week, canary_lit=canary_lit),
        curve=_curve(scored.chosen),
    )


def _control(name: str, chosen: Choices, of: StudyOutcomes) -> ArmScore:
    none = NotShown(why="a control")
    return ArmScore(
        name=name,
        control=True,
        invested=1.0,
        hits=_hits(chosen, of),
        excess=_excess(chosen, of),
        permuted=none,
        foresight=none,
        curve=_curve(chosen),
    )


def _hits(chosen: Choices, of: StudyOutcomes) -> Shown:
    rows = [row[np.isfinite(row)] for row in chosen.hit]
    above = [float(row.mean()) - COIN for row in rows if len(row)]
    return shown(lambda: mean_over_dates(above, of.overlap), around=COIN)


def _excess(chosen: Choices, of: StudyOutcomes) -> Shown:
    values = chosen.excess[chosen.decided]
    return shown(lambda: mean_over_dates(values, of.overlap))


def _curve(chosen: Choices) -> tuple[float, ...]:
    """The sum of excess returns up to each date; a date without a decision adds nothing."""
    return thinned([float(value) for value in np.nancumsum(chosen.excess)])
