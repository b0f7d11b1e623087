"""Arms of one cycle on the stated rules, named and masked: the mask loses nothing that they use."""

from datetime import date
from typing import Any

import pytest

from contracts.cycle import CycleRequest, StudyCell
from contracts.message import Pipeline
from libs.runtime.settings import Settings
from tests.fakes.in_process_desk import InProcessDesk, broker_of_the_imagination
from tests.flow.conftest import thinking_routes
from tests.unit.services.conftest import FIXTURE_AS_OF, FIXTURE_MARKET

BUNDLED = ("AAPL", "FB", "GOOG", "IBM", "MSFT")
STEPS = ("sentiment", "plan", "quant", "analyst", "picks", "review", "validate")
OWN = frozenset({"cycle_id", "op_id", "account", "pipeline", "proposal_hash"})
"""What the contracts of two arms differ by, whatever they decide."""


def arms(*masked: bool) -> tuple[Pipeline, ...]:
    return tuple(
        Pipeline(
            name="blind" if hidden else "named",
            account=f"study-0123abcd-0-0-{'blind' if hidden else 'named'}",
            masked=hidden,
        )
        for hidden in masked
    )


def request(day: date, universe: tuple[str, ...]) -> CycleRequest:
    return CycleRequest(
        idempotency_key=f"cell-{day}",
        as_of=day,
        universe=universe,
        pipelines=arms(False, True),
        study=StudyCell(study="blindness", number=0),
    )


def decided(contract: Any) -> Any:
    """A contract without what is its arm's own."""
    if isinstance(contract, dict):
        return {key: decided(item) for key, item in contract.items() if key not in OWN}
    return [decided(item) for item in contract] if isinstance(contract, list) else contract


async def masked_and_named(desk: InProcessDesk, day: date, universe: tuple[str, ...]) -> None:
    cycle = await desk.run(request(day, universe))
    assert {lane.status for lane in cycle.state.lanes.values()} == {"completed"}
    for step in STEPS:
        named, blind = (desk.contract(step, lane) for lane in ("named", "blind"))
        assert decided(named) == decided(blind), step


@pytest.mark.slow
@pytest.mark.parametrize(
    "day",
    [
        date(2003, 4, 2),
        date(2006, 11, 9),
        date(2008, 10, 10),
        date(2010, 5, 6),
        date(2012, 6, 29),
        date(2013, 2, 28),
    ],
)
async def test_on_real_prices_both_decide_exactly_alike(desk: InProcessDesk, day: date) -> None:
    universe = tuple(name for name in BUNDLED if name != "FB" or day.year > 2012)
    await masked_and_named(desk, day, universe)


async def test_with_headlines_reports_and_fundamentals_they_do_so_too() -> None:
    settings = Settings(market={"replay_dir": FIXTURE_MARKET})
    desk = InProcessDesk([*await thinking_routes(settings), *broker_of_the_imagination()], settings)
    await masked_and_named(desk, FIXTURE_AS_OF, ("ALFA", "BRVO", "CHRL", "ECHO"))
    assert desk.contract("sentiment", "blind")["tickers"]
