"""Results of a held-out period, as a contract. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from contracts.strategy import StrategySpec
from contracts.strategy_cycle import Trials
from contracts.strategy_result import (
    PRICED_TICKERS_MAX,
    PRICES_SHOWN_MAX,
    TRADES_SHOWN_MAX,
)
from libs.quant.strategy.backtest import OPEN, Trades
from libs.quant.strategy.held_out import HeldOut
from libs.quant.strategy.panel import Panel
from libs.quant.strategy.performance import daily_returns, performance
from libs.quant.strategy.skill import deflated_sharpe

SHOWN_DECIMALS = 4
"""Of equity and prices, as they are shown."""
FIGURES = (
    *("sharpe_ratio", "sortino_ratio", "win_rate", "max_drawdown", "total_return", "cagr"),
    *("turnover", "exposure", "total_trades", "fees"),
)


def result(spec: StrategySpec, held_out: HeldOut, others: Trials | None) -> Mapping[str, Any]:
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


def _shown(values: npt.NDArray[np.float64]) -> list[float]:
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
