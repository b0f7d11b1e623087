"""Run the service: `python -m services.strategy_backtest`."""

from services.launcher import main

main("strategy_backtest")
