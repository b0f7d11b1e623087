"""Run the service: `python -m services.risk`."""

from services.launcher import main

main("risk")
