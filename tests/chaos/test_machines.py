"""The short forms of tests.chaos.machines: the leading NATS node and the Postgres primary go; the
primary's host is cut off."""

from pathlib import Path

import pytest

from tests.chaos.faults import Fault, Kind
from tests.chaos.hosts import network_of, problem
from tests.chaos.machines import NODES, outage, survive
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


@pytest.mark.soak
@pytest.mark.timeout(400)
async def test_the_host_of_the_primary_is_cut_off_and_nothing_is_lost_or_paid_twice(
    open_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if why := problem():
        pytest.skip(why)
    folder = open_dir / "hosts"
    folder.mkdir(mode=0o755)
    with network_of(NODES) as network:
        cut = [Fault(Kind.CUT, "primary", 0.3, 5.0)]
        outcome = await survive(CYCLES // 2, SEED, folder, cut, network)
    with capsys.disabled():
        print(f"\n{table(outcome)}")  # noqa: T201 - the measured table is the point
    assert outcome.broken == []
    assert outcome.cycles == CYCLES // 2
