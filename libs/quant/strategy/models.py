"""Trained models as plain numbers: they predict with numpy alone, and are kept as JSON.

Nothing in a kept model can run: reading one never executes it, unlike a pickle. scikit-learn fits
(`fitting.py`); a test holds both predictions together to 1e-12.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from libs.quant.arrays import Array

FORMAT = 1
MODEL_BYTES_MAX = 16_000_000


class BadModel(ValueError):
    """Bytes that are no model of this format, or not the model that was asked for."""


def _logistic(raw: Array) -> Array:
    # Both branches keep the exponent negative, so nothing overflows.
    small = np.exp(-np.abs(raw))
    return np.where(raw >= 0, 1.0 / (1.0 + small), small / (1.0 + small))


@dataclass(frozen=True, slots=True, eq=False)
class Layers:
    """A perceptron: weights and a bias for each layer; without hidden ones logistic regression."""

    weights: tuple[Array, ...]
    biases: tuple[Array, ...]
    activation: str = "relu"

    def probability(self, rows: Array) -> Array:
        """One value for each row of scaled features."""
        for weights, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            rows = rows @ weights + bias
            rows = np.maximum(rows, 0.0) if self.activation == "relu" else np.tanh(rows)
        return _logistic((rows @ self.weights[-1] + self.biases[-1])[:, 0])


@dataclass(frozen=True, slots=True, eq=False)
class Tree:
    """A decision tree by node: where to go, by which feature and threshold, or the value of a leaf
    (whose `left` is -1)."""

    left: npt.NDArray[np.int64]
    right: npt.NDArray[np.int64]
    feature: npt.NDArray[np.int64]
    threshold: Array
    value: Array

    def values(self, rows: npt.NDArray[np.float32]) -> Array:
        """The leaf's value for each row."""
        at = np.zeros(len(rows), dtype=np.int64)
        every = np.arange(len(rows))
        while (inside := self.left[at] >= 0).any():
            smaller = rows[every, self.feature[at]] <= self.threshold[at]
            at = np.where(inside, np.where(smaller, self.left[at], self.right[at]), at)
        return self.value[at]


@dataclass(frozen=True, slots=True, eq=False)
class Trees:
    """Boosted trees: a start in log-odds, and what each tree adds, times the rate."""

    start: float
    rate: float
    trees: tuple[Tree, ...]

    def probability(self, rows: Array) -> Array:
        """One value for each row of scaled features."""
        narrow = rows.astype(np.float32)  # thresholds were found among 32-bit values
        raw = np.full(len(rows), self.start)
        for tree in self.trees:
            raw += self.rate * tree.values(narrow)
        return _logistic(raw)


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """A predictor with the features that it reads, in order, and how they are scaled."""

    features: tuple[str, ...]
    mean: Array
    deviation: Array
    predictor: Layers | Trees

    def probability(self, readings: Mapping[str, Array]) -> Array:
        """The probability of a label of 1, shaped as the readings; NaN where one of them is."""
        columns = [readings[name] for name in self.features]
        rows = np.stack([column.ravel() for column in columns], axis=1)
        known = np.isfinite(rows).all(axis=1)
        probability = np.full(len(rows), np.nan)
        if known.any():
            scaled = (rows[known] - self.mean) / self.deviation
            probability[known] = self.predictor.probability(scaled)
        return probability.reshape(columns[0].shape)


def sha256(body: bytes) -> str:
    """The name of a kept model."""
    return hashlib.sha256(body).hexdigest()


def to_bytes(model: Model) -> bytes:
    """The model as JSON; the same model gives the same bytes, and every float comes back exact."""
    data = {
        "format": FORMAT,
        "features": list(model.features),
        "mean": model.mean.tolist(),
        "deviation": model.deviation.tolist(),
        "predictor": _predictor_data(model.predictor),
    }
    return json.dumps(data, allow_nan=False, separators=(",", ":")).encode()


def from_bytes(body: bytes, wanted_sha256: str | None = None) -> Model:
    """The model again. Raises BadModel where it is not the wanted one, or none at all."""
    if wanted_sha256 is not None and sha256(body) != wanted_sha256:
        raise BadModel(f"the model is {sha256(body)}, wanted was {wanted_sha256}; train it again")
    if len(body) > MODEL_BYTES_MAX:
        raise BadModel(f"the model has {len(body)} bytes; {MODEL_BYTES_MAX} is the most")
    try:
        data = json.loads(body)
        if data["format"] != FORMAT:
            raise BadModel(f"the model has format {data['format']}; this program reads {FORMAT}")
        return Model(
            tuple(str(name) for name in data["features"]),
            _floats(data["mean"]),
            _floats(data["deviation"]),
            _predictor(data["predictor"]),
        )
    except (KeyError, TypeError, ValueError) as problem:
        if isinstance(problem, BadModel):
            raise
        raise BadModel(f"these bytes are not a model: {problem}") from problem


_TREE = ("left", "right", "feature", "threshold", "value")


def _predictor_data(predictor: Layers | Trees) -> dict[str, Any]:
    if isinstance(predictor, Layers):
        return {
            "kind": "layers",
            "activation": predictor.activation,
            "weights": [weights.tolist() for weights in predictor.weights],
            "biases": [biases.tolist() for biases in predictor.biases],
        }
    trees = [{name: getattr(tree, name).tolist() for name in _TREE} for tree in predictor.trees]
    return {"kind": "trees", "start": predictor.start, "rate": predictor.rate, "trees": trees}


def _predictor(data: Mapping[str, Any]) -> Layers | Trees:
    if data["kind"] == "layers":
        weights, biases = (tuple(map(_floats, data[name])) for name in ("weights", "biases"))
        return Layers(weights, biases, str(data["activation"]))
    if data["kind"] == "trees":
        trees = tuple(
            Tree(
                _places(tree["left"]),
                _places(tree["right"]),
                _places(tree["feature"]),
                _floats(tree["threshold"]),
                _floats(tree["value"]),
            )
            for tree in data["trees"]
        )
        return Trees(float(data["start"]), float(data["rate"]), trees)
    raise BadModel(f"unknown kind of model: {data['kind']}")


def _places(values: Any) -> npt.NDArray[np.int64]:
    return np.asarray(values, dtype=np.int64)


def _floats(values: Any) -> Array:
    return np.asarray(values, dtype=np.float64)
