"""Run the service: `python -m services.console`."""

from services.launcher import main

main("console")
