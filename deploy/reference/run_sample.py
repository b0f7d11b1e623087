"""The output of `deskbus run` in the docs: printed by the program, at a fixed width.

`python -m deploy.reference.run_sample docs/reading.md` (`make readme`) writes it anew; a test says
when it is stale. Ids, times taken and the folder differ from run to run: their form is compared.
"""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from deploy.reference.table_in_page import put

BEGIN = "<!-- OUTPUT-OF-MAKE-RUN: begin (written by `make readme`; do not edit) -->"
END = "<!-- OUTPUT-OF-MAKE-RUN: end -->"
COLUMNS = 110
FOLDER = "/home/you/deskbus/.deskbus"
TIMEOUT_S = 300.0
FORMS: Sequence[tuple[re.Pattern[str], str]] = (
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"), "ID"),
    (re.compile(r"\brun-[0-9a-f]{8}\b"), "run-ID"),
    (re.compile(r"\b(?=[0-9a-f]*[0-9])[0-9a-f]{8}\b"), "ID"),
    (re.compile(r"\b[\d.]+ m?s\b"), "TIME"),
    (re.compile(r"\s+"), " "),
)
"""Parts that differ from run to run, and the word that stands for each; lines may break elsewhere
where a time is longer."""


def printed() -> str:
    """The output of `deskbus run` of a desk that has never run, as a reader has it."""
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="readme-") as folder:
        kept = {name: text for name, text in os.environ.items() if not name.startswith("DESKBUS_")}
        done = subprocess.run(
            [sys.executable, "-m", "services.cli", "run"],
            cwd=folder,
            env={**kept, "COLUMNS": str(COLUMNS), "PYTHONPATH": str(Path(__file__).parents[2])},
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=TIMEOUT_S,
            check=True,
        )
        return done.stdout.replace(str(Path(folder).resolve() / ".deskbus"), FOLDER).rstrip()


def sample_of(page: str) -> str:
    """The output as a page shows it. Raises ValueError where the page has none."""
    _, begins, rest = page.partition(BEGIN)
    sample, ends, _ = rest.partition(END)
    if not begins or not ends:
        raise ValueError(f"the page needs the two lines {BEGIN!r} and {END!r}")
    return sample.strip().removeprefix("```").removesuffix("```").strip()


def form_of(output: str) -> str:
    """The output without what differs from run to run."""
    for pattern, word in FORMS:
        output = pattern.sub(word, output)
    return output.strip()


def main(path: Path) -> None:
    """Rewrite the page."""
    path.write_text(put(path.read_text(), BEGIN, END, f"```\n{printed()}\n```"))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
