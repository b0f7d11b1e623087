"""Run the service: `python -m services.notifier`."""

from services.launcher import main

main("notifier")
