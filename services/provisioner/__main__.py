"""Run the service: `python -m services.provisioner`."""

from services.launcher import main

main("provisioner")
