"""Limits and task of a designer, and the results of a training and a backtest. Pure."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

import numpy as np
from pydantic import JsonValue

from contracts.indicator import INDICATORS
from contracts.strategy import CostSpec, Period, SizingSpec, StrategyDraft, StrategySpec
from contracts.strategy_cycle import Trials
from contracts.strategy_result import (
    PRICED_TICKERS_MAX,
    PRICES_SHOWN_MAX,
    TRADES_SHOWN_MAX,
)
from libs.llm.naming import strangers
from libs.quant.arrays import Array
from libs.quant.strategy.backtest import OPEN, Trades
from libs.quant.strategy.held_out import HeldOut
from libs.quant.strategy.models import sha256
from libs.quant.strategy.panel import Panel
from libs.quant.strategy.performance import daily_returns, performance
from libs.quant.strategy.skill import deflated_sharpe
from libs.quant.strategy.training import PERIOD_SLACK_DAYS, FoldFound, Training

WARM_UP_DAYS = 400
"""Left before training, for features that look back: about 270 sessions."""
SIZE = "position_pct"
SHARED_DAYS_MIN = 30
"""Of prices that all tickers of a design have, behind the warm-up. It leaves room for both periods;
the training says whether there is enough to learn from."""
TRAINED_DAYS = 5 * 365
HELD_OUT_DAYS = 3 * 365
HELD_OUT_PART = 0.3
"""Of a shorter time than both: what of it is held out."""

SHOWN_DECIMALS = 4
"""Of equity and prices, as they are shown."""
FIGURES = (
    "sharpe_ratio",
    "sortino_ratio",
    "win_rate",
    "max_drawdown",
    "total_return",
    "cagr",
    "turnover",
    "exposure",
    "total_trades",
    "fees",
)


@dataclass(frozen=True)
class DesignTerms:
    """By what every designer of this desk is judged."""

    costs: CostSpec
    capital: float


def taken(spec: StrategySpec, terms: DesignTerms) -> StrategySpec:
    """A request's own spec; where it says nothing of costs, with the desk's."""
    return spec.model_copy(update={"costs": spec.costs or terms.costs})


def filled(draft: StrategyDraft, histories: JsonValue, terms: DesignTerms) -> StrategySpec:
    """The spec of a draft without `draft_problems`: what is no idea of the designer's is filled in.

    The last years of the time that its tickers share are held out, those before them are learned
    from. The folds and the seed are the same for all: nobody draws again for luck.
    """
    first, last = _shared(draft.universe, histories)
    begin = first + timedelta(days=WARM_UP_DAYS)
    turn = max(last - timedelta(days=HELD_OUT_DAYS), begin + (last - begin) * (1 - HELD_OUT_PART))
    learned = max(begin, turn - timedelta(days=TRAINED_DAYS))
    return StrategySpec(
        **{name: getattr(draft, name) for name in StrategyDraft.model_fields if name != SIZE},
        sizing=SizingSpec(capital=terms.capital, position_pct=draft.position_pct),
        costs=terms.costs,
        train=Period(first=learned, last=turn),
        held_out=Period(first=turn + timedelta(days=1), last=last),
    )


def draft_problems(draft: StrategyDraft, histories: JsonValue) -> Sequence[str]:
    """The parts of a draft that the histories do not allow, a sentence each with the field."""
    if unknown := _unknown(draft.universe, histories):
        return unknown
    first, last = _shared(draft.universe, histories)
    needed = WARM_UP_DAYS + SHARED_DAYS_MIN
    if (last - first).days >= needed:
        return ()
    known = _known(histories)
    young = max(draft.universe, key=lambda ticker: str(known[ticker]["first"]))
    text = (
        f"universe: all of them have prices from {first} to {last} only; {needed} days are needed "
        f"for warm-up, training and held-out period: leave out {young}"
    )
    return [text]


def _shared(tickers: Sequence[str], histories: JsonValue) -> tuple[date, date]:
    known = _known(histories)
    firsts = [date.fromisoformat(str(known[ticker]["first"])) for ticker in tickers]
    lasts = [date.fromisoformat(str(known[ticker]["last"])) for ticker in tickers]
    return max(firsts), min(lasts)


def _known(histories: JsonValue) -> Mapping[str, Mapping[str, JsonValue]]:
    entries = histories if isinstance(histories, dict) else {}
    return {ticker: entry for ticker, entry in entries.items() if isinstance(entry, dict)}


def _unknown(tickers: Sequence[str], histories: JsonValue) -> Sequence[str]:
    return strangers("universe", tickers, sorted(_known(histories)), "it has no prices here")


def sha256_of(spec: StrategySpec) -> str:
    """The spec's hash: the same design, under the same name, has the same."""
    return hashlib.sha256(spec.model_dump_json().encode()).hexdigest()


