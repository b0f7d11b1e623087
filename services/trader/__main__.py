"""Run the service: `python -m services.trader`."""

from services.launcher import main

main("trader")
