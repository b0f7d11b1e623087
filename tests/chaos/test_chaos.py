"""The short form of the soak: every kind of fault at least once."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.chaos.desk import ONE_PROCESS_ROLES, ROLES_OF
from tests.chaos.soak import CHAOS_SETTINGS, soak, table

SEED = 7


@pytest.mark.timeout(420)
@pytest.mark.parametrize(
    ("roles", "cycles"), [(ROLES_OF, 60), (ONE_PROCESS_ROLES, 60)], ids=["processes", "joined"]
)
async def test_cycles_under_every_fault_end_as_without_faults(
    open_dir: Path,
    capsys: pytest.CaptureFixture[str],
    roles: Mapping[str, int],
    cycles: int,
) -> None:
    outcome = await soak(cycles, SEED, CHAOS_SETTINGS, open_dir / "chaos", roles)
    with capsys.disabled():
        print(f"\n{table(outcome)}")  # noqa: T201 - the measured table is the point
    assert outcome.broken == []
    assert outcome.cycles == cycles
