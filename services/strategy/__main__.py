"""Run the service: `python -m services.strategy`."""

from services.launcher import main

main("strategy")
