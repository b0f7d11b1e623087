"""The configurations that a desk has tried on a study's assets and sessions: the best of all of
them had its luck among all of them, not among the study's own. Pure.

An account that had exactly the returns of another is the same configuration, and counts once: the
rules named and masked, or the same arm in two studies. One without a return for each of the
study's sessions is counted as a try, and that is all that is known of it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite

import numpy as np

from contracts.strategy_cycle import Trials
from contracts.study_score import SOURCES_MAX, ConfigurationKind, Configurations
from libs.quant.arrays import Array
from libs.quant.strategy import performance
from libs.study.statistics.record import Tried

SAME_RETURN_DECIMALS = 10
"""Returns that agree so far are those of the same orders."""
Account = tuple[str, int]
"""An arm and its sample."""


@dataclass(frozen=True, slots=True)
class TrialRecord:
    """All configurations: daily returns of the study's `own` accounts, those of all `distinct` ones
    whose returns are known with their yearly Sharpe `ratios`, and how many of each kind there
    are."""

    own: Mapping[Account, Array]
    distinct: Mapping[bytes, Array]
    ratios: Mapping[bytes, float]
    counted: tuple[Configurations, ...]

    @property
    def count(self) -> int:
        """How many configurations there are, with returns or without."""
        return sum(kind.count for kind in self.counted)

    @property
    def returns(self) -> Array:
        """The returns that are known: a row a session, a column a configuration."""
        return np.array(list(self.distinct.values())).T

    def besides(self, account: Account) -> Trials:
        """The configurations besides that of one of the study's accounts."""
        mark = _mark(self.own[account])
        others = (ratio for other, ratio in self.ratios.items() if other != mark)
        known = [ratio for ratio in others if isfinite(ratio)]
        return Trials(
            count=self.count - 1,
            with_ratio=len(known),
            ratio_mean=float(np.mean(known)) if known else 0.0,
            ratio_variance=float(np.var(known, ddof=1)) if len(known) > 1 else 0.0,
        )


def on_record(own: Mapping[Account, Array], tried: Sequence[Tried]) -> TrialRecord:
    """The study's own configurations, by the daily returns of its accounts, and those tried
    elsewhere."""
    distinct: dict[bytes, Array] = {}
    for returns in own.values():
        distinct.setdefault(_mark(returns), returns)
    itself = Configurations(
        kind=ConfigurationKind.OWN, count=len(distinct), with_returns=len(distinct)
    )
    counted = [
        itself,
        *(
            _counted(kind, [one for one in tried if one.kind is kind], distinct)
            for kind in ConfigurationKind
        ),
    ]
    ratios = {mark: float(performance.sharpe_ratio(one)) for mark, one in distinct.items()}
    return TrialRecord(own, distinct, ratios, tuple(one for one in counted if one.count))


def _counted(
    kind: ConfigurationKind, tried: Sequence[Tried], distinct: dict[bytes, Array]
) -> Configurations:
    """The kind's configurations that no other before them is; their returns go to `distinct`."""
    count = with_returns = 0
    sources: dict[str, None] = {}
    for one in tried:
        if one.worth:
            returns = performance.daily_returns(np.array(one.worth))
            mark = _mark(returns)
            if mark in distinct:
                continue
            distinct[mark] = returns
            with_returns += 1
        count += 1
        sources[one.source] = None
    return Configurations(
        kind=kind,
        count=count,
        with_returns=with_returns,
        sources=tuple(sources)[:SOURCES_MAX],
        more=max(len(sources) - SOURCES_MAX, 0),
    )


def _mark(returns: Array) -> bytes:
    """The bytes that tell one configuration's returns from another's."""
    return (np.round(returns, SAME_RETURN_DECIMALS) + 0.0).tobytes()
