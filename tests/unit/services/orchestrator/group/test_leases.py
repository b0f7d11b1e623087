"""Claims and records that reach the orchestrator in one group."""

from datetime import date
from decimal import Decimal
from typing import cast
from uuid import UUID

import orjson

from contracts.message import MESSAGE_BYTES_MAX
from contracts.operation import (
    CallKind,
    Claim,
    ClaimAnswer,
    JournalEntry,
    Record,
    RecordAnswer,
    Reserve,
)
from contracts.subjects.commands import MAKE_PLAN, OPEN_BOOKS, PICK_TRADES
from contracts.subjects.subject import STUDY, AnySubject
from contracts.types import Usage
from libs.bus import operation as bus
from libs.bus.codec import decode, encode
from libs.bus.operation import Lease
from libs.runtime.journal import Known
from libs.runtime.settings import Settings
from services.orchestrator.group.changes import Loaded, NewEntry, NewEvent, NewOperation
from services.orchestrator.group.leases import Leases
from services.orchestrator.group.rows import CallBudget, CycleRow, OperationRow
from services.orchestrator.machine.logic import Start
from services.orchestrator.machine.workflow import Step
from tests.unit.services.orchestrator.driven import cycle_row, operation_row

CYCLE, OPERATION = UUID(int=1), UUID(int=2)
DAY = date(2012, 6, 29)


def cycle() -> CycleRow:
    return cycle_row(cycle_id=CYCLE)


def lost_operation() -> OperationRow:
    """Claimed once; its lease ran out and the sweep has sent it again."""
    return operation_row(op_id=OPERATION, cycle_id=CYCLE, claimed=True, epoch=1)


def record(epoch: int) -> Record:
    entry = JournalEntry(
        index=0,
        kind=CallKind.MODEL,
        name="fake",
        request_sha256="0" * 64,
        request=None,
        reply="text",
    )
    return Record(op_id=OPERATION, epoch=epoch, entries=(entry,))


def test_a_record_just_in_time_keeps_the_work_from_a_claim_in_the_same_group() -> None:
    entries: list[NewEntry] = []
    row = lost_operation()
    leases = Leases(Settings(), Loaded(cycles={CYCLE: cycle()}), entries, [])
    assert leases.record(row, record(epoch=1)).outcome == "ok"
    assert leases.claim(row, Claim(op_id=OPERATION, instance="other")).outcome == "busy"
    assert [new.entry.index for new in entries] == [0]


def test_a_claim_before_the_late_record_fences_it() -> None:
    entries: list[NewEntry] = []
    row = lost_operation()
    leases = Leases(Settings(), Loaded(cycles={CYCLE: cycle()}), entries, [])
    granted = leases.claim(row, Claim(op_id=OPERATION, instance="other"))
    assert (granted.outcome, granted.epoch) == ("granted", 2)
    assert leases.record(row, record(epoch=1)).outcome == "fenced"
    assert entries == []


def test_a_suspects_last_claim_is_granted_only_when_the_sweep_has_sent_it() -> None:
    leases = Leases(
        Settings(orchestrator={"epochs_max": 5}), Loaded(cycles={CYCLE: cycle()}), [], []
    )
    claim = Claim(op_id=OPERATION, instance="other")
    suspect = lost_operation()
    suspect.epoch = 4
    assert leases.claim(suspect, claim).outcome == "busy"
    suspect.lease_live = True  # of a pending operation: it was sent, and waits to be claimed
    assert leases.claim(suspect, claim).outcome == "granted"


def starts_of(cycle: CycleRow, *rows: AnySubject) -> list[NewOperation]:
    """New operations of a cycle, one a row of the table of commands."""
    return [
        NewOperation(cycle, Start(UUID(int=number), "alpha", "working", Step(row), 1, {}))
        for number, row in enumerate(rows)
    ]


def test_as_many_new_operations_as_workers_are_free_here_are_claimed_and_begun() -> None:
    events: list[NewEvent] = []
    leases = Leases(Settings(), Loaded(cycles={CYCLE: cycle()}), [], events)
    starts = starts_of(cycle(), PICK_TRADES, PICK_TRADES, PICK_TRADES, MAKE_PLAN, OPEN_BOOKS)

    after = leases.claim_starts(starts, lambda service, _: 2 if service == "trader" else 0)

    assert [new.epoch for new in after] == [1, 1, 0, 0, 0]
    assert [(new.row().status, new.row().lease_live) for new in after[1:3]] == [
        ("running", True),
        ("pending", False),
    ]
    assert [event.node for event in events] == [new.start.op_id for new in after[:2]]
    due = [
        new.due_in_s(
            Settings(
                orchestrator={"lease_s": 7, "resend_after_s": 3},
            )
        )
        for new in after[1:3]
    ]
    assert due == [7, 3]


