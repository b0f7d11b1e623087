"""Was it skill? The probability that a Sharpe ratio is not the luck of having tried often.

D. H. Bailey, M. Lopez de Prado, The Deflated Sharpe Ratio: Correcting for Selection Bias, Backtest
Overfitting and Non-Normality, Journal of Portfolio Management 40 (5), 2014.
"""

from collections.abc import Sequence
from math import e, sqrt
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from libs.quant.performance import YEAR_SESSIONS

Array = npt.NDArray[np.float64]

EULER_MASCHERONI = 0.5772156649015329
SESSIONS_LEAST = 3
_NORMAL = NormalDist()


def expected_best(variance: float, trials: int) -> float:
    """The highest Sharpe ratio to expect of `trials` strategies without any skill, whose ratios
    vary this much; 0 for one trial.
    """
    if trials < 2:
        return 0.0
    high = _NORMAL.inv_cdf(1 - 1 / trials)
    higher = _NORMAL.inv_cdf(1 - 1 / (trials * e))
    return sqrt(variance) * ((1 - EULER_MASCHERONI) * high + EULER_MASCHERONI * higher)


def probabilistic_sharpe(
    sharpe: float, against: float, sessions: int, skewness: float, kurtosis: float
) -> float:
    """How probable it is that the true ratio is above `against`; both for one session, not a year.

    `kurtosis` is 3 for normal returns.
    """
    spread = 1 - skewness * sharpe + (kurtosis - 1) / 4 * sharpe**2
    # Below 0 only for a few sessions of wild returns, of which nothing can be said.
    return _NORMAL.cdf((sharpe - against) * sqrt(sessions - 1) / sqrt(max(spread, 1e-12)))


def deflated_sharpe(returns: Array, tried: Sequence[float], trials: int) -> float | None:
    """The probability that daily `returns` have a true Sharpe ratio above that of the luckiest of
    `trials` strategies. None where they do not vary.

    `tried` are the yearly ratios of all strategies ever tried that have one, this one included;
    `trials` counts those without one too.
    """
    deviation = returns.std(ddof=1) if len(returns) >= SESSIONS_LEAST else 0.0
    if deviation <= 1e-12:
        return None
    variance = float(np.var(np.array(tried) / sqrt(YEAR_SESSIONS), ddof=1)) if len(tried) > 1 else 0
    centred = (returns - returns.mean()) / returns.std()
    return probabilistic_sharpe(
        sharpe=float(returns.mean() / deviation),
        against=expected_best(variance, trials),
        sessions=len(returns),
        skewness=float((centred**3).mean()),
        kurtosis=float((centred**4).mean()),
    )
