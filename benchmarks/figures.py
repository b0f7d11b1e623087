"""What a figure costs from fact to sentence: `python -m benchmarks.figures`.

The market's own tools answer on the bundled prices, code lays their results out as facts, and 15
reasons that hold one fact against another are written as text. Times are CPU milliseconds of this
process for all of it, shared among the figures; the median of rounds.
"""

import argparse
import asyncio
import statistics
import time
from datetime import date
from typing import Final

from benchmarks.report import table
from contracts.reasons import Reason, Speaks
from libs.facts.compose import Cited, argued
from libs.facts.fact import Facts
from libs.facts.market import ToolAnswer, market_facts
from libs.market.replay.market import ReplayMarket, ReplayStore
from libs.market.tools.toolbox import MARKET_TOOL_NAMES, MarketTools

AS_OF: Final = date(2012, 6, 29)
TICKERS: Final = ("AAPL", "FB", "GOOG", "IBM", "MSFT")
TOOLS: Final = ("get_stock_price", "get_technical_indicators", "get_stock_history")
PAIRS: Final = (("close", "sma_50"), ("close", "sma_20"), ("change_21d_pct", "volatility_3m_pct"))
ROUNDS_DEFAULT: Final = 200
GOAL_MS: Final = 0.05


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS_DEFAULT)
    rounds = parser.parse_args().rounds
    results = asyncio.run(ask())
    spent: list[float] = []
    for _ in range(rounds + 1):
        started = time.process_time()
        facts, figures = write(results)
        spent.append((time.process_time() - started) * 1e3)
    middle = statistics.median(spent[1:])  # the first warms up
    row = (str(len(results)), str(facts), str(figures), f"{middle:.2f}", f"{middle / figures:.3f}")
    verdict = "met" if middle / figures <= GOAL_MS else "MISSED"
    print(table(("results", "facts", "figures", "CPU-ms", "CPU-ms a figure"), [row]))
    print(f"\nat most {GOAL_MS} ms a figure: {verdict}")


async def ask() -> list[ToolAnswer]:
    """What the tools answer, as a model's loop would keep it."""
    tools = MarketTools(ReplayMarket(ReplayStore()), AS_OF, MARKET_TOOL_NAMES)
    calls = [(tool, ticker) for ticker in TICKERS for tool in TOOLS]
    return [
        ToolAnswer(f"E{place}", tool, await tools.call(tool, {"ticker": ticker}))
        for place, (tool, ticker) in enumerate(calls)
    ]


def write(results: list[ToolAnswer]) -> tuple[int, int]:
    """Lay out the facts and argue with them; how many facts and figures that were."""
    facts = Facts.of(market_facts(results), TICKERS)
    texts = {ticker: argued(reasons(ticker, facts), facts, ticker) for ticker in TICKERS}
    return len(facts.by_name), len(Cited.of(texts).figures)


def reasons(ticker: str, facts: Facts) -> list[Reason]:
    """A reason a pair of quantities that this ticker has."""
    named = [(f"{ticker}.{one}", f"{ticker}.{other}") for one, other in PAIRS]
    return [
        Reason(fact=one, beside=other, speaks=Speaks.FOR, why="the trend holds", about=ticker)
        for one, other in named
        if facts.get(one) and facts.get(other)
    ]


if __name__ == "__main__":
    main()
