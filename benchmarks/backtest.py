"""A backtest of 500 tickers over 10 years, ours and vectorbt's: `python -m benchmarks.backtest`.

All start from the same entry and exit flags of an average's crossing (random walks, one seed),
decided at a close and filled at the next open, with fee and slippage, all of a ticker's capital in
each position; and end with five figures for each ticker: total return, Sharpe ratio, maximum
drawdown, win rate and number of trades. The results are compared before the times are.

vectorbt is run once beforehand, so that its compiled code is there. Times are CPU seconds of this
process (user + system), since a shared machine's clock says more about its neighbours; medians of
the rounds, which take turns. `one pass` reads every close once and writes a number for each.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from benchmarks.report import table
from libs.quant.strategy import performance
from libs.quant.strategy.backtest import Sizing, backtest
from libs.quant.strategy.fills import Terms
from libs.quant.strategy.panel import Panel
from libs.quant.strategy.rules import latest_of

TICKERS: Final = 500
SESSIONS: Final = 2_520
FAST, SLOW = 10, 30
FEE_BPS, SLIPPAGE_BPS = 5.0, 5.0
CAPITAL_EACH: Final = 10_000.0
ROUNDS_DEFAULT: Final = 9
SHARE_MAX: Final = 1 / 7
TOLERANCE: Final = 1e-6

Array = npt.NDArray[np.float64]
Figures = dict[str, Array]


@dataclass(frozen=True)
class Scene:
    """What all contenders are given."""

    prices: Panel
    enter: npt.NDArray[np.bool_]
    leave: npt.NDArray[np.bool_]


def main() -> None:
    """Measure and print; figures that differ end it with exit code 1."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS_DEFAULT)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    scene = make_scene()
    warm = np.ones_like(scene.prices.close)
    contenders = {"deskbus": lambda: ours(scene), "one pass": lambda: one_pass(scene, warm)}
    contenders |= vectorbts(scene)
    first = {name: run() for name, run in contenders.items()}
    compare(first)
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(arguments.rounds):
        for name, run in contenders.items():
            seconds[name].append(_cpu_s(run))
    print(json.dumps(seconds) if arguments.json else render(seconds))


def make_scene() -> Scene:
    """Random walks with gaps at the open, and the crossings of two averages."""
    rng = np.random.default_rng(0)
    shape = (TICKERS, SESSIONS)
    close = 50 * np.exp(np.cumsum(rng.normal(0, 0.02, shape), axis=1))
    open_ = np.hstack([close[:, :1], close[:, :-1]]) * np.exp(rng.normal(0, 0.003, shape))
    above = _average(close, FAST) > _average(close, SLOW)
    above[:, :SLOW] = False
    before = np.hstack([np.zeros((TICKERS, 1), dtype=bool), above[:, :-1]])
    days = np.datetime64("2003-01-01") + np.arange(SESSIONS)
    names = tuple(f"T{n}" for n in range(TICKERS))
    prices = Panel(names, days, open_, close, close, close, np.ones(shape))
    return Scene(prices, above & ~before, before & ~above)


def _average(close: Array, bars: int) -> Array:
    sums = np.cumsum(close, axis=1)
    sums[:, bars:] -= sums[:, :-bars].copy()
    return sums / bars


def ours(scene: Scene) -> Figures:
    """From the flags to the figures, through the shipped engine."""
    sides = latest_of(scene.enter, scene.leave)
    sizing = Sizing(CAPITAL_EACH * TICKERS)
    found = backtest(scene.prices, sides, sizing, Terms(FEE_BPS, SLIPPAGE_BPS))
    figures = performance.by_ticker(found)
    return {
        "total_return": figures.total_return,
        "sharpe_ratio": figures.sharpe_ratio,
        "max_drawdown": figures.max_drawdown,
        "win_rate": figures.win_rate,
        "trades": figures.total_trades.astype(np.float64),
    }


def one_pass(scene: Scene, into: Array) -> Figures:
    """The floor: every close read, a number written for each, into memory that is there already: a
    new array costs more in page faults than the pass itself."""
    return {"product": np.multiply(scene.prices.close, 1.0005, out=into)}


def vectorbts(scene: Scene) -> dict[str, Callable[[], Figures]]:
    """vectorbt with each of its engines that is installed."""
    import pandas as pd  # noqa: PLC0415 - only in the benchmark's environment
    import vectorbt as vbt  # noqa: PLC0415

    vbt.settings.returns["year_freq"] = "252 days"
    index = pd.DatetimeIndex(scene.prices.sessions)
    close, open_ = (
        pd.DataFrame(rows.T, index=index) for rows in (scene.prices.close, scene.prices.open)
    )
    # It fills on the bar of the flag; ours are of the close before.
    late = [np.vstack([np.zeros((1, TICKERS), bool), f.T[:-1]]) for f in (scene.enter, scene.leave)]
    enter, leave = (pd.DataFrame(flags, index=index) for flags in late)

    def run(engine: str) -> Figures:
        made = vbt.Portfolio.from_signals(
            close,
            enter,
            leave,
            price=open_,
            fees=FEE_BPS / 10_000,
            slippage=SLIPPAGE_BPS / 10_000,
            init_cash=CAPITAL_EACH,
            freq="1D",
            engine=engine,
        )
        trades = made.trades
        figures: dict[str, Any] = {
            "total_return": made.total_return(),
            "sharpe_ratio": made.sharpe_ratio(),
            "max_drawdown": -made.max_drawdown(),
            "win_rate": trades.closed.win_rate(),
            "trades": trades.count(),
        }
        return {name: values.to_numpy(dtype=np.float64) for name, values in figures.items()}

    version = vbt.__version__
    return {
        f"vectorbt {version}, {engine}": lambda engine=engine: run(engine)  # type: ignore[misc]
        for engine in ("rust", "numba")
    }


def compare(found: dict[str, Figures]) -> None:
    """End the benchmark where vectorbt's figures are not ours."""
    mine = found["deskbus"]
    for name, theirs in found.items():
        if not name.startswith("vectorbt"):
            continue
        for figure, values in theirs.items():
            # vectorbt counts the first session as a return of 0: one part in 2,520 of the ratio.
            tolerance = 1e-3 if figure == "sharpe_ratio" else TOLERANCE
            if not np.allclose(mine[figure], values, rtol=tolerance, atol=1e-9, equal_nan=True):
                off = float(np.nanmax(np.abs(mine[figure] - values)))
                raise SystemExit(f"{name} and deskbus differ in {figure} by up to {off:g}")


def _cpu_s(run: Callable[[], Figures]) -> float:
    started = time.process_time()
    run()
    return time.process_time() - started


def render(seconds: dict[str, list[float]]) -> str:
    """The table, and the share of the fastest vectorbt."""
    middle = {name: statistics.median(values) for name, values in seconds.items()}
    rows = [
        (
            name,
            f"{middle[name] * 1e3:,.1f}",
            f"{min(values) * 1e3:,.1f}",
            f"{middle[name] / middle['deskbus']:,.2f}",
        )
        for name, values in sorted(seconds.items(), key=lambda item: middle[item[0]])
    ]
    fastest = min(value for name, value in middle.items() if name.startswith("vectorbt"))
    share = middle["deskbus"] / fastest
    said = "met" if share <= SHARE_MAX else "MISSED"
    head = ("contender", "CPU-ms, median", "CPU-ms, least", "of ours")
    return f"{table(head, rows)}\n\n1/{1 / share:.0f} of vectorbt's fastest; at most 1/7: {said}"


if __name__ == "__main__":
    main()
