"""Run the service: `python -m services.strategy_training`."""

from services.launcher import main

main("strategy_training")
