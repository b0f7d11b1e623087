"""Damaged files of prices: `python -m tests.chaos.damaged_files --files 20000`.

Each is read by the desk and by a reader that knows the form it was written in, and then imported,
as is a damaged export of a broker. The exit code is 1 where the desk crashed, or read something
else than stands in the file.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from libs.market.calendar import exchange_calendar
from tests.fakes.mutated_files import case_of, crash_of_imports, judge


def main() -> None:
    """Judge the files and print those that were read wrongly."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=20_000)
    files = parser.parse_args().files
    calendar, wrong = exchange_calendar(), 0
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(files):
            case, path = case_of(seed, calendar), Path(folder) / "A.csv"
            said = judge(case, path, calendar)
            if said := said or crash_of_imports(seed, case, path, calendar):
                wrong += 1
                print(f"seed {seed}: {said}")  # noqa: T201
    print(f"{files:,} files, {wrong} read wrongly")  # noqa: T201
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
