"""Damaged files are refused or read as they stand: no crash, and no row lost in silence."""

import subprocess
import sys
from pathlib import Path

import pytest

from libs.market.calendar import exchange_calendar
from tests.fakes.mutated_files import case_of, crash_of_imports, judge

FILES = 500
DAMAGE = """
import random, sys
from datetime import date, timedelta
from pathlib import Path
import polars as pl
from libs.files.finding import BadFile
from libs.market.replay.files import read_prices
rng, path = random.Random(int(sys.argv[2])), Path(sys.argv[1]) / "A.parquet"
days = pl.Series("date", [date(2024, 1, 1) + timedelta(days=n) for n in range(400)])
days = days.filter(days.dt.weekday() <= 5)
frame = pl.DataFrame([days, *(pl.Series(n, [10.0 + n_ % 7 for n_ in range(len(days))])
    for n in ("open", "high", "low", "close", "volume"))])
frame = frame.with_columns(high=20.0, low=1.0)
frame.write_parquet(path, compression=rng.choice(["zstd", "snappy", "uncompressed"]))
whole = path.read_bytes()
for _ in range(150):
    damaged = bytearray(whole)
    for _ in range(rng.choice([1, 1, 2])):
        damaged[rng.randrange(len(damaged))] = rng.randrange(256)
    path.write_bytes(damaged)
    try:
        read_prices(path)
    except BadFile:
        pass
print("ok")
"""


@pytest.mark.slow
def test_no_damaged_file_crashes_the_reader_or_loses_a_row(tmp_path: Path) -> None:
    calendar = exchange_calendar()
    found = {
        seed: said
        for seed in range(FILES)
        if (said := judge(case_of(seed, calendar), tmp_path / "A.csv", calendar))
    }
    assert not found


@pytest.mark.slow
def test_no_damaged_file_crashes_an_import(tmp_path: Path) -> None:
    calendar = exchange_calendar()
    crashes = {
        seed: crash
        for seed in range(FILES)
        if (crash := crash_of_imports(seed, case_of(seed, calendar), tmp_path / "A.csv", calendar))
    }
    assert not crashes


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_no_damaged_byte_of_a_parquet_file_crashes_the_reader(tmp_path: Path, seed: int) -> None:
    """In a process of its own: the worst that damage can do ends the process."""
    done = subprocess.run(
        [sys.executable, "-c", DAMAGE, str(tmp_path), str(seed)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stderr[-2_000:]
