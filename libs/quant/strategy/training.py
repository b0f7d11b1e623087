"""Training: from prices and a spec to a model, and how well it did on what it had not seen.

Everything is cut at the end of the training period first: features, labels and folds cannot reach
into the held-out one.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta

import numpy as np
import numpy.typing as npt

from contracts.strategy import LabelSpec, Period, StrategySpec
from libs.quant.arrays import Array, Mask
from libs.quant.strategy.features import features
from libs.quant.strategy.fitting import fit, log_loss
from libs.quant.strategy.folds import Fold, folds, reach_bars
from libs.quant.strategy.models import Model
from libs.quant.strategy.panel import FieldFault, Panel

Labels = npt.NDArray[np.int64]
Progress = Callable[[float, str], None]
"""Called with the part that is done, 0 to 1, and what is being done. What it raises ends it."""

PERIOD_SLACK_DAYS = 7
"""A period may begin or end on a weekend or holiday beside the first and last bar."""
EVEN = 0.5
"""Above this probability the model says 1."""


class CannotTrain(FieldFault):
    """The prices do not allow what the spec asks; `field` names the spec's part to change."""


@dataclass(frozen=True, slots=True)
class FoldFound:
    """One fold's sessions and figures; see contracts.strategy_result.FoldResult."""

    train: tuple[date, date]
    test: tuple[date, date]
    train_rows: int
    test_rows: int
    accuracy: float
    base_rate: float
    log_loss: float
    base_log_loss: float


@dataclass(frozen=True, slots=True, eq=False)
class Training:
    """A model of all training rows, its losses, and the folds that say what it is worth."""

    model: Model
    loss_curve: tuple[float, ...]
    folds: tuple[FoldFound, ...]
    rows: int
    data_sha256: str

    def mean(self, figure: str) -> float:
        """The mean of a figure over the folds: `accuracy`, `base_rate`, `log_loss`, ..."""
        return float(np.mean([getattr(fold, figure) for fold in self.folds]))


def places(period: Period, prices: Panel, field: str) -> tuple[int, int]:
    """The places [first, end) of a period's sessions. Raises CannotTrain where bars are missing."""
    slack = timedelta(days=PERIOD_SLACK_DAYS)
    known = [prices.sessions[at].astype(object) for at in (0, -1)]
    if period.first + slack < known[0]:
        raise CannotTrain(f"{field}.first", f"{period.first} is before the first bar ({known[0]})")
    if period.last - slack > known[1]:
        raise CannotTrain(f"{field}.last", f"{period.last} is after the last bar ({known[1]})")
    first, end = prices.place(period.first), prices.place(period.last + timedelta(days=1))
    if end - first < 2:
        raise CannotTrain(field, f"{end - first} sessions lie in it; at least 2 are needed")
    return first, end


def labels(prices: Panel, spec: LabelSpec) -> Array:
    """1.0 or 0.0 by ticker and session, NaN where the horizon ends after the last bar.

    An order of this close fills at the next open, so the return is from that open to the one
    `horizon_bars` later.
    """
    labels = np.full(prices.close.shape, np.nan)
    reach = reach_bars(spec.horizon_bars)
    if len(prices) > reach:
        gain_pct = (prices.open[:, reach:] / prices.open[:, 1 : len(prices) - reach + 1] - 1) * 100
        labels[:, : len(prices) - reach] = gain_pct > spec.return_pct_min
    return labels


def train(spec: StrategySpec, prices: Panel, progress: Progress = lambda *_: None) -> Training:
    """Train on the spec's training period; bars before it serve to warm the features up.

    Raises CannotTrain, folds.TooShortForFolds and fitting.Diverged, each with the field to change.
    """
    first, end = places(spec.train, prices, "train")
    known = prices.cut(0, end)  # from here on nothing later can be seen
    rows = _Rows.of(spec, known, first)
    begin, stop = rows.span(known)
    cut = folds(begin, stop, spec.label.horizon_bars, spec.folds)
    fits = len(cut) + 1
    tried = []
    for number, fold in enumerate(cut):
        tell = _teller(progress, number, fits, f"fold {number + 1} of {len(cut)}")
        tried.append(_try(spec, rows, fold, known, tell))
    inputs, wanted = rows.between(begin, stop)
    _require_both(wanted, "the training period")
    mean, deviation = _scale(inputs)
    tell = _teller(progress, len(cut), fits, "the final fit")
    fitted = fit(spec.model, (inputs - mean) / deviation, wanted, spec.seed, tell)
    model = Model(rows.names, mean, deviation, fitted.predictor)
    return Training(model, fitted.loss_curve, tuple(tried), len(wanted), known.sha256())


