"""The short form of tests.chaos.changing_files."""

from pathlib import Path

import pytest

from tests.chaos.changing_files import changing_files, told

CYCLES = 12


@pytest.mark.timeout(300)
async def test_a_cycle_reads_one_version_of_files_that_change(
    open_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = open_dir / "files"
    folder.mkdir(mode=0o755)
    outcome = await changing_files(CYCLES, 3, folder)
    with capsys.disabled():
        print(f"\n{told(outcome)}")  # noqa: T201 - what was done to it is the point
    assert outcome.broken == []
