"""Whole decision cycles: the shipped fold and the shipped handlers on real prices, no socket."""

from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from contracts.audit import EventType
from contracts.cycle import Budgets, CycleRequest, CycleStatus
from contracts.message import Pipeline
from contracts.operation import (
    CallKind,
    Claim,
    ClaimAnswer,
    JournalEntry,
    Record,
    Reserve,
    Result,
    ResultAnswer,
)
from contracts.types import Failure, Usage
from libs.runtime.settings import Settings
from services.orchestrator.group.inputs import (
    CancelRequested,
    Claimed,
    CycleOverdue,
    OperationOverdue,
)
from tests.fakes.in_process_desk import InProcessDesk, broker_of_the_imagination
from tests.flow.conftest import thinking_routes

DAY = date(2012, 6, 29)
PAID = Usage(input_tokens=80, cost_usd=Decimal("0.3"))


def request(key: str = "a", **fields: Any) -> CycleRequest:
    return CycleRequest(idempotency_key=key, as_of=DAY, **fields)


def entry(index: int, kind: CallKind = CallKind.MODEL, usage: Usage = PAID) -> JournalEntry:
    return JournalEntry(
        index=index,
        kind=kind,
        name="m",
        request_sha256="0" * 64,
        request=None,
        reply="r",
        usage=usage,
    )


def first_claimed(desk: InProcessDesk, **fields: Any) -> UUID:
    """A desk whose digest waits to be claimed."""
    desk.ask(request(**fields))
    return desk.pending[0]


async def test_the_default_day_ends_in_orders_that_a_rule_has_cut(desk: InProcessDesk) -> None:
    cycle = await desk.run(request())
    assert (cycle.state.status, cycle.state.reason) == (CycleStatus.COMPLETED, "")
    validation = desk.contract("validate")
    assert validation["passed"]
    assert validation["adjustments"]
    assert desk.contract("memorize")["short_term_summary"]


async def test_the_same_request_gives_the_same_decision_byte_for_byte() -> None:
    validations = []
    for _ in range(2):
        settings = Settings()
        routes = await thinking_routes(settings)
        desk = InProcessDesk([*routes, *broker_of_the_imagination()], settings)
        await desk.run(request())
        validations.append(desk.named("validate").result)
    assert validations[0] == validations[1]


async def test_a_date_that_is_no_session_fails_with_a_reason_a_person_can_use(
    desk: InProcessDesk,
) -> None:
    cycle = await desk.run(request().model_copy(update={"as_of": date(2012, 7, 4)}))
    assert cycle.state.status is CycleStatus.FAILED
    assert "2012-07-04" in cycle.state.reason
    assert "not_a_session" in cycle.state.reason


async def test_an_unknown_provider_fails_one_pipeline_and_not_the_other(
    desk: InProcessDesk,
) -> None:
    pipelines = (
        Pipeline(name="rules"),
        Pipeline(name="other", provider="nobody", account="other"),
    )
    cycle = await desk.run(request(pipelines=pipelines))
    assert cycle.state.status is CycleStatus.COMPLETED
    other = cycle.state.lanes["other"]
    assert other.status is CycleStatus.FAILED
    assert other.ending is not None
    assert "provider_unknown" in other.ending.reason


async def test_a_crash_after_any_recorded_call_repeats_none_of_them(desk: InProcessDesk) -> None:
    """Kill the analyst after each of its calls: the next run asks only for what is missing."""
    desk.ask(request())
    while desk.pending:
        op_id = desk.pending.pop(0)
        stored = desk.operations[op_id]
        if stored.row.step == "analyst":
            claim = desk.claim(op_id)
            desk.record(Record(op_id=op_id, epoch=claim.epoch))
            stored.row.lease_live = False
            await desk.work(op_id)
            calls = [e.index for e in stored.journal]
            assert calls == sorted(set(calls))
            assert stored.row.epoch == 2
            continue
        await desk.work(op_id)
    assert desk.named("memorize").row.status == "completed"


