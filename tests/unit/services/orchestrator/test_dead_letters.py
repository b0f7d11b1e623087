"""Why a dead letter's command is not sent again, and which operation a body names."""

from uuid import UUID

import pytest

from contracts.message import MESSAGE_BYTES_MAX
from services.orchestrator.dead_letters import operation_named_in, why_not

OP = UUID(int=7)


def _row(**other: object) -> dict[str, object]:
    row = {"cycle_id": UUID(int=1), "service": "trader", "step": "picks", "status": "pending"}
    return {**row, "epoch": 0, "bytes": 10, **other}


@pytest.mark.parametrize(
    ("row", "code"),
    [
        (None, "no_operation"),
        (_row(status="failed"), "ended"),
        (_row(status="cancelled"), "ended"),
        (_row(step="approval", service="orchestrator"), "waits_for_person"),
        (_row(step="approval", service="orchestrator", status="completed"), "ended"),
        (_row(status="running", epoch=1), "at_work"),
        (_row(bytes=MESSAGE_BYTES_MAX + 1), "too_large"),
        (_row(epoch=4), "suspect"),
    ],
)
def test_each_reason_has_its_code(row: dict[str, object] | None, code: str) -> None:
    answer = why_not(OP, row)

    assert (answer.outcome, answer.code) == ("rejected", code)
    assert answer.message


@pytest.mark.parametrize(
    "body", [None, b"", b"{", b"[]", b"7", b"{}", b'{"op_id": 7}', b'{"op_id": "x"}', b"\xff"]
)
def test_a_body_without_an_operation_names_none(body: bytes | None) -> None:
    assert operation_named_in(body) is None


def test_a_torn_command_still_names_its_operation() -> None:
    assert operation_named_in(f'{{"op_id": "{OP}", "torn": 1}}'.encode()) == OP
