"""Run the service: `python -m services.strategy_design`."""

from services.launcher import main

main("strategy_design")
