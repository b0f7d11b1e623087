"""The short form of tests.chaos.machines: the leading NATS node and the Postgres primary go."""

from pathlib import Path

import pytest

from tests.chaos.machines import outage, survive
from tests.chaos.soak import table

CYCLES = 40
SEED = 2


@pytest.mark.soak
@pytest.mark.timeout(240)
async def test_the_leading_node_and_the_primary_go_and_nothing_is_lost_or_paid_twice(
    open_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = open_dir / "machines"
    folder.mkdir(mode=0o755)
    outcome = await survive(CYCLES, SEED, folder, [outage("leader"), outage("primary")])
    with capsys.disabled():
        print(f"\n{table(outcome)}")  # noqa: T201 - the measured table is the point
    assert outcome.broken == []
    assert outcome.cycles == CYCLES
    assert len(outcome.recoveries) == 2, "after each of them a cycle completed"
