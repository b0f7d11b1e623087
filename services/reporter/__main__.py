"""Run the service: `python -m services.reporter`."""

from services.launcher import main

main("reporter")
