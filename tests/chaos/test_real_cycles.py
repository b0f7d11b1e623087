"""The short form of tests.chaos.real_cycles: every kind of fault once."""

from pathlib import Path

import pytest

from tests.chaos.real_cycles import real_chaos, told

CYCLES = 45
SEED = 7


@pytest.mark.timeout(420)
async def test_real_cycles_under_every_fault_complete_and_the_books_hold(
    open_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = open_dir / "real"
    folder.mkdir(mode=0o755)
    outcome = await real_chaos(CYCLES, SEED, folder)
    with capsys.disabled():
        print(f"\n{told(outcome)}")  # noqa: T201 - what was done to it is the point
    assert outcome.broken == []
    assert outcome.cycles == CYCLES
