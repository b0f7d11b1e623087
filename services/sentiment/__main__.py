"""Run the service: `python -m services.sentiment`."""

from services.launcher import main

main("sentiment")
