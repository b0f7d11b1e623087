"""The short form of the soak: every kind of fault at least once."""

from pathlib import Path

import pytest

from tests.chaos.soak import CHAOS_SETTINGS, soak, table

CYCLES = 200
SEED = 7


@pytest.mark.timeout(420)
async def test_two_hundred_cycles_under_every_fault_end_as_without_faults(
    open_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outcome = await soak(CYCLES, SEED, CHAOS_SETTINGS, open_dir / "chaos")
    with capsys.disabled():
        print(f"\n{table(outcome)}")  # noqa: T201 - the measured table is the point
    assert outcome.broken == []
    assert outcome.cycles == CYCLES
