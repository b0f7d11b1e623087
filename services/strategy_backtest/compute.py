"""The backtest itself, as a process that can be ended.

Reads a spec, a model and bars from stdin, tells how far it is, answers the figures.
"""

import sys
import time

import polars as pl

from contracts.strategy import StrategySpec
from contracts.strategy_cycle import Trials
from contracts.strategy_result import SESSIONS_MAX
from libs.quant.strategy.held_out import HeldOut, try_held_out
from libs.quant.strategy.models import BadModel, Model, from_bytes
from libs.quant.strategy.panel import BadPanel, Panel, panel
from libs.quant.strategy.training import CannotTrain
from libs.runtime.computing import Telling, request_in, tell
from services.strategy_backtest.logic import result


def _tried(spec: StrategySpec, prices: Panel, model: Model) -> HeldOut:
    tried = try_held_out(spec, prices, model)
    if len(tried.prices) > SESSIONS_MAX:
        many = f"it has {len(tried.prices)} sessions; {SESSIONS_MAX} is the most"
        raise CannotTrain("held_out", many)
    return tried


def main() -> None:
    """One request from stdin to stdout."""
    request, body = request_in(sys.stdin.buffer)
    out = sys.stdout.buffer
    telling = Telling(out, time.monotonic)
    try:
        spec = StrategySpec.model_validate(request["spec"])
        others = Trials.model_validate(request["trials"]) if request["trials"] else None
        model = from_bytes(request["model"].encode(), request["model_sha256"])
        telling(0.1, "reading prices")
        prices = panel(pl.read_ipc(body), spec.universe)
        telling(0.3, "the held-out period")
        tried = _tried(spec, prices, model)
        telling(0.9, "the figures")
    except (BadPanel, CannotTrain) as problem:
        tell(out, "E", {"message": str(problem), "field": problem.field})
        return
    except BadModel as problem:
        tell(out, "E", {"message": str(problem), "field": "model"})
        return
    tell(out, "R", result(spec, tried, others))


if __name__ == "__main__":
    main()
