"""Was it skill? The probability that a Sharpe ratio is not the luck of having tried often.

D. H. Bailey, M. Lopez de Prado, The Deflated Sharpe Ratio: Correcting for Selection Bias, Backtest
Overfitting and Non-Normality, Journal of Portfolio Management 40 (5), 2014.
"""

from math import e, inf, sqrt
from statistics import NormalDist

from contracts.strategy_cycle import Trials
from libs.quant.arrays import Array
from libs.quant.strategy.performance import YEAR_SESSIONS

EULER_MASCHERONI = 0.5772156649015329
SESSIONS_LEAST = 3
WITHOUT_SKILL = 10
"""Ratios of a few strategies say little of how much all vary: two that are alike would say that
trying again is no luck. So they count beside those of so many without skill."""
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
    error = sharpe_error(sharpe, sessions, skewness, kurtosis)
    return _NORMAL.cdf((sharpe - against) / error)


def sharpe_error(sharpe: float, sessions: int, skewness: float, kurtosis: float) -> float:
    """The standard error of a Sharpe ratio, both for one session, not a year.

    E. Mertens, Comments on Variance of the IID Estimator in Lo (2002), 2002.
    """
    spread = 1 - skewness * sharpe + (kurtosis - 1) / 4 * sharpe**2
    # Below 0 only for a few sessions of wild returns, of which nothing can be said.
    return sqrt(max(spread, 1e-12) / (sessions - 1))


def track_record_least(
    sharpe: float, against: float, skewness: float, kurtosis: float, confidence: float = 0.95
) -> float:
    """How many sessions show with so much confidence that the true ratio is above `against`; both
    for one session, not a year. Infinite where `sharpe` is not above it.

    D. H. Bailey, M. Lopez de Prado, The Sharpe Ratio Efficient Frontier, Journal of Risk 15 (2),
    2012. `kurtosis` is 3 for normal returns.
    """
    if sharpe <= against:
        return inf
    spread = max(1 - skewness * sharpe + (kurtosis - 1) / 4 * sharpe**2, 1e-12)
    return 1 + spread * (_NORMAL.inv_cdf(confidence) / (sharpe - against)) ** 2


def sharpes_differ(one: float, other: float, sessions: int, confidence: float = 0.95) -> bool:
    """Whether two Sharpe ratios, of a year, over so many sessions each, differ by more than chance.

    A. W. Lo, The Statistics of Sharpe Ratios, Financial Analysts Journal 58 (4), 2002: the standard
    error of a ratio is the root of (1 + S^2 / 2) / T. The two count as independent; of strategies
    on one market the true error is smaller, so what differs here differs.
    """
    if sessions < SESSIONS_LEAST:
        return False
    daily = [ratio / sqrt(YEAR_SESSIONS) for ratio in (one, other)]
    error = sqrt(sum((1 + ratio**2 / 2) / sessions for ratio in daily))
    return abs(daily[0] - daily[1]) > _NORMAL.inv_cdf((1 + confidence) / 2) * error


def deflated_sharpe(returns: Array, others: Trials) -> float | None:
    """The probability that daily `returns` have a true Sharpe ratio above that of the luckiest of
    all strategies tried: the `others` and this one. None where the returns do not vary.
    """
    deviation = returns.std(ddof=1) if len(returns) >= SESSIONS_LEAST else 0.0
    if deviation <= 1e-12:
        return None
    sharpe = float(returns.mean() / deviation)
    centred = (returns - returns.mean()) / returns.std()
    return probabilistic_sharpe(
        sharpe=sharpe,
        against=expected_best(_variance(sharpe, others, len(returns)), others.count + 1),
        sessions=len(returns),
        skewness=float((centred**3).mean()),
        kurtosis=float((centred**4).mean()),
    )


def _variance(sharpe: float, others: Trials, sessions: int) -> float:
    """How much the ratios of all vary, for one session: the others' and this one's, beside those of
    WITHOUT_SKILL strategies, which vary by 1 / sessions (A. W. Lo, The Statistics of Sharpe Ratios,
    Financial Analysts Journal 58 (4), 2002).
    """
    count, luck = others.with_ratio, WITHOUT_SKILL / sessions
    apart = sharpe * sqrt(YEAR_SESSIONS) - others.ratio_mean
    squares = others.ratio_variance * (count - 1) + apart**2 * count / (count + 1)
    return (squares / YEAR_SESSIONS + luck) / (count + WITHOUT_SKILL)
