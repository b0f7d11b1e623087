"""The rate limits of model endpoints, as the orchestrator lets reserved calls begin."""

from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from uuid import UUID

import pytest

from contracts.audit import EventType
from contracts.cycle import CycleRequest
from contracts.operation import CallKind, JournalEntry, Record, RecordAnswer, Reserve
from contracts.types import Usage
from services.orchestrator.group.rate_limits import Bucket, EndpointPace
from tests.fakes.in_process_desk import InProcessDesk

SPENT = Usage(input_tokens=400, output_tokens=100, cost_usd=Decimal("0.01"))


def claimed(desk: InProcessDesk, key: str) -> tuple[UUID, int]:
    """An operation of a cycle of its own, and the epoch of whoever has it."""
    desk.ask(CycleRequest(idempotency_key=key, as_of=date(2012, 6, 29)))
    op_id = desk.pending[-1]
    return op_id, desk.claim(op_id).epoch


def reserved(desk: InProcessDesk, work: tuple[UUID, int], tokens: int = 1_000) -> RecordAnswer:
    reserve = Reserve(tokens=tokens, provider="claude", name="claude:m", index=0)
    return desk.record(Record(op_id=work[0], epoch=work[1], reserve=reserve))


def replied(desk: InProcessDesk, work: tuple[UUID, int], reply: object, usage: Usage) -> None:
    entry = JournalEntry(
        index=0,
        kind=CallKind.MODEL,
        name="claude:claude-opus-5-5",
        request_sha256="0" * 64,
        request=None,
        reply=reply,  # type: ignore[arg-type]
        usage=usage,
    )
    desk.record(Record(op_id=work[0], epoch=work[1], entries=(entry,)))


def waits(answers: Sequence[RecordAnswer]) -> list[float]:
    return [round(answer.wait_s, 3) for answer in answers]


def test_calls_of_all_operations_are_let_begin_at_the_pace_of_their_provider(
    desk: InProcessDesk,
) -> None:
    desk.paces["claude"] = EndpointPace("claude", calls=Bucket(8))
    answers = [reserved(desk, claimed(desk, key)) for key in "abcd"]
    assert {answer.outcome for answer in answers} == {"ok"}
    assert waits(answers) == [0.0, 0.0, 10.5, 21.0]
    told = [event.data for event in desk.events if event.type is EventType.LLM_REQUESTED]
    assert [each["wait_s"] for each in told] == [0.0, 0.0, 10.5, 21.0]


def test_another_provider_has_a_pace_of_its_own(desk: InProcessDesk) -> None:
    desk.paces["claude"] = EndpointPace("claude", calls=Bucket(2))
    reserved(desk, claimed(desk, "a"))
    work = claimed(desk, "b")
    reserve = Reserve(tokens=1, provider="openai")
    assert desk.record(Record(op_id=work[0], epoch=work[1], reserve=reserve)).wait_s == 0.0


def test_tokens_that_a_call_did_not_use_are_there_for_others(desk: InProcessDesk) -> None:
    desk.paces["claude"] = EndpointPace("claude", tokens=Bucket(8_000))
    first, second = claimed(desk, "a"), claimed(desk, "b")
    assert reserved(desk, first, 20_000).wait_s == 0.0
    assert reserved(desk, second, 1_500).outcome == "budget_exhausted"
    replied(desk, first, {"text": "yes"}, SPENT)
    assert reserved(desk, second, 1_500).wait_s == 0.0


def test_a_turn_that_comes_too_late_is_refused_with_the_limit_and_what_to_do(
    desk: InProcessDesk,
) -> None:
    desk.paces["claude"] = EndpointPace("claude", calls=Bucket(2))
    reserved(desk, claimed(desk, "a"))
    work = claimed(desk, "b")
    refused = reserved(desk, work)
    assert refused.outcome == "budget_exhausted"
    assert "2 calls a minute" in refused.message
    assert "DESKBUS_MODEL_WAIT_S_MAX" in refused.message
    cycle = desk.cycles[desk.operations[work[0]].row.cycle_id]
    assert cycle.purse.tokens_reserved == 0, "nothing is held back for a call that never begins"


def test_what_one_was_told_by_retry_after_all_others_keep_to(desk: InProcessDesk) -> None:
    desk.paces["claude"] = EndpointPace("claude")
    first, second = claimed(desk, "a"), claimed(desk, "b")
    reserved(desk, first)
    fault = {"code": "provider_unavailable", "message": "HTTP 429", "retry_after_s": 12.5}
    replied(desk, first, {"fault": fault}, Usage())
    assert reserved(desk, second).wait_s == 12.5


@pytest.mark.parametrize("after", [None, -3.0, "soon"])
def test_a_fault_without_a_wait_closes_nothing(desk: InProcessDesk, after: object) -> None:
    desk.paces["claude"] = EndpointPace("claude")
    first, second = claimed(desk, "a"), claimed(desk, "b")
    reserved(desk, first)
    replied(desk, first, {"fault": {"code": "x", "retry_after_s": after}}, Usage())
    assert reserved(desk, second).wait_s == 0.0
