"""What a training came to, as its contract says it. Pure."""

from collections.abc import Mapping
from typing import Any

from contracts.strategy import StrategySpec
from libs.quant.models import sha256
from libs.quant.training import FoldFound, Training


def result(spec: StrategySpec, found: Training, model: bytes) -> Mapping[str, Any]:
    """The fields of TrainingResult that the training itself knows, as JSON."""
    return {
        "strategy_name": spec.name,
        **{
            name: found.mean(name)
            for name in ("accuracy", "base_rate", "log_loss", "base_log_loss")
        },
        "initial_loss": found.loss_curve[0],
        "final_loss": found.loss_curve[-1],
        "loss_curve": found.loss_curve,
        "folds": [_fold(each) for each in found.folds],
        "features": found.model.features,
        "rows": found.rows,
        "seed": spec.seed,
        "data_sha256": found.data_sha256,
        "model_sha256": sha256(model),
    }


def _fold(found: FoldFound) -> Mapping[str, Any]:
    periods = {
        name: {"first": first, "last": last}
        for name, (first, last) in (("train", found.train), ("test", found.test))
    }
    figures = ("train_rows", "test_rows", "accuracy", "base_rate", "log_loss", "base_log_loss")
    return {**periods, **{name: getattr(found, name) for name in figures}}
