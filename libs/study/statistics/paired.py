"""Two arms of a study on the same frozen inputs: what differs, and whether it is more than luck.
Pure.

All comparisons are one statistic, the mean over dates (libs/study/statistics/means.py), of another
number a date: one arm's hits, excess returns or losses of stated probabilities, less the other's.
For one asset whose dates do not overlap McNemar's exact test says the same of hits without any
assumption, so it is used there.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import combinations

from scipy.stats import binomtest

from contracts.study_score import Estimate, Measure, RankInterval
from libs.study.statistics.means import LEVEL, Mean, mean_of_each_date


@dataclass(frozen=True, slots=True)
class PairedOutcome:
    """One asset on one date as both arms judged it: hits as 1 and 0, returns as parts, losses."""

    on: date
    first: float
    second: float


def difference(pairs: Iterable[PairedOutcome], overlap: int = 1) -> Mean:
    """How much the first arm's numbers are above the second's, a pair, assets of a date together.

    Every date counts alike, however many assets both arms judged on it. Raises TooFewDates.
    """
    return mean_of_each_date(((pair.on, pair.first - pair.second) for pair in pairs), overlap)


def hit_difference(pairs: Sequence[PairedOutcome], overlap: int = 1) -> Mean:
    """`difference` of hits; with one asset a date and no overlap p is McNemar's exact one.

    Q. McNemar, Note on the sampling error of the difference between correlated proportions,
    Psychometrika 12, 1947: the arm that alone was right would be the first in half of the pairs.
    """
    result = difference(pairs, overlap)
    if overlap > 1 or len({pair.on for pair in pairs}) < len(pairs):
        return result
    first = sum(pair.first > pair.second for pair in pairs)
    apart = first + sum(pair.first < pair.second for pair in pairs)
    return replace(result, p=float(binomtest(first, apart).pvalue) if apart else 1.0)


def rank_intervals(
    measure: Measure, differences: Mapping[tuple[str, str], Estimate]
) -> Sequence[RankInterval]:
    """The ranks of all arms by all differences between two of them, first less second; 1 is the
    highest.

    An arm ranks behind another only where their difference is resolved, with Holm's correction for
    so many comparisons: all intervals hold together in 1 - LEVEL of studies (S. Holm, A Simple
    Sequentially Rejective Multiple Test Procedure, Scandinavian Journal of Statistics 6, 1979;
    M. Mogstad et al., Inference for Ranks, Review of Economic Studies 91, 2024).
    """
    arms = sorted({arm for both in differences for arm in both})
    above: dict[str, int] = dict.fromkeys(arms, 0)
    below: dict[str, int] = dict.fromkeys(arms, 0)
    ordered = sorted(differences.items(), key=lambda item: item[1].p)
    for place, ((first, second), mean) in enumerate(ordered):
        if mean.p >= LEVEL / (len(ordered) - place):
            break
        better, worse = (first, second) if mean.estimate > 0 else (second, first)
        below[better] += 1
        above[worse] += 1
    ranks = [
        RankInterval(measure=measure, arm=arm, best=1 + above[arm], worst=len(arms) - below[arm])
        for arm in arms
    ]
    return sorted(ranks, key=lambda rank: (rank.best, rank.worst, rank.arm))


def every_two(arms: Iterable[str]) -> Sequence[tuple[str, str]]:
    """All pairs of arms, each once, in the order of the arms."""
    return list(combinations(arms, 2))
