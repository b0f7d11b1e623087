"""Asks vectorbt and backtesting.py; prints JSON. See README.md for how to run it."""

import json
import sys
import warnings
from typing import Any

import backtesting
import numpy as np
import pandas as pd
import vectorbt as vbt

from tests.oracles import scenario
from tests.oracles.scenario import CAPITAL_EACH, FEE_BPS, LOT_SHARES, POINTS_EVERY, SLIPPAGE_BPS

FEE, SLIPPAGE = FEE_BPS / 10_000, SLIPPAGE_BPS / 10_000


def main() -> None:
    """Print what the engines say."""
    warnings.simplefilter("ignore")
    dates, opens, closes = scenario.real_prices()
    sides = scenario.sides(closes)
    index = pd.DatetimeIndex(dates)
    wide = {
        name: pd.DataFrame(rows.T, index=index, columns=list(scenario.TICKERS))
        for name, rows in (("open", opens), ("close", closes), ("side", sides))
    }
    # Decided at a close, filled at the next open.
    wide["side"] = wide["side"].shift(1, fill_value=0)
    found = {
        "made_with": {"vectorbt": vbt.__version__, "backtesting.py": backtesting.__version__},
        "sides_sha256": scenario.fingerprint(sides),
        "sessions": len(dates),
        "vectorbt_long_flat_all_in": _vectorbt(_all_in(wide)),
        "vectorbt_long_short_lots": _vectorbt(_lots(wide)),
        "backtesting_long_flat_lots": _backtesting(wide, short=False),
        "backtesting_long_short_lots": _backtesting(wide, short=True),
    }
    json.dump(found, sys.stdout, indent=1)
    sys.stdout.write("\n")


def _all_in(wide: dict[str, pd.DataFrame]) -> vbt.Portfolio:
    long = wide["side"] == 1
    return vbt.Portfolio.from_signals(
        wide["close"],
        long,
        ~long,
        price=wide["open"],
        fees=FEE,
        slippage=SLIPPAGE,
        init_cash=CAPITAL_EACH,
        freq="1D",
    )


def _lots(wide: dict[str, pd.DataFrame]) -> vbt.Portfolio:
    return vbt.Portfolio.from_orders(
        wide["close"],
        size=wide["side"] * float(LOT_SHARES),
        size_type="targetamount",
        price=wide["open"],
        fees=FEE,
        slippage=SLIPPAGE,
        init_cash=CAPITAL_EACH,
        freq="1D",
    )


def _vectorbt(made: vbt.Portfolio) -> dict[str, dict[str, Any]]:
    vbt.settings.returns["year_freq"] = "252 days"
    equity = made.value()
    trades = made.trades
    closed = trades.closed
    figures = {
        "total_return": made.total_return(),
        "sharpe_ratio": made.sharpe_ratio(),
        "sortino_ratio": made.sortino_ratio(),
        "max_drawdown": -made.max_drawdown(),
        "trades": trades.count(),
        "win_rate": closed.win_rate(),
    }
    return {
        ticker: {name: float(values[ticker]) for name, values in figures.items()}
        | {"equity": _points(equity[ticker].to_numpy())}
        for ticker in scenario.TICKERS
    }


def _backtesting(wide: dict[str, pd.DataFrame], *, short: bool) -> dict[str, dict[str, Any]]:
    return {ticker: _one(wide, ticker, short=short) for ticker in scenario.TICKERS}


def _one(wide: dict[str, pd.DataFrame], ticker: str, *, short: bool) -> dict[str, Any]:
    opens, closes = wide["open"][ticker], wide["close"][ticker]
    bars = pd.DataFrame({"Open": opens, "Close": closes})
    bars["High"], bars["Low"] = bars.max(axis=1), bars.min(axis=1)
    # It sees the side at the close and orders for the next open by itself.
    sides = wide["side"][ticker].shift(-1, fill_value=0).to_numpy()

    class Crossing(backtesting.Strategy):  # type: ignore[misc]
        def init(self) -> None:
            self.now = 0

        def next(self) -> None:
            side = int(sides[len(self.data) - 1])
            side = side if short else max(side, 0)
            if side == self.now:
                return
            self.position.close()
            if side > 0:
                self.buy(size=LOT_SHARES)
            elif side < 0:
                self.sell(size=LOT_SHARES)
            self.now = side

    run = backtesting.Backtest(bars, Crossing, cash=CAPITAL_EACH, commission=FEE)
    stats = run.run()
    profits = stats["_trades"]["PnL"]
    return {
        "total_return": float(stats["Return [%]"]) / 100,
        "max_drawdown": -float(stats["Max. Drawdown [%]"]) / 100,
        "closed_trades": len(profits),
        "win_rate": float(stats["Win Rate [%]"]) / 100,
        "equity": _points(stats["_equity_curve"]["Equity"].to_numpy()),
    }


def _points(equity: np.ndarray) -> list[float]:
    return [float(value) for value in equity[::POINTS_EVERY]] + [float(equity[-1])]


if __name__ == "__main__":
    main()
