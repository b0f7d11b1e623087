"""The short form of tests.chaos.real_cycles: every kind of fault once."""

from pathlib import Path

import pytest

from tests.chaos.real_cycles import real_chaos, told

CYCLES = 27
SEED = 23
OUTAGE_S_MAX = 1.5
"""Long ones take long: the soak has them."""


@pytest.mark.timeout(420)
async def test_real_cycles_under_every_fault_complete_and_the_books_hold(
    open_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = open_dir / "real"
    folder.mkdir(mode=0o755)
    outcome = await real_chaos(CYCLES, SEED, folder, outage_s_max=OUTAGE_S_MAX)
    with capsys.disabled():
        print(f"\n{told(outcome)}")  # noqa: T201 - what was done to it is the point
    assert outcome.broken == []
    assert outcome.cycles >= CYCLES
    assert outcome.orders["exit filled"] > 0
