"""Which commit loop takes an input."""

from dataclasses import dataclass
from datetime import date
from typing import cast
from uuid import UUID

import pytest

from contracts.cycle import CycleRequest
from contracts.message import Pipeline
from contracts.operation import Claim, Result
from services.orchestrator.group import split
from services.orchestrator.group.inputs import (
    CancelAskedFor,
    Claimed,
    CycleAsked,
    CycleOverdue,
    Resulted,
)
from services.orchestrator.group.rows import OperationRow
from services.orchestrator.group.split import Split

PARTS = 3


@dataclass
class Row:
    """An operation and its cycle."""

    op_id: UUID
    cycle_id: UUID


def kept(known: Split, *pairs: tuple[int, int]) -> None:
    rows = [Row(UUID(int=op_id), UUID(int=cycle_id)) for op_id, cycle_id in pairs]
    known.keep(cast("list[OperationRow]", rows))


def result_of(op_id: int) -> Resulted:
    return Resulted("maker", Result(op_id=UUID(int=op_id), contract={}))


def test_all_that_is_said_of_one_cycle_goes_to_one_loop() -> None:
    known, cycle_id = Split(PARTS), UUID(int=1_001)
    kept(known, (1, 1_001), (2, 1_001), (3, 1_001))
    claim = Claimed("maker", Claim(op_id=UUID(int=2), instance="i"))
    said = (CancelAskedFor(cycle_id, ""), CycleOverdue(cycle_id), claim, result_of(1), result_of(3))
    assert {known.part_of(item) for item in said} == {1_001 % PARTS}


def test_cycles_are_spread_over_all_loops() -> None:
    known = Split(PARTS)
    kept(known, *((number, 100 + number) for number in range(1, 10)))
    assert {known.part_of(result_of(number)) for number in range(1, 10)} == {0, 1, 2}


def test_requests_go_to_the_first_loop_whatever_their_cycle() -> None:
    known = Split(PARTS)
    request = CycleRequest(idempotency_key="k", kind="join", pipelines=(Pipeline(name="alpha"),))
    for number in range(PARTS):
        asked = CycleAsked(UUID(int=number), "user", request, date(2012, 6, 29), b"")
        assert known.part_of(asked) == 0


def test_the_oldest_operations_are_forgotten_and_still_go_somewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(split, "OPERATIONS_KNOWN_MAX", 2)
    known = Split(PARTS)
    kept(known, (3, 101), (6, 101), (9, 101))
    assert [known.part_of(result_of(op_id)) for op_id in (3, 6, 9)] == [0, 2, 2]
