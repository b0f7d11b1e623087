"""Cycles that wait for a person: the shipped fold and handlers on real prices, no socket."""

from datetime import date
from typing import Any

import orjson
import pytest

from contracts.approval import AnswerProposal, QuantityEdit, Verdict
from contracts.audit import EventType
from contracts.cycle import CycleRequest, CycleStatus
from contracts.execution import ExecuteDecisions
from contracts.message import Pipeline
from contracts.types import Failure
from libs.quant.risk.evaluation import proposal_hash
from libs.runtime.settings import Settings
from services.execution.approvals import require_approved
from services.orchestrator.group.inputs import CancelRequested, CycleOverdue, OperationOverdue
from services.orchestrator.group.rows import CycleRow, dump_state, load_state
from tests.fakes.in_process_desk import InProcessDesk, broker_of_the_imagination
from tests.flow.conftest import thinking_routes

DAY = date(2012, 6, 29)
LATE = Failure(code="timed_out", message="the operation's time limit has passed")


def request(**fields: Any) -> CycleRequest:
    return CycleRequest(idempotency_key="a", as_of=DAY, **{"approval_required": True, **fields})


def answer(
    desk: InProcessDesk, verdict: Verdict = Verdict.APPROVE, **fields: Any
) -> AnswerProposal:
    waiting = desk.named("approval")
    body = {
        "cycle_id": waiting.row.cycle_id,
        "proposal_hash": str(desk.contract("validate", waiting.row.pipeline)["proposal_hash"]),
        "verdict": verdict,
        **fields,
    }
    return AnswerProposal.model_validate(body)


def steps(desk: InProcessDesk) -> list[str]:
    return [each.row.step for each in desk.operations.values()]


def told(desk: InProcessDesk, what: EventType) -> list[dict[str, Any]]:
    return [dict(event.data) for event in desk.events if event.type is what]


@pytest.fixture
async def waiting(desk: InProcessDesk) -> CycleRow:
    """A cycle of the desk that waits for its approval."""
    return await desk.run(request())


async def test_a_cycle_waits_only_where_it_is_asked_for(desk: InProcessDesk) -> None:
    cycle = await desk.run(request(approval_required=False))
    assert cycle.state.status is CycleStatus.COMPLETED
    assert "approval" not in steps(desk)


async def test_nothing_is_executed_before_the_approval_and_all_after_it(
    desk: InProcessDesk, waiting: CycleRow
) -> None:
    assert (waiting.state.status, waiting.waiting) == (CycleStatus.RUNNING, True)
    assert steps(desk)[-1] == "approval"
    (asked,) = told(desk, EventType.APPROVAL_REQUESTED)
    validated = desk.contract("validate")
    assert asked["proposal_hash"] == validated["proposal_hash"]
    assert (asked["decisions"], asked["time_limit_s"]) == (validated["decisions"], 3600.0)

    assert desk.answer(answer(desk, reason="go")).outcome == "accepted"
    assert not waiting.waiting
    await desk.work_on()

    assert waiting.state.status is CycleStatus.COMPLETED
    command = orjson.loads(desk.named("execute").command)
    assert command["approval"]["proposal_hash"] == validated["proposal_hash"]
    (decided,) = told(desk, EventType.APPROVAL_DECIDED)
    assert (decided["verdict"], decided["approver"], decided["reason"]) == ("approve", "user", "go")


async def test_a_rejection_orders_nothing_ends_the_cycle_and_is_remembered(
    desk: InProcessDesk, waiting: CycleRow
) -> None:
    assert desk.answer(answer(desk, Verdict.REJECT, reason="too hot")).outcome == "accepted"
    await desk.work_on()
    assert waiting.state.status is CycleStatus.REJECTED
    assert waiting.state.reason == "rejected by user: too hot"
    assert "execute" not in steps(desk)
    assert "too hot" in str(desk.contract("memorize")["short_term_summary"])


