"""Results of a training, as a contract. Pure."""

from collections.abc import Mapping
from typing import Any

from contracts.strategy import StrategySpec
from libs.quant.strategy.models import sha256
from libs.quant.strategy.training import FoldFound, Training


def result(spec: StrategySpec, training: Training, model: bytes) -> Mapping[str, Any]:
    """The fields of TrainingResult that the training itself knows, as JSON."""
    return {
        "strategy_name": spec.name,
        **{
            name: training.mean(name)
            for name in ("accuracy", "base_rate", "log_loss", "base_log_loss")
        },
        "initial_loss": training.loss_curve[0],
        "final_loss": training.loss_curve[-1],
        "loss_curve": training.loss_curve,
        "folds": [_fold(fold) for fold in training.folds],
        "features": training.model.features,
        "rows": training.rows,
        "seed": spec.seed,
        "data_sha256": training.data_sha256,
        "model_sha256": sha256(model),
    }


def _fold(fold: FoldFound) -> Mapping[str, Any]:
    periods = {
        name: {"first": first, "last": last}
        for name, (first, last) in (("train", fold.train), ("test", fold.test))
    }
    figures = ("train_rows", "test_rows", "accuracy", "base_rate", "log_loss", "base_log_loss")
    return {**periods, **{name: getattr(fold, name) for name in figures}}
