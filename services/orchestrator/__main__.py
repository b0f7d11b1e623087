"""Run the service: `python -m services.orchestrator`."""

from services.launcher import main

main("orchestrator")
