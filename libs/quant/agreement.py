"""Would it say the same again? Agreement of samples of one step on the same frozen evidence. Pure.

It is no measure of truth: a model can be wrong in the same way every time. It says whether a
decision is the model's or the draw's.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, pstdev

AGREEMENT_LEAST = 0.8
SPREAD_MAX = 0.5
"""The standard deviation of a weight that is too much, as a part of its mean."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far samples agree: `verdict` is the most frequent, `share` the part that says so, and
    `spread` the standard deviation of the weights as a part of their mean; 0 where all are 0."""

    verdict: str
    share: float
    spread: float
    opposed: bool
    samples: int

    @property
    def stable(self) -> bool:
        """Whether enough samples agree to act on: not of opposite sides, nor of wide weights."""
        return not self.opposed and self.share >= AGREEMENT_LEAST and self.spread <= SPREAD_MAX


def agreement(verdicts: Sequence[str], weights: Sequence[float]) -> Agreement:
    """The agreement of samples: their verdicts and the weights that they give, in the same order.

    Verdicts are `buy`, `sell` and any other; of the first two both at once are opposed.
    """
    if not verdicts or len(verdicts) != len(weights):
        raise ValueError("agreement needs a weight for each of at least one verdict")
    counts = Counter(verdicts)
    verdict = min(counts, key=lambda name: (-counts[name], name))
    mean = abs(fmean(weights))
    return Agreement(
        verdict,
        counts[verdict] / len(verdicts),
        pstdev(weights) / mean if mean > 0 else 0.0,
        {"buy", "sell"} <= set(counts),
        len(verdicts),
    )