def indicators_for_prompt() -> dict[str, JsonValue]:
    """Every indicator: what it tells, and its parameters with their default and both ends."""
    return {
        name: {
            "tells": row.tells,
            "parameters": {
                key: {"default": bounds.default, "least": bounds.least, "most": bounds.most}
                for key, bounds in row.parameters.items()
            },
        }
        for name, row in INDICATORS.items()
    }


def problems(spec: StrategySpec, histories: JsonValue) -> Sequence[str]:
    """The parts of a given spec that the histories do not allow, a sentence each with the field."""
    errors = list(_unknown(spec.universe, histories))
    known = _known(histories)
    for ticker in spec.universe:
        errors += _outside(spec, ticker, known.get(ticker))
    return errors


def _outside(
    spec: StrategySpec, ticker: str, history: Mapping[str, JsonValue] | None
) -> Sequence[str]:
    if history is None:
        return ()
    first = date.fromisoformat(str(history["first"]))
    last = date.fromisoformat(str(history["last"]))
    errors = []
    slack = timedelta(days=PERIOD_SLACK_DAYS)
    if spec.train.first + slack < first:
        errors.append(f"train.first: {spec.train.first} is before {ticker}'s first bar ({first})")
    if spec.held_out.last - slack > last:
        errors.append(f"held_out.last: {spec.held_out.last} is after {ticker}'s last bar ({last})")
    return errors


# --- results of a training ------------------------------------------------------------------------


def training_result(spec: StrategySpec, training: Training, model: bytes) -> Mapping[str, Any]:
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


# --- results of a backtest ------------------------------------------------------------------------


def backtest_result(
    spec: StrategySpec, held_out: HeldOut, others: Trials | None
) -> Mapping[str, Any]:
    """The fields of BacktestResult that the run itself knows, as JSON. `others` are the strategies
    tried besides this one, None where nobody counted them.
    """
    figures = performance(held_out.strategy)
    benchmark = performance(held_out.benchmark)
    return {
        "strategy_name": spec.name,
        "held_out": spec.held_out.model_dump(mode="json"),
        "capital": spec.sizing.capital,
        **{name: getattr(figures, name) for name in FIGURES},
        "benchmark_return": benchmark.total_return,
        "benchmark_sharpe_ratio": benchmark.sharpe_ratio,
        **_luck(held_out, others),
        "sessions": [str(day) for day in held_out.prices.sessions],
        "equity": _shown(held_out.strategy.equity),
        "benchmark": _shown(held_out.benchmark.equity),
        "trades": _trades(held_out.prices, held_out.strategy.trades),
        "prices": _prices(held_out.prices, held_out.strategy.trades),
        "data_sha256": held_out.prices.sha256(),
    }


def _luck(held_out: HeldOut, others: Trials | None) -> Mapping[str, Any]:
    if others is None:
        return {}
    returns = daily_returns(held_out.strategy.account[0])
    return {"deflated_sharpe": deflated_sharpe(returns, others), "trials": others.count + 1}


def _shown(values: Array) -> list[float]:
    return [round(float(value), SHOWN_DECIMALS) for value in values]


def _prices(prices: Panel, trades: Trades) -> Sequence[Mapping[str, Any]]:
    """Closes of the tickers that were traded most, as many as there is room for."""
    counts = np.bincount(trades.row, minlength=len(prices.tickers))
    room = min(PRICED_TICKERS_MAX, PRICES_SHOWN_MAX // len(prices))
    most = [int(row) for row in np.argsort(-counts, kind="stable")[:room] if counts[row]]
    return [
        {"ticker": prices.tickers[row], "closes": _shown(prices.close[row])} for row in sorted(most)
    ]


def _trades(prices: Panel, trades: Trades) -> Sequence[Mapping[str, Any]]:
    """The newest of them, in the order of their entries."""
    newest = np.argsort(trades.entry, kind="stable")[-TRADES_SHOWN_MAX:]
    return [_trade(prices, trades, int(place)) for place in newest]


def _trade(prices: Panel, trades: Trades, at: int) -> Mapping[str, Any]:
    closed = trades.exit[at] != OPEN
    return {
        "ticker": prices.tickers[trades.row[at]],
        "side": "long" if trades.side[at] > 0 else "short",
        "quantity": float(trades.quantity[at]),
        "entry": str(prices.sessions[trades.entry[at]]),
        "entry_price": float(trades.entry_price[at]),
        "exit": str(prices.sessions[trades.exit[at]]) if closed else None,
        "exit_price": float(trades.exit_price[at]) if closed else None,
        "profit": float(trades.profit[at]),
        "return_pct": float(trades.return_[at] * 100),
    }
