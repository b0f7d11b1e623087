"""Versions side by side: each side is replaced while cycles run, and nothing is noticed."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from services.orchestrator.machine.workflows import DECISION
from tests.integration.upgrade.conftest import Desk, Lanes, services_of
from tests.integration.upgrade.old_release import run_in

WHERE = "import contracts, libs, services; print(contracts.__file__, libs.__file__)"


async def started(desk: Desk, tree: Path) -> None:
    """A whole desk of one version."""
    await desk.migrate(tree)
    await desk.start("provisioner", tree)
    await desk.start("orchestrator", tree)
    await desk.start("services", tree, services_of(tree))


async def replaced(
    desk: Desk, lanes: Lanes, group: str, tree: Path, names: Sequence[str] = ()
) -> None:
    """Replace a group by another version, with cycles in flight, and see one more to its end."""
    moment = await desk.replace(group, tree, names)
    assert await lanes.one() == "completed"
    assert lanes.crossing(moment)


async def require_order(desk: Desk, lanes: Lanes) -> None:
    """The tables are the new ones, cycles of both workflows ran, and every cycle completed at the
    first attempt, bought once, and has events without a gap."""
    assert {each.status for each in lanes.cycles} == {"completed"}
    assert (await lanes.caller.query("dead_letters"))["letters"] == []
    async with desk.database() as db:
        moods = await db.fetch("select distinct mood from cycles")
        followed = await db.fetch("select distinct workflow_version from cycles order by 1")
        tried = await db.fetch("select distinct status, attempt from operations")
        bought = await db.fetch(
            "select count(o.order_id) filter (where o.type = 'market') as orders "
            "from cycles c left join orders o using (cycle_id) "
            "group by c.cycle_id"
        )
        unbalanced = await db.fetch(
            "select entry_id from postings group by entry_id having sum(amount) <> 0"
        )
    assert [tuple(row) for row in tried] == [("completed", 1)]
    assert [tuple(row) for row in moods] == [("calm",)]
    assert [row["workflow_version"] for row in followed] == [DECISION.version, DECISION.version + 1]
    assert {row["orders"] for row in bought} == {2}
    assert unbalanced == []
    for each in lanes.cycles:
        told = {event["sequence"] for event in lanes.caller.events.of(each.cycle_id)}
        assert told == set(range(1, len(told) + 1))


def test_the_old_tree_runs_its_own_code(old: Path, new: Path) -> None:
    for tree in (old, new):
        assert all(path.startswith(str(tree)) for path in run_in(tree, "-c", WHERE).split())


async def test_services_are_upgraded_before_orchestrators_and_all_is_taken_back(
    desk: Desk, lanes: Lanes, old: Path, new: Path
) -> None:
    await started(desk, old)
    async with lanes.busy():
        await replaced(desk, lanes, "provisioner", new)
        await desk.migrate(new)
        await replaced(desk, lanes, "services", new, services_of(new))
        await replaced(desk, lanes, "orchestrator", new)
        await replaced(desk, lanes, "services", old, services_of(old))
    # Old orchestrators do not know a new version of the workflow: its cycles end before.
    await desk.replace("orchestrator", old)
    async with lanes.busy():
        assert await lanes.one() == "completed"
    await require_order(desk, lanes)


@pytest.mark.soak
async def test_orchestrators_are_upgraded_before_services(
    desk: Desk, lanes: Lanes, old: Path, new: Path
) -> None:
    await started(desk, old)
    async with lanes.busy():
        await replaced(desk, lanes, "provisioner", new)
        await desk.migrate(new)
        await replaced(desk, lanes, "orchestrator", new)
        await replaced(desk, lanes, "services", new, services_of(new))
    await require_order(desk, lanes)
