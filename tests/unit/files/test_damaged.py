"""Damaged files are refused or read as they stand: no crash, and no row lost in silence."""

from pathlib import Path

from libs.market.calendar import exchange_calendar
from tests.fakes.mutated_files import case_of, judge

FILES = 500


def test_no_damaged_file_crashes_the_reader_or_loses_a_row(tmp_path: Path) -> None:
    calendar = exchange_calendar()
    found = {
        seed: said
        for seed in range(FILES)
        if (said := judge(case_of(seed, calendar), tmp_path / "A.csv", calendar))
    }
    assert not found