# --- requests ---------------------------------------------------------------------------------


def test_the_same_key_and_body_is_accepted_again_and_starts_nothing(desk: InProcessDesk) -> None:
    first, again = desk.ask(request()), desk.ask(request())
    assert (first.outcome, again.outcome) == ("accepted", "accepted")
    assert first.cycle_id == again.cycle_id
    assert len(desk.pending) == 1


def test_the_same_key_with_another_body_is_rejected_by_its_key(desk: InProcessDesk) -> None:
    desk.ask(request())
    answer = desk.ask(request(timeout_s=5))
    assert (answer.outcome, answer.code, answer.field) == (
        "rejected",
        "key_reused",
        "idempotency_key",
    )
    assert "'a'" in answer.message


def test_two_requesters_may_use_the_same_key(desk: InProcessDesk) -> None:
    assert desk.ask(request(), "cli").cycle_id != desk.ask(request(), "user").cycle_id


def test_an_unknown_kind_is_rejected_with_the_kinds_that_there_are(desk: InProcessDesk) -> None:
    answer = desk.ask(request(kind="astrology"))
    assert (answer.code, answer.field) == ("invalid", "kind")
    assert "decision" in answer.message


def test_above_the_limit_of_running_cycles_a_request_is_told_to_come_back() -> None:
    desk = InProcessDesk((), Settings(cycles={"running_max": 1}))
    assert desk.ask(request("a")).outcome == "accepted"
    answer = desk.ask(request("b"))
    assert (answer.outcome, answer.code) == ("rejected", "busy")


def test_a_cancel_of_an_unknown_cycle_says_so(desk: InProcessDesk) -> None:
    answer = desk.commit(CancelRequested(UUID(int=1), "x"))
    assert getattr(answer, "code", None) == "not_found"


async def test_a_cancelled_cycle_is_cancelled_again_and_not_after_execution(
    desk: InProcessDesk,
) -> None:
    answer = desk.ask(request())
    assert answer.cycle_id is not None
    for _ in range(2):
        cancelled = desk.commit(CancelRequested(answer.cycle_id, "changed my mind"))
        assert getattr(cancelled, "status", None) is CycleStatus.CANCELLED
    done = await desk.run(request("b"))
    refused = desk.commit(CancelRequested(done.cycle_id, "too late"))
    assert getattr(refused, "code", None) == "too_late"


# --- claims, leases, budgets --------------------------------------------------------------------


def test_a_claim_is_granted_once_while_its_lease_lives(desk: InProcessDesk) -> None:
    op_id = first_claimed(desk)
    assert desk.claim(op_id).outcome == "granted"
    assert desk.claim(op_id).outcome == "busy"


def test_after_the_lease_another_epoch_gets_the_journal_and_the_old_one_is_fenced(
    desk: InProcessDesk,
) -> None:
    op_id = first_claimed(desk)
    first = desk.claim(op_id)
    desk.record(Record(op_id=op_id, epoch=first.epoch, entries=(entry(0),)))
    desk.operations[op_id].row.lease_live = False
    second = desk.claim(op_id)
    assert (second.epoch, [e.index for e in second.journal]) == (2, [0])
    late = desk.record(Record(op_id=op_id, epoch=first.epoch, entries=(entry(1),)))
    assert late.outcome == "fenced"
    assert desk.tell(Result(op_id=op_id, epoch=first.epoch, contract={})) == ResultAnswer(
        outcome="fenced"
    )


def test_an_operation_that_never_ends_is_poison_after_its_epochs(desk: InProcessDesk) -> None:
    op_id = first_claimed(desk)
    for _ in range(desk.settings.orchestrator.epochs_max):
        assert desk.claim(op_id).outcome == "granted"
        lost = desk.operations[op_id].row
        lost.status, lost.lease_live = "pending", True  # the sweep has sent it again
    assert desk.claim(op_id).outcome == "done"
    failure = desk.operations[op_id].failure
    assert failure is not None
    assert failure.code == "poison"
    assert "sentiment" in failure.message


