"""What a service logs of its calls on record."""

from typing import cast
from uuid import uuid4

import pytest
import structlog

from contracts.operation import (
    GET_PORTFOLIO,
    CallKind,
    ClaimAnswer,
    JournalEntry,
    Record,
    RecordAnswer,
)
from libs.bus import operation
from libs.bus.operation import Lease, Orchestrator
from libs.runtime import recorded_call
from tests.fakes.log_lines import log_lines


class Recorder:
    """An orchestrator that takes every record."""

    async def record(self, record: Record) -> tuple[RecordAnswer, float]:
        return RecordAnswer(outcome="ok", lease_s=10), 0.0


def entry(kind: CallKind) -> JournalEntry:
    request = {"arguments": {"ticker": "AAPL"}}
    return JournalEntry(
        index=0, kind=kind, name="get_news", request_sha256="0" * 64, request=request, reply={}
    )


async def recorded(*entries: JournalEntry) -> None:
    orchestrator = cast(Orchestrator, Recorder())
    lease = Lease(orchestrator, uuid4(), ClaimAnswer(outcome="granted", epoch=1, lease_s=10))
    await lease.record(entries, None, None)


async def test_calls_of_tools_are_for_people_reads_for_a_closer_look_and_no_prompt_is_logged() -> (
    None
):
    with log_lines() as lines:
        await recorded(*map(entry, CallKind))

    levels = {line["event"]: line["log_level"] for line in lines}
    assert levels == {"tool.called": "info", "data.read": "debug"}
    assert lines[0]["arguments"] == {"ticker": "AAPL"}


async def test_the_log_has_no_cash_and_no_positions() -> None:
    reply = {"cash": "98765.43", "positions": [{"ticker": "IBM", "quantity": "31"}]}
    asked = entry(CallKind.TOOL).model_copy(update={"name": GET_PORTFOLIO, "reply": reply})
    with log_lines() as lines:
        await recorded(asked)

    (line,) = lines
    assert (line["name"], line["error"], "result" in line) == (GET_PORTFOLIO, "", False)
    assert "98765" not in str(line)
    assert "IBM" not in str(line)


async def test_no_outline_is_made_of_a_call_that_is_not_logged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    outlined: list[CallKind] = []

    def outline(entry: JournalEntry) -> dict[str, object]:
        outlined.append(entry.kind)
        return {}

    monkeypatch.setattr(recorded_call, "outline", outline)
    level = structlog.make_filtering_bound_logger(20)
    log = structlog.wrap_logger(structlog.ReturnLogger(), wrapper_class=level)
    monkeypatch.setattr(operation, "log", log)

    await recorded(*map(entry, CallKind))

    assert outlined == [CallKind.TOOL]
