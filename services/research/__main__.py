"""Run the service: `python -m services.research`."""

from services.launcher import main

main("research")