def _teller(progress: Progress, done: int, fits: int, step: str) -> Callable[[float], None]:
    def tell(part: float) -> None:
        progress((done + part) / fits, step)

    return tell


@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """Features (ticker, session, feature) and labels, and which of them are known."""

    names: tuple[str, ...]
    inputs: Array
    labels: Array
    usable: Mask

    @classmethod
    def of(cls, spec: StrategySpec, prices: Panel, first: int) -> "_Rows":
        readings: Mapping[str, Array] = features(prices, spec.features)
        inputs = np.stack(list(readings.values()), axis=-1)
        wanted = labels(prices, spec.label)
        usable = np.isfinite(inputs).all(axis=-1) & np.isfinite(wanted)
        usable[:, :first] = False
        return cls(tuple(readings), inputs, wanted, usable)

    def span(self, prices: Panel) -> tuple[int, int]:
        """The places [first, end) of the sessions that have rows."""
        some = np.flatnonzero(self.usable.any(axis=0))
        if not len(some):
            raise CannotTrain(
                "train",
                f"no session up to {prices.sessions[-1]} has all features and a label: the warm-up "
                "takes all of it; begin the data earlier, or use shorter indicators",
            )
        return int(some[0]), int(some[-1]) + 1

    def between(self, first: int, end: int) -> tuple[Array, Labels]:
        """Inputs and labels of the sessions [first, end), session by session."""
        usable = self.usable[:, first:end].T
        inputs = self.inputs[:, first:end].transpose(1, 0, 2)[usable]
        return inputs, self.labels[:, first:end].T[usable].astype(np.int64)


def _try(
    spec: StrategySpec,
    rows: _Rows,
    fold: Fold,
    prices: Panel,
    tell: Callable[[float], None],
) -> FoldFound:
    inputs, wanted = rows.between(fold.first, fold.train_end)
    seen = (_day(prices, fold.first), _day(prices, fold.train_end - 1))
    _require_both(wanted, f"the fold that learns on {seen[0]} to {seen[1]}")
    mean, deviation = _scale(inputs)
    fitted = fit(spec.model, (inputs - mean) / deviation, wanted, spec.seed, tell)
    test_inputs, came = rows.between(fold.test, fold.end)
    if len(came) == 0:
        raise CannotTrain("train", f"nothing can be tried after {seen[1]}: no features are known")
    probability = fitted.predictor.probability((test_inputs - mean) / deviation)
    return FoldFound(
        train=seen,
        test=(_day(prices, fold.test), _day(prices, fold.end - 1)),
        train_rows=len(wanted),
        test_rows=len(came),
        accuracy=float(((probability > EVEN) == came).mean()),
        base_rate=float(((wanted.mean() > EVEN) == came).mean()),
        log_loss=log_loss(came, probability),
        base_log_loss=log_loss(came, np.full(len(came), wanted.mean())),
    )


def _day(prices: Panel, place: int) -> date:
    day: date = prices.sessions[place].astype(object)
    return day


def _scale(inputs: Array) -> tuple[Array, Array]:
    """Mean and deviation of these rows only: a fold must not know what comes after it."""
    deviation = inputs.std(axis=0)
    return inputs.mean(axis=0), np.where(deviation > 0, deviation, 1.0)


def _require_both(wanted: Labels, where: str) -> None:
    if len(wanted) == 0:
        raise CannotTrain("train", f"no row of {where} has all features and a label")
    if wanted.min() == wanted.max():
        raise CannotTrain(
            "label",
            f"all labels of {where} are {wanted[0]}: choose another return_pct_min or horizon",
        )
