"""The plan of the example with a paid model, in docs/studies.md: printed by the program.

`make contracts` writes it anew; a test says when it is stale. It asks nobody and costs nothing.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from deploy.reference.table_in_page import put

ROOT = Path(__file__).parents[2]
EXAMPLE = "examples/studies/paid.yaml"
BEGIN = "<!-- PLAN-OF-PAID: begin (written by `make contracts`; do not edit) -->"
END = "<!-- PLAN-OF-PAID: end -->"
COLUMNS = 110
TIMEOUT_S = 120.0


def printed() -> str:
    """The output of `deskbus study plan` for whoever has set nothing."""
    kept = {name: text for name, text in os.environ.items() if not name.startswith("DESKBUS_")}
    with tempfile.TemporaryDirectory(prefix="plan-") as folder:
        copy = Path(folder) / Path(EXAMPLE).name
        copy.write_bytes((ROOT / EXAMPLE).read_bytes())
        done = subprocess.run(
            [sys.executable, "-m", "services.cli", "study", "plan", "paid.yaml"],
            cwd=folder,
            env={**kept, "COLUMNS": str(COLUMNS), "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=TIMEOUT_S,
            check=True,
        )
    return "\n".join(line.rstrip() for line in done.stdout.rstrip().splitlines())


def written(page: str) -> str:
    """The page with the plan as it is now."""
    return put(page, BEGIN, END, f"```\n{printed()}\n```")
