"""The short form of tests.chaos.orders_at_broker: two evenings, and each of the four is killed."""

from pathlib import Path

import pytest

from tests.chaos.orders_at_broker import Bearer, storm

ORDERS, FAULTS, KILLS, SEED = 10, 12, 4, 5


@pytest.mark.timeout(300)
async def test_what_a_desk_orders_at_a_broker_is_there_once_whatever_is_killed(
    open_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = open_dir / "broker"
    folder.mkdir(mode=0o755)
    found = await storm(folder, orders=ORDERS, faults=FAULTS, seed=SEED, kills_max=KILLS)
    with capsys.disabled():
        print(f"\n{found}")  # noqa: T201 - what was done to it is the point
    assert found.broken == []
    assert found.orders >= ORDERS
    assert found.kills.keys() == set(Bearer)
    assert found.faults
