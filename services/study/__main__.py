"""Run the service: `python -m services.study`."""

from services.launcher import main

main("study")
