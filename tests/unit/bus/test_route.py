"""What a service hears and says: wired in Python, checked when it starts."""

from typing import Any

import pytest

from contracts.cycle_query import CyclesPage, CyclesQuery
from contracts.message import Command
from contracts.subjects.commands import PICK_TRADES
from contracts.subjects.cycles import CYCLES
from contracts.trader import DailyPicks
from libs.bus.route import Routes, on_command, on_query, on_request
from libs.runtime.journal import Journal


async def pick(command: Command, _journal: Journal) -> DailyPicks:
    raise NotImplementedError(command)


async def page(_query: CyclesQuery, *, store: Any) -> CyclesPage:
    store.append("asked")
    return CyclesPage()


async def page_for(caller: str, _query: CyclesQuery, *, store: Any) -> CyclesPage:
    store.append(caller)
    return CyclesPage()


def test_a_service_cannot_be_wired_to_another_ones_rows() -> None:
    Routes("trader", commands=(on_command(PICK_TRADES, pick),))
    with pytest.raises(ValueError, match=r"risk does not own desk\.v1\.cmd\.trader\.picks"):
        Routes("risk", commands=(on_command(PICK_TRADES, pick),))
    with pytest.raises(ValueError, match="risk does not own"):
        Routes("risk", questions=(on_query(CYCLES, page, store=[]),))


async def test_a_handler_gets_what_is_wired_to_it_and_a_requests_also_its_caller() -> None:
    store: list[str] = []
    for route in (on_query(CYCLES, page, store=store), on_request(CYCLES, page_for, store=store)):
        assert await route.handle("cli", CyclesQuery()) == CyclesPage()
    assert store == ["asked", "cli"]
