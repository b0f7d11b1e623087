"""A training or a backtest, as a process that can be ended.

Reads a spec and bars from stdin, for a backtest with the model; reports its progress, and answers
the figures, after a training with the model.
"""

import sys
import time
from collections.abc import Mapping
from typing import Any

import polars as pl

from contracts.strategy import StrategySpec
from contracts.strategy_cycle import Trials
from contracts.strategy_result import SESSIONS_MAX
from libs.quant.strategy.fitting import Diverged
from libs.quant.strategy.folds import TooShortForFolds
from libs.quant.strategy.held_out import try_held_out
from libs.quant.strategy.models import BadModel, from_bytes, to_bytes
from libs.quant.strategy.panel import BadPanel, Panel, panel
from libs.quant.strategy.training import CannotTrain, train
from libs.runtime.worker_process import ProgressLines, request_in, tell
from services.strategy import logic


def _trained(spec: StrategySpec, prices: Panel, telling: ProgressLines) -> Mapping[str, Any]:
    trained = train(spec, prices, telling)
    model = to_bytes(trained.model)
    return {"result": logic.training_result(spec, trained, model), "model": model.decode()}


def _tested(
    spec: StrategySpec, prices: Panel, request: Mapping[str, Any], telling: ProgressLines
) -> Mapping[str, Any]:
    others = Trials.model_validate(request["trials"]) if request["trials"] else None
    model = from_bytes(request["model"].encode(), request["model_sha256"])
    telling(0.3, "the held-out period")
    tried = try_held_out(spec, prices, model)
    if len(tried.prices) > SESSIONS_MAX:
        many = f"it has {len(tried.prices)} sessions; {SESSIONS_MAX} is the most"
        raise CannotTrain("held_out", many)
    telling(0.9, "the figures")
    return logic.backtest_result(spec, tried, others)


def main() -> None:
    """One request from stdin to stdout."""
    request, body = request_in(sys.stdin.buffer)
    out = sys.stdout.buffer
    telling = ProgressLines(out, time.monotonic)
    try:
        spec = StrategySpec.model_validate(request["spec"])
        prices = panel(pl.read_ipc(body), spec.universe)
        if "model" in request:
            answer = _tested(spec, prices, request, telling)
        else:
            answer = _trained(spec, prices, telling)
    except (BadPanel, CannotTrain, TooShortForFolds, Diverged, BadModel) as problem:
        tell(out, "E", {"message": str(problem), "field": getattr(problem, "field", "model")})
        return
    tell(out, "R", answer)


if __name__ == "__main__":
    main()