def test_a_record_repeated_after_a_lost_answer_counts_once(desk: InProcessDesk) -> None:
    op_id = first_claimed(desk)
    epoch = desk.claim(op_id).epoch
    for _ in range(3):
        desk.record(Record(op_id=op_id, epoch=epoch, entries=(entry(0),)))
    cycle = next(iter(desk.cycles.values()))
    assert cycle.purse.tokens_spent == PAID.tokens
    assert len(desk.operations[op_id].journal) == 1


def test_a_reservation_is_settled_by_what_the_call_really_used(desk: InProcessDesk) -> None:
    op_id = first_claimed(desk)
    epoch = desk.claim(op_id).epoch
    held = Reserve(tokens=1_000, cost_usd=Decimal(2))
    desk.record(Record(op_id=op_id, epoch=epoch, reserve=held))
    cycle = next(iter(desk.cycles.values()))
    assert (cycle.purse.tokens_reserved, desk.day.cost_usd_reserved) == (1_000, Decimal(2))
    desk.record(Record(op_id=op_id, epoch=epoch, entries=(entry(0),)))
    assert (cycle.purse.tokens_reserved, cycle.purse.tokens_spent) == (0, 80)
    assert (desk.day.cost_usd_reserved, desk.day.cost_usd_spent) == (0, PAID.cost_usd)


def test_what_was_reserved_at_a_crash_stays_spent(desk: InProcessDesk) -> None:
    op_id = first_claimed(desk)
    epoch = desk.claim(op_id).epoch
    desk.record(Record(op_id=op_id, epoch=epoch, reserve=Reserve(tokens=500)))
    desk.operations[op_id].row.lease_live = False
    desk.claim(op_id)
    cycle = next(iter(desk.cycles.values()))
    assert (cycle.purse.tokens_reserved, cycle.purse.tokens_spent) == (0, 500)


@pytest.mark.parametrize(
    ("budgets", "settings", "named"),
    [
        (Budgets(), Settings(budget={"operation_tokens_max": 99}), "operation"),
        (Budgets(), Settings(budget={"operation_cost_usd_max": Decimal("0.01")}), "operation"),
        (Budgets(tokens=99), Settings(), "cycle"),
        (Budgets(cost_usd=Decimal("0.01")), Settings(), "cycle"),
        (Budgets(), Settings(budget={"day_tokens_max": 99}), "day"),
        (Budgets(), Settings(budget={"day_cost_usd_max": Decimal("0.01")}), "day"),
    ],
)
def test_a_call_that_does_not_fit_a_budget_is_not_begun(
    budgets: Budgets, settings: Settings, named: str
) -> None:
    desk = InProcessDesk((), settings)
    op_id = first_claimed(desk, budgets=budgets)
    epoch = desk.claim(op_id).epoch
    reserve = Reserve(tokens=100, cost_usd=Decimal(1))
    answer = desk.record(Record(op_id=op_id, epoch=epoch, reserve=reserve))
    assert answer.outcome == "budget_exhausted"
    assert f"the {named}'s budget" in answer.message


def test_a_long_journal_comes_in_pages_to_whoever_has_the_work(desk: InProcessDesk) -> None:
    op_id = first_claimed(desk)
    epoch = desk.claim(op_id).epoch
    for index in range(150):
        one = entry(index, CallKind.TOOL, Usage())
        desk.record(Record(op_id=op_id, epoch=epoch, entries=(one,)))
    desk.operations[op_id].row.lease_live = False
    page = desk.claim(op_id)
    found = [e.index for e in page.journal]
    assert page.more
    while page.more:
        ask = Claim(op_id=op_id, instance="test", epoch=page.epoch, after=found[-1] + 1)
        answer = desk.commit(Claimed("sentiment", ask))
        assert isinstance(answer, ClaimAnswer)
        page = answer
        found += [e.index for e in page.journal]
    assert found == list(range(150))
    stale = Claim(op_id=op_id, instance="old", epoch=1, after=0)
    assert getattr(desk.commit(Claimed("sentiment", stale)), "outcome", "") == "busy"


