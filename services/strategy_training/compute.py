"""The training itself, as a process that can be ended.

Reads a spec and bars from stdin, tells how far it is, answers the figures and the model.
"""

import sys
import time

import polars as pl

from contracts.strategy import StrategySpec
from libs.quant.strategy.fitting import Diverged
from libs.quant.strategy.folds import TooShort
from libs.quant.strategy.models import to_bytes
from libs.quant.strategy.panel import BadPanel, panel
from libs.quant.strategy.training import CannotTrain, train
from libs.runtime.computing import Telling, request_in, tell
from services.strategy_training.logic import result


def main() -> None:
    """One request from stdin to stdout."""
    request, body = request_in(sys.stdin.buffer)
    out = sys.stdout.buffer
    try:
        spec = StrategySpec.model_validate(request["spec"])
        prices = panel(pl.read_ipc(body), spec.universe)
        trained = train(spec, prices, Telling(out, time.monotonic))
    except (BadPanel, CannotTrain, TooShort, Diverged) as problem:
        tell(out, "E", {"message": str(problem), "field": problem.field})
        return
    model = to_bytes(trained.model)
    tell(out, "R", {"result": result(spec, trained, model), "model": model.decode()})


if __name__ == "__main__":
    main()