def test_plain_work_and_a_studys_cell_are_not_claimed_however_many_workers_are_free() -> None:
    cell = cycle_row(cycle_id=CYCLE, requester=STUDY)
    leases = Leases(Settings(), Loaded(cycles={CYCLE: cell}), [], [])
    starts = [*starts_of(cell, PICK_TRADES), *starts_of(cycle(), OPEN_BOOKS)]
    assert [new.epoch for new in leases.claim_starts(starts, lambda *_: 9)] == [0, 0]


def holding(*, today: bool) -> tuple[Leases, OperationRow, CallBudget]:
    """An operation with 100 tokens held back, today or the day before, and today's purse."""
    row, of = lost_operation(), cycle()
    row.status, row.lease_live = "running", True
    row.reserved, row.reserved_today = Reserve(tokens=100), today
    of.purse.hold(row.reserved)
    day = CallBudget(1_000, Decimal(1), tokens_reserved=500)
    return Leases(Settings(), Loaded(cycles={CYCLE: of}, day=day), [], []), row, day


def test_what_is_held_back_is_given_back_to_the_same_day() -> None:
    leases, row, day = holding(today=True)
    leases.settle(row, Usage(output_tokens=30))
    assert (day.tokens_reserved, day.tokens_spent) == (400, 30)


def test_midnight_leaves_the_new_days_reservations_alone_and_counts_the_spending() -> None:
    leases, row, day = holding(today=False)
    leases.settle(row, Usage(output_tokens=30))
    assert (day.tokens_reserved, day.tokens_spent) == (500, 30)


def test_a_record_that_comes_again_reserves_once() -> None:
    leases, row, day = holding(today=True)
    again = Record(op_id=OPERATION, epoch=1, reserve=Reserve(tokens=600))
    row.epoch = 1
    assert [leases.record(row, again).outcome for _ in range(2)] == ["ok", "ok"]
    assert (row.reserved.tokens, day.tokens_reserved) == (600, 1_000)


def test_what_was_in_flight_when_an_operation_is_given_up_stays_spent() -> None:
    leases, row, day = holding(today=True)
    leases.charge_reservation(row)
    assert (row.reserved.tokens, row.tokens) == (0, 100)
    assert (day.tokens_reserved, day.tokens_spent) == (400, 100)


def test_what_calls_used_is_gathered_by_sort_and_what_nobody_counted_in_the_whole_only() -> None:
    leases, row, _ = holding(today=True)
    used = Usage(input_tokens=20, output_tokens=5, cache_read_tokens=3, cache_write_tokens=2)
    leases.settle(row, used)
    row.reserved = Reserve(tokens=70)
    leases.charge_reservation(row)
    assert [new.usage for new in leases.used] == [used, Usage(unsorted_tokens=70)]
    assert row.tokens == used.tokens + 70


def test_a_release_without_a_call_adds_nothing_to_what_was_used() -> None:
    leases, row, day = holding(today=True)
    leases.settle(row, Usage())
    assert (leases.used, day.tokens_spent) == ([], 0)


SAMPLES = [f"{number:064x}" for number in range(9)]


async def samples_of(answers: dict[str, bytes]) -> tuple[Known, OperationRow]:
    """What a study's cell hears as it asks nine times, with these answers on record."""
    request = orjson.dumps({"study": {"offline": False}})
    row, of = lost_operation(), cycle_row(cycle_id=CYCLE, requester=STUDY, request=request)
    leases = Leases(Settings(), Loaded(cycles={CYCLE: of}, answers=answers), [], [])

    class Orchestrator:
        async def record(self, record: Record) -> tuple[RecordAnswer, float]:
            answer = leases.record(row, decode(Record, encode(record)))
            return decode(RecordAnswer, encode(answer)), 0.0

    granted = ClaimAnswer(outcome="granted", epoch=1, lease_s=10)
    lease = Lease(cast(bus.Orchestrator, Orchestrator()), OPERATION, granted)
    reserve = Reserve(tokens=900, calls=9, addresses=tuple(SAMPLES))
    return await lease.record((), reserve, None), row


async def test_more_long_answers_than_one_message_holds_come_in_several() -> None:
    replies = {address: orjson.dumps("x" * 120_000) for address in SAMPLES}

    known, row = await samples_of(replies)

    assert list(known) == SAMPLES
    assert row.reserved == Reserve(), "nothing is paid again"


async def test_what_is_not_on_record_is_reserved_once_all_that_is_has_come() -> None:
    longest = orjson.dumps("x" * (MESSAGE_BYTES_MAX - 1_000))
    replies = dict.fromkeys(SAMPLES[1:], longest)

    known, row = await samples_of(replies)

    assert list(known) == SAMPLES[1:]
    assert row.reserved.tokens == 900