# --- results --------------------------------------------------------------------------------------


def test_another_services_claim_record_or_result_is_forbidden_and_told(desk: InProcessDesk) -> None:
    op_id = first_claimed(desk)
    epoch = desk.claim(op_id).epoch
    assert desk.claim(op_id, "risk").outcome == "forbidden"
    assert desk.record(Record(op_id=op_id, epoch=epoch), "risk").outcome == "forbidden"
    forged = desk.tell(Result(op_id=op_id, epoch=epoch, contract={}), "risk")
    assert forged == ResultAnswer(outcome="forbidden")
    refused = [e for e in desk.events if e.type is EventType.MESSAGE_REFUSED]
    assert [e.data["what"] for e in refused] == ["claim", "record", "result"]
    assert desk.operations[op_id].row.status == "running"


@pytest.mark.parametrize("ids", [{"cycle_id": str(UUID(int=1))}, {"op_id": str(UUID(int=1))}])
async def test_a_contract_with_other_ids_is_a_wrong_answer(
    desk: InProcessDesk, ids: Mapping[str, str]
) -> None:
    op_id = first_claimed(desk)
    epoch = desk.claim(op_id).epoch
    stored = desk.operations[op_id]
    body = {"cycle_id": str(stored.row.cycle_id), "op_id": str(op_id), "as_of": "2012-06-29"}
    desk.tell(Result(op_id=op_id, epoch=epoch, contract={**body, "candidates": [], **ids}))
    assert stored.failure is not None
    assert stored.failure.code == "contract_invalid"


def test_a_result_that_is_no_such_contract_fails_by_its_fields(desk: InProcessDesk) -> None:
    op_id = first_claimed(desk)
    epoch = desk.claim(op_id).epoch
    desk.tell(Result(op_id=op_id, epoch=epoch, contract={"candidates": "none"}))
    failure = desk.operations[op_id].failure
    assert failure is not None
    assert "candidates" in failure.message


def test_a_result_told_twice_counts_once(desk: InProcessDesk) -> None:
    op_id = first_claimed(desk)
    epoch = desk.claim(op_id).epoch
    failed = Result(op_id=op_id, epoch=epoch, failure=Failure(code="x", message="y"))
    desk.tell(failed)
    count = len(desk.events)
    assert desk.tell(failed) == ResultAnswer(outcome="ok")
    assert len(desk.events) == count


# --- time -----------------------------------------------------------------------------------------


async def test_an_operation_past_its_time_fails_and_the_cycle_is_remembered(
    desk: InProcessDesk,
) -> None:
    op_id = first_claimed(desk)
    desk.commit(OperationOverdue(op_id, Failure(code="timed_out", message="too slow")))
    desk.pending.remove(op_id)
    while desk.pending:
        await desk.work(desk.pending.pop(0))
    cycle = next(iter(desk.cycles.values()))
    assert cycle.state.status is CycleStatus.FAILED
    assert "timed_out" in cycle.state.reason
    assert desk.named("memorize").row.status == "completed"


async def test_a_cycle_past_its_time_stops_what_runs_and_a_late_result_changes_nothing(
    desk: InProcessDesk,
) -> None:
    op_id = first_claimed(desk)
    epoch = desk.claim(op_id).epoch
    cycle = next(iter(desk.cycles.values()))
    desk.commit(CycleOverdue(cycle.cycle_id))
    assert desk.operations[op_id].row.status == "cancelled"
    state = cycle.state
    assert desk.record(Record(op_id=op_id, epoch=epoch)).outcome == "cancelled"
    desk.tell(Result(op_id=op_id, epoch=epoch, contract={}))
    assert cycle.state == state
