"""Rows in memory: what is kept, what must be read, what is forgotten."""

from dataclasses import replace
from datetime import UTC, date, datetime
from typing import Any
from uuid import UUID, uuid4

import pytest

from contracts.operation import Claim, Record, Reserve, Result
from libs.runtime.settings import Settings
from services.orchestrator.group import recent as recent_module
from services.orchestrator.group.batch import InputBatch
from services.orchestrator.group.changes import Loaded
from services.orchestrator.group.inputs import CallsRecorded, Claimed, Resulted
from services.orchestrator.group.recent import Recent
from services.orchestrator.group.rows import CycleRow, OperationRow
from tests.unit.services.orchestrator.driven import cycle_row, operation_row

DAY = date(2012, 6, 29)


def cycle() -> CycleRow:
    return cycle_row()


def operation(of: CycleRow, *, claimed: bool = False) -> OperationRow:
    return operation_row(cycle_id=of.cycle_id, claimed=claimed)


def committed(*rows: tuple[CycleRow, OperationRow]) -> InputBatch:
    """A group that has just been written."""
    loaded = Loaded(
        cycles={cycle.cycle_id: cycle for cycle, _ in rows},
        operations={row.op_id: row for _, row in rows},
    )
    return InputBatch({}, Settings(), loaded, datetime.now(UTC))


def result(op_id: UUID) -> Resulted:
    return Resulted("maker", Result(op_id=op_id, contract={}))


def test_a_result_of_a_kept_cycle_needs_no_reading() -> None:
    recent, row = Recent(10), cycle()
    work = operation(row)
    recent.keep(committed((row, work)))
    loaded = recent.take([result(work.op_id)])
    assert loaded is not None
    assert (loaded.cycles, loaded.operations) == ({row.cycle_id: row}, {work.op_id: work})


def test_rows_are_gone_until_they_are_written_and_kept_again() -> None:
    recent, row = Recent(10), cycle()
    work = operation(row)
    recent.keep(committed((row, work)))
    recent.take([result(work.op_id)])
    assert recent.take([result(work.op_id)]) is None


def test_a_change_that_was_written_counts_the_revision_on() -> None:
    recent, row = Recent(10), cycle()
    row.new = row.changed = True
    recent.keep(committed((row, operation(row))))
    assert (row.revision, row.new, row.changed) == (0, False, False)
    row.changed = True
    recent.keep(committed((row, operation(row))))
    assert (row.revision, row.changed) == (1, False)


def test_one_input_that_must_be_read_leaves_all_others_where_they_are() -> None:
    recent, row = Recent(10), cycle()
    work = operation(row)
    recent.keep(committed((row, work)))
    page = Claimed("maker", Claim(op_id=work.op_id, instance="i", epoch=1))
    assert recent.take([result(work.op_id), page]) is None
    assert recent.take([result(work.op_id), result(uuid4())]) is None
    assert recent.take([result(work.op_id)]) is not None


def claimed_by(of: CycleRow, epoch: int, **fields: Any) -> tuple[Recent, OperationRow]:
    """Memory with one claimed operation, as it stands in the database."""
    recent = Recent(10)
    status = "running" if epoch else "pending"
    work = replace(operation(of, claimed=True), epoch=epoch, status=status, **fields)
    recent.keep(committed((of, work)))
    return recent, work


def test_a_first_claim_needs_no_reading_and_a_second_one_does() -> None:
    for epoch, kept in ((0, True), (1, False)):
        recent, work = claimed_by(cycle(), epoch)
        claim = Claimed("maker", Claim(op_id=work.op_id, instance="i"))
        assert (recent.take([claim]) is not None) == kept


@pytest.mark.parametrize(("told", "kept"), [(1, True), (2, False)])
def test_records_and_results_of_the_epoch_that_has_the_work_need_no_reading(
    told: int, *, kept: bool
) -> None:
    for item in (
        lambda work: CallsRecorded("maker", Record(op_id=work.op_id, epoch=told)),
        lambda work: Resulted("maker", Result(op_id=work.op_id, epoch=told, contract={})),
    ):
        recent, work = claimed_by(cycle(), 1)
        assert (recent.take([item(work)]) is not None) == kept


def test_a_record_that_pays_is_read() -> None:
    recent, work = claimed_by(cycle(), 1)
    record = Record(op_id=work.op_id, epoch=1, reserve=Reserve(tokens=1))
    assert recent.take([CallsRecorded("maker", record)]) is None


def test_a_cycle_that_holds_money_back_and_one_of_a_strategy_are_always_read() -> None:
    recent, work = claimed_by(cycle(), 1, reserved=Reserve(tokens=1))
    assert recent.take([CallsRecorded("maker", Record(op_id=work.op_id, epoch=1))]) is None
    recent, work = claimed_by(replace(cycle(), kind="strategy"), 1)
    assert recent.take([CallsRecorded("maker", Record(op_id=work.op_id, epoch=1))]) is None


def test_a_claim_that_was_written_is_no_longer_to_be_written() -> None:
    row = cycle()
    work = operation(row, claimed=True)
    work.epoch, work.touched, work.progress = 1, True, b"{}"
    assert work.epoch_stored == 0
    Recent(10).keep(committed((row, work)))
    assert (work.epoch_stored, work.touched, work.progress) == (1, False, None)


def test_a_cycle_that_waits_for_a_person_is_always_read() -> None:
    recent, row = Recent(10), cycle()
    row.waiting = True
    work = operation(row)
    recent.keep(committed((row, work)))
    assert recent.take([result(work.op_id)]) is None


def test_of_a_cycle_that_moved_on_nothing_old_is_left() -> None:
    recent, row = Recent(10), cycle()
    old, new = operation(row), operation(row)
    recent.keep(committed((row, old)))
    recent.keep(committed((row, new)))
    assert recent.take([result(old.op_id)]) is None
    assert recent.take([result(new.op_id)]) is not None
    recent.keep(committed((row, old)))
    recent.keep(committed((row, operation(row))))
    assert recent.take([result(old.op_id)]) is None


def test_a_cycle_with_a_large_request_is_always_read() -> None:
    recent, row = Recent(10), cycle()
    row.request = b" " * (recent_module.REQUEST_BYTES_MAX + 1)
    work = operation(row)
    recent.keep(committed((row, work)))
    assert recent.take([result(work.op_id)]) is None


def test_the_longest_untouched_cycle_is_dropped_first() -> None:
    recent = Recent(2)
    rows = [cycle() for _ in range(3)]
    works = [operation(row) for row in rows]
    for pair in zip(rows, works, strict=True):
        recent.keep(committed(pair))
    assert recent.take([result(works[0].op_id)]) is None
    assert recent.take([result(work.op_id) for work in works[1:]]) is not None


def test_after_a_refusal_all_is_read_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    recent, row = Recent(10), cycle()
    work = operation(row)
    recent.pause()
    recent.keep(committed((row, work)))
    assert recent.take([result(work.op_id)]) is None
    later = recent_module.time.monotonic() + recent_module.PAUSE_S
    monkeypatch.setattr(recent_module.time, "monotonic", lambda: later)
    assert recent.take([result(work.op_id)]) is not None
