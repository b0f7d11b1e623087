"""Whole decisions on figures and filings from EDGAR: what they rest on, and whose name is in them.

EDGAR is its stand-in over loopback; everything else is as shipped.
"""

from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest
from pydantic import SecretStr

from contracts.cycle import CycleRequest, CycleStatus
from libs.runtime.settings import Settings
from tests.fakes.edgar_live import AMENDED, CONTACT, apple
from tests.fakes.edgar_server import StandIn, serving
from tests.fakes.in_process_desk import InProcessDesk, broker_of_the_imagination
from tests.fakes.log_lines import log_lines
from tests.flow.conftest import thinking_routes

AS_OF = date(2010, 1, 26)
"""The session after Apple's restatement."""


@pytest.fixture
def edgar() -> Iterator[StandIn]:
    with serving(apple()) as server:
        yield server


async def decided(edgar: StandIn, folder: Path, contact: str | None) -> InProcessDesk:
    settings = Settings(
        market={"fundamentals": "edgar", "events": "edgar"},
        edgar={"url": edgar.url, "contact": SecretStr(contact) if contact else None},
        data_dir=folder,
    )
    routes = await thinking_routes(settings)
    desk = InProcessDesk([*routes, *broker_of_the_imagination()], settings)
    await desk.run(CycleRequest(idempotency_key="a", as_of=AS_OF, universe=("AAPL",)))
    return desk


def record(desk: InProcessDesk) -> str:
    """All that the desk would keep of its cycles."""
    kept = [f"{row!r}" for row in desk.cycles.values()] + [f"{event!r}" for event in desk.events]
    for each in desk.operations.values():
        kept += [f"{each!r}", each.command.decode(), (each.result or b"").decode()]
        kept += [entry.model_dump_json() for entry in each.journal]
    return "\n".join(kept)


def files_below(folder: Path) -> list[str]:
    paths = [path for path in folder.rglob("*") if path.is_file()]
    assert paths, "the pace of EDGAR is kept in one"
    return [path.read_text(errors="replace") for path in paths]


async def test_a_decision_rests_on_what_edgar_said_and_its_record_does_not_name_the_contact(
    edgar: StandIn, tmp_path: Path
) -> None:
    with log_lines() as logs:
        desk = await decided(edgar, tmp_path, CONTACT)

    assert [row.state.status for row in desk.cycles.values()] == [CycleStatus.COMPLETED]
    kept = record(desk)
    assert AMENDED in kept
    assert '"eps_fiscal_year":9.08' in kept.replace(" ", "").replace("\\", "")
    assert edgar.agents, "EDGAR was asked, by name"
    assert all(agent.endswith(CONTACT) for agent in edgar.agents)
    assert "margaret" not in kept + str(logs)
    assert "margaret" not in "".join(files_below(tmp_path))


async def test_without_a_contact_nothing_is_asked_and_the_decision_fails_by_its_name(
    edgar: StandIn, tmp_path: Path
) -> None:
    desk = await decided(edgar, tmp_path, None)

    (cycle,) = desk.cycles.values()
    assert cycle.state.status is CycleStatus.FAILED
    assert "DESKBUS_EDGAR_CONTACT" in cycle.state.reason
    assert "contact_missing" in cycle.state.reason
    assert edgar.asked == []
