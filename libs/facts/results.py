"""Facts of a strategy's results: its training, its backtest, and buy-and-hold beside it."""

from collections.abc import Iterator, Mapping

from contracts.message import Contract
from contracts.strategy_result import BacktestResult, TrainingResult
from libs.facts.fact import PERCENT, PLAIN, POINTS, Fact, Key

NATS = "nats"
"""The unit of a log-loss."""
PLACES = 4
TRAINING: Mapping[str, tuple[str, str]] = {
    "accuracy": (PERCENT, "accuracy"),
    "base_rate": (PERCENT, "base rate"),
    "skill": (POINTS, "accuracy over the base rate"),
    "log_loss": (NATS, "out-of-sample log-loss"),
    "base_log_loss": (NATS, "log-loss of the base rate"),
    "initial_loss": (NATS, "first training loss"),
    "final_loss": (NATS, "last training loss"),
    "loss_decrease": (PERCENT, "training loss reduction"),
}
"""Fields of the training: their unit and what people call them."""
BACKTEST: Mapping[str, tuple[str, str]] = {
    "sharpe_ratio": (PLAIN, "Sharpe ratio"),
    "sortino_ratio": (PLAIN, "Sortino ratio"),
    "deflated_sharpe": (PLAIN, "deflated Sharpe ratio"),
    "trials": ("trials", "strategies tried"),
    "total_return": (PERCENT, "total return"),
    "cagr": (PERCENT, "CAGR"),
    "max_drawdown": (PERCENT, "max drawdown"),
    "win_rate": (PERCENT, "win rate"),
    "total_trades": ("trades", "trades"),
    "turnover": (PLAIN, "turnover per year, of the equity"),
    "exposure": (PERCENT, "invested on average"),
}
"""Those of the backtest."""
BENCHMARK: Mapping[str, tuple[str, str]] = {
    "benchmark_return": (PERCENT, "buy-and-hold return"),
    "benchmark_sharpe_ratio": (PLAIN, "buy-and-hold Sharpe ratio"),
}
"""Those of buy-and-hold of the same universe."""


def result_facts(training: TrainingResult, backtest: BacktestResult) -> Iterator[Fact]:
    """The figures of both that are defined, under names such as `training.accuracy`."""
    yield from _facts("training", training, TRAINING)
    yield from _facts("backtest", backtest, {**BACKTEST, **BENCHMARK})


def _facts(entity: str, result: Contract, fields: Mapping[str, tuple[str, str]]) -> Iterator[Fact]:
    for name, (unit, label) in fields.items():
        value = getattr(result, name)
        if value is None:
            continue
        exact = value if isinstance(value, int) else round(value * _scale(unit), PLACES)
        known = result.as_of.isoformat()
        yield Fact(Key(entity, name), exact, unit, label, entity, known, op_id=result.op_id)


def _scale(unit: str) -> int:
    return 100 if unit in (PERCENT, POINTS) else 1
