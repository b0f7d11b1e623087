"""Run the service: `python -m services.assessment`."""

from services.launcher import main

main("assessment")