async def test_nobody_answering_in_time_expires_the_cycle_and_is_remembered(
    desk: InProcessDesk, waiting: CycleRow
) -> None:
    asked = desk.named("approval").row.op_id
    desk.too_late.add(asked)
    assert desk.answer(answer(desk)).code == "expired"
    desk.commit(OperationOverdue(asked, LATE))
    await desk.work_on()
    assert waiting.state.status is CycleStatus.EXPIRED
    assert waiting.state.reason == "the proposal was not answered within 3600 s"
    assert len(told(desk, EventType.APPROVAL_EXPIRED)) == 1
    assert "execute" not in steps(desk)
    assert "expired" in str(desk.contract("memorize")["short_term_summary"])
    assert desk.answer(answer(desk)).code == "expired"


async def test_execution_is_bound_to_what_an_edit_left(
    desk: InProcessDesk, waiting: CycleRow
) -> None:
    first, *rest = orjson.loads(orjson.dumps(desk.contract("validate")["decisions"]))
    edits = [QuantityEdit(asset=first["asset"], quantity="1")]
    edits += [QuantityEdit(asset=each["asset"], quantity="0") for each in rest]
    assert desk.answer(answer(desk, Verdict.EDIT, edits=edits)).outcome == "accepted"
    await desk.work_on()
    serves = desk.named("execute").start.step.serves.message
    sent = serves.model_validate_json(desk.named("execute").command)
    assert isinstance(sent, ExecuteDecisions)
    command = require_approved(sent, sent.approval)
    (left,) = command.decision_validation.decisions
    assert (left.asset, left.quantity) == (first["asset"], 1)
    assert command.decision_validation.proposal_hash == proposal_hash([left])


async def test_the_first_word_counts_and_may_be_said_again(
    desk: InProcessDesk, waiting: CycleRow
) -> None:
    yes = answer(desk)
    assert desk.answer(yes).outcome == "accepted"
    assert desk.answer(yes).outcome == "accepted"
    assert desk.answer(yes, approver="cli").code == "decided"
    assert desk.answer(answer(desk, Verdict.REJECT)).code == "decided"
    await desk.work_on()
    again = desk.answer(yes)
    assert (again.outcome, again.status) == ("accepted", CycleStatus.COMPLETED)
    assert len(told(desk, EventType.APPROVAL_DECIDED)) == 1
    assert waiting.state.status is CycleStatus.COMPLETED


async def test_a_cancel_while_it_waits_ends_it_and_no_answer_counts_any_more(
    desk: InProcessDesk, waiting: CycleRow
) -> None:
    desk.commit(CancelRequested(waiting.cycle_id, "changed my mind"))
    assert waiting.state.status is CycleStatus.CANCELLED
    assert not waiting.waiting
    assert desk.answer(answer(desk)).code == "too_late"
    assert "execute" not in steps(desk)


async def test_the_cycles_clock_stands_while_a_person_is_asked(
    desk: InProcessDesk, waiting: CycleRow
) -> None:
    desk.commit(CycleOverdue(waiting.cycle_id))
    assert waiting.state.status is CycleStatus.RUNNING
    assert waiting.waiting


async def test_an_account_that_always_needs_it_is_asked_for_whatever_the_request_says() -> None:
    settings = Settings(approval={"accounts": ("guarded",)})
    routes = [*await thinking_routes(settings), *broker_of_the_imagination()]
    desk = InProcessDesk(routes, settings)
    pipelines = (Pipeline(name="free"), Pipeline(name="careful", account="guarded"))
    cycle = await desk.run(request(approval_required=False, pipelines=pipelines))
    assert cycle.state.lanes["free"].status is CycleStatus.COMPLETED
    assert cycle.state.lanes["careful"].state == "awaiting_approval"
    assert cycle.state.status is CycleStatus.RUNNING


async def test_a_waiting_cycle_is_stored_and_read_as_it_is(
    desk: InProcessDesk, waiting: CycleRow
) -> None:
    stored = dump_state(waiting.state)
    assert load_state(waiting.cycle_id, stored, "running", "") == waiting.state
    old = orjson.loads(stored)
    for lane in old["lanes"].values():
        del lane["passes"]
    read = load_state(waiting.cycle_id, orjson.dumps(old), "running", "")
    assert read.lanes["rules"].passes == ()
