"""The share of answers that are right, where those of a date have much in common. Pure.

Wilson's interval (E. B. Wilson, Probable Inference, Journal of the American Statistical Association
22, 1927) with as many independent answers as the design effect leaves of them: 1 + (asked - 1) x
their correlation (L. Kish, Survey Sampling, 1965).
"""

from collections.abc import Sequence
from math import sqrt
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from libs.quant.arrays import Array
from libs.study.statistics.means import LEVEL

Counts = Sequence[int] | npt.NDArray[np.intp] | Array

TOGETHER = 2
"""So many hits count as if all other answers of their date had been hits too: a few hits do not
show that the answers of a date are independent, and none at all shows nothing of it."""
Z_95 = NormalDist().inv_cdf(1 - LEVEL / 2)


def share_interval(hits: Counts, asked: Counts, overlap: float = 1) -> tuple[float, float]:
    """The 95 % interval of the share of hits, by those of each date and how many were asked there.

    The correlation is by how many others of its date a hit came with, beside TOGETHER. A date's
    horizon reaches into `overlap` of these dates, its own included: they count as so many fewer.
    """
    hit, of = np.asarray(hits, dtype=np.float64), np.asarray(asked, dtype=np.float64)
    total = float(of.sum())
    share = float(hit.sum()) / total
    several = of > 1
    hit_of_several, others = hit[several], of[several] - 1
    together = float((hit_of_several * (hit_of_several - 1) / others).sum()) + TOGETHER
    with_others = together / (float(hit_of_several.sum()) + TOGETHER)
    correlation = max((with_others - share) / (1 - share), 0.0) if share < 1 else 1.0
    size = float(np.square(of).sum()) / total
    return _wilson(share, total / (1 + (size - 1) * correlation) / overlap)


def _wilson(share: float, count: float) -> tuple[float, float]:
    shrunk = Z_95**2 / count
    middle = (share + shrunk / 2) / (1 + shrunk)
    reach = Z_95 * sqrt(share * (1 - share) / count + shrunk / (4 * count)) / (1 + shrunk)
    return max(middle - reach, 0.0), min(middle + reach, 1.0)
