"""Fitting models: the only place that knows scikit-learn, which is imported when it is used.

Each fit tells how far it is through a callback; what the callback raises ends the fit.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, assert_never

import numpy as np
import numpy.typing as npt

from contracts.strategy import BoostingSpec, LogisticSpec, MlpSpec, ModelSpec
from libs.quant.arrays import Array
from libs.quant.strategy.models import Layers, Tree, Trees

Labels = npt.NDArray[np.int64]
Progress = Callable[[float], None]
"""Called with the part of the fit that is done, 0 to 1."""

LOGISTIC_STEPS_MAX = 1_000
# A probability of exactly 0 or 1 would make an infinite loss of one mistake.
PROBABILITY_LEAST = 1e-15


class Diverged(ValueError):
    """The perceptron's weights grew without end; `field` names what to change."""

    field = "model.learning_rate"

    def __init__(self) -> None:
        super().__init__(f"{self.field}: the weights grew without end; use a smaller rate")


@dataclass(frozen=True, slots=True)
class Fitted:
    """A predictor, and the training loss from the first to the last (log-loss; the perceptron's
    includes its penalty).
    """

    predictor: Layers | Trees
    loss_curve: tuple[float, ...]


def fit(spec: ModelSpec, rows: Array, labels: Labels, seed: int, progress: Progress) -> Fitted:
    """Fit on scaled features and labels, of which both kinds must be there.

    One thread computes: matrices of this size are not faster with more (on a busy machine the
    threads wait for one another for minutes), and sums in another order would be another model.
    """
    from threadpoolctl import threadpool_limits  # noqa: PLC0415 - comes with scikit-learn

    with threadpool_limits(1):
        match spec:
            case MlpSpec():
                return _fit_mlp(spec, rows, labels, seed, progress)
            case LogisticSpec():
                return _fit_logistic(spec, rows, labels, progress)
            case BoostingSpec():
                return _fit_boosting(spec, rows, labels, seed, progress)
            case _:
                assert_never(spec)


def log_loss(labels: Labels, probability: Array) -> float:
    """The mean of -log of the probability that was given to what came."""
    likelihood = np.where(labels == 1, probability, 1.0 - probability)
    return float(-np.log(np.maximum(likelihood, PROBABILITY_LEAST)).mean())


def base_loss(labels: Labels) -> float:
    """The log-loss of always giving the labels' own frequency."""
    return log_loss(labels, np.full(len(labels), labels.mean()))


def _fit_mlp(spec: MlpSpec, rows: Array, labels: Labels, seed: int, progress: Progress) -> Fitted:
    from sklearn.neural_network import MLPClassifier  # noqa: PLC0415 - seconds and 120 MB of import

    network = MLPClassifier(
        hidden_layer_sizes=spec.hidden,
        activation=spec.activation,
        alpha=spec.l2,
        learning_rate_init=spec.learning_rate,
        batch_size=min(spec.batch_rows, len(rows)),
        # A generator and not a number: a number would shuffle every epoch alike.
        random_state=np.random.RandomState(seed),
    )
    for epoch in range(spec.epochs):
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                network.partial_fit(rows, labels, classes=[0, 1])
        except ValueError as problem:
            raise Diverged from problem
        if not np.isfinite(network.loss_):
            raise Diverged
        progress((epoch + 1) / spec.epochs)
    weights, biases = (tuple(map(np.array, part)) for part in (network.coefs_, network.intercepts_))
    curve = tuple(float(loss) for loss in network.loss_curve_)
    return Fitted(Layers(weights, biases, spec.activation), _at_least_two(curve))


def _at_least_two(curve: tuple[float, ...]) -> tuple[float, ...]:
    return curve if len(curve) > 1 else curve * 2


def _fit_logistic(spec: LogisticSpec, rows: Array, labels: Labels, progress: Progress) -> Fitted:
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415 - seconds and 120 MB of import

    regression = LogisticRegression(C=spec.c, max_iter=LOGISTIC_STEPS_MAX).fit(rows, labels)
    progress(1.0)
    layers = Layers((np.array(regression.coef_.T),), (np.array(regression.intercept_),))
    return Fitted(layers, (base_loss(labels), log_loss(labels, layers.probability(rows))))


def _fit_boosting(
    spec: BoostingSpec, rows: Array, labels: Labels, seed: int, progress: Progress
) -> Fitted:
    from sklearn.ensemble import GradientBoostingClassifier  # noqa: PLC0415 - seconds and 120 MB of import

    def tell(tree: int, *_: Any) -> bool:
        progress((tree + 1) / spec.trees)
        return False

    boosting = GradientBoostingClassifier(
        n_estimators=spec.trees,
        learning_rate=spec.learning_rate,
        max_depth=spec.depth,
        min_samples_leaf=spec.leaf_rows_min,
        random_state=seed,
    ).fit(rows, labels, monitor=tell)
    trees = tuple(_tree(stage[0].tree_) for stage in boosting.estimators_)
    frequency = labels.mean()
    start = float(np.log(frequency / (1.0 - frequency)))
    # scikit-learn keeps the deviance, which is twice the log-loss.
    curve = (base_loss(labels), *(float(loss) / 2 for loss in boosting.train_score_))
    return Fitted(Trees(start, spec.learning_rate, trees), curve)


def _tree(tree: Any) -> Tree:
    return Tree(
        np.array(tree.children_left, dtype=np.int64),
        np.array(tree.children_right, dtype=np.int64),
        np.array(tree.feature, dtype=np.int64),
        np.array(tree.threshold),
        np.array(tree.value[:, 0, 0]),
    )
