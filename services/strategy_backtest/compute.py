"""The backtest itself, as a process that can be ended.

Reads a spec, a model and bars from stdin, tells how far it is, answers the figures.
"""

import sys
import time

import polars as pl

from contracts.strategy import StrategySpec
from contracts.strategy_cycle import Trials
from contracts.strategy_result import SESSIONS_MAX
from libs.quant.held_out import HeldOut, try_held_out
from libs.quant.models import BadModel, Model, from_bytes
from libs.quant.panel import BadPanel, Panel, panel
from libs.quant.training import CannotTrain
from libs.runtime.computing import Telling, request_in, tell
from services.strategy_backtest.logic import result


def _tried(spec: StrategySpec, prices: Panel, model: Model) -> HeldOut:
    found = try_held_out(spec, prices, model)
    if len(found.prices) > SESSIONS_MAX:
        many = f"it has {len(found.prices)} sessions; {SESSIONS_MAX} is the most"
        raise CannotTrain("held_out", many)
    return found


def main() -> None:
    """One request from stdin to stdout."""
    asked, body = request_in(sys.stdin.buffer)
    out = sys.stdout.buffer
    telling = Telling(out, time.monotonic)
    try:
        spec = StrategySpec.model_validate(asked["spec"])
        others = Trials.model_validate(asked["trials"]) if asked["trials"] else None
        model = from_bytes(asked["model"].encode(), asked["model_sha256"])
        telling(0.1, "reading prices")
        prices = panel(pl.read_ipc(body), spec.universe)
        telling(0.3, "the held-out period")
        found = _tried(spec, prices, model)
        telling(0.9, "the figures")
    except (BadPanel, CannotTrain) as problem:
        tell(out, "E", {"message": str(problem), "field": problem.field})
        return
    except BadModel as problem:
        tell(out, "E", {"message": str(problem), "field": "model"})
        return
    tell(out, "R", result(spec, found, others))


if __name__ == "__main__":
    main()
