"""Run the service: `python -m services.execution`."""

from services.launcher import main

main("execution")
