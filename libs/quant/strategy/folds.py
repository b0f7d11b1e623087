"""The walk forward: sessions split so that no fold learns from what it is tried on.

Sources: M. Lopez de Prado, Advances in Financial Machine Learning, 2018, chapter 7 (purging and
embargo); the training rows always lie before the tested ones, as they would have.
"""

from dataclasses import dataclass

from contracts.strategy import FoldSpec
from libs.quant.strategy.panel import FieldFault


class TooShortForFolds(FieldFault):
    """The training period holds too few sessions for its folds; `field` names what to change."""


@dataclass(frozen=True, slots=True)
class Fold:
    """Places of sessions: learn on [first, train_end), try on [test, end)."""

    first: int
    train_end: int
    test: int
    end: int


def reach_bars(horizon_bars: int) -> int:
    """The sessions after its own that a label reads: up to the open that the horizon ends at."""
    return horizon_bars + 1


def folds(first: int, end: int, horizon_bars: int, spec: FoldSpec) -> tuple[Fold, ...]:
    """`spec.count` folds over the sessions [first, end), which all have features and labels.

    The sessions are cut into count + 1 blocks of one length. Each fold is tried on a block and
    learns on all those before it, without the sessions whose labels reach into the block, and
    without `embargo_bars` more. Raises TooShortForFolds where a fold has nothing to learn on.
    """
    reach = reach_bars(horizon_bars)
    block = (end - first) // (spec.count + 1)
    left_out = reach + spec.embargo_bars
    if block <= left_out:
        raise TooShortForFolds(
            "folds",
            f"{end - first} sessions with features and labels make {spec.count + 1} blocks of "
            f"{block}, of which a horizon of {horizon_bars} and an embargo of {spec.embargo_bars} "
            f"leave none: use fewer folds, a shorter embargo or a longer training period",
        )
    tests = [end - block * left for left in range(spec.count, 0, -1)]
    return tuple(Fold(first, test - left_out, test, test + block) for test in tests)
