"""Run the service: `python -m services.exit_signal`."""

from services.launcher import main

main("exit_signal")
