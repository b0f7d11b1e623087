"""Traces: off unless asked for, ids that tie a cycle together, and names as they are agreed on."""

import os
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
import requests
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes as agreed
from structlog.testing import CapturingLogger

from contracts.operation import CallKind
from contracts.types import Usage
from libs.bus.headers import headers
from libs.runtime.journal import Call, Journal, Reply
from libs.telemetry import call_spans, tracing
from tests.fakes.proxy_server import proxy_server

CYCLE = UUID("7dc179c4-12d3-5df0-bd53-9da1910eaf92")
OPERATION = UUID("0102030405060708090a0b0c0d0e0f10")
ENDPOINT = "http://127.0.0.1:9/v1/traces"


def named(spans: list[Any], name: str) -> Any:
    (found,) = (span for span in spans if span.name == name)
    return found


async def no_record(*_: object) -> None: ...


def call(kind: CallKind, name: str, reply: Reply) -> Call:
    async def run() -> Reply:
        return reply

    return Call(kind, name, {"prompt": "SECRET WORDS"}, run)


def test_a_header_names_the_operation_and_its_cycle() -> None:
    said = headers("m", "desk.plan", CYCLE, OPERATION, "orchestrator")["traceparent"]
    node = tracing.Node.of_header(said)
    assert node is not None
    assert node.trace_id == CYCLE.int
    assert f"{node.span_id:016x}" == OPERATION.hex[:16]
    assert node.root == tracing.Node.of_cycle(CYCLE)


@pytest.mark.parametrize(
    "said", [None, "", "00-xyz-1-01", "00-" + "0" * 31 + "-" + "1" * 16 + "-01"]
)
def test_a_header_that_says_nothing_of_use_is_left_alone(said: str | None) -> None:
    assert tracing.Node.of_header(said) is None


async def test_spans_of_a_cycle_stand_in_one_tree(exported: list[Any]) -> None:
    cycle = tracing.Node.of_cycle(CYCLE)
    operation = tracing.Node(CYCLE.int, OPERATION.int >> 64)
    async with tracing.traced("deskbus-research"):
        with tracing.below(operation), tracing.span("handle plan", {}):
            usage = Usage(input_tokens=3, output_tokens=5, cache_read_tokens=2, cost_usd=Decimal(1))
            model = call(CallKind.MODEL, "claude:claude-x", Reply({"text": "SECRET WORDS"}, usage))
            tool = call(CallKind.TOOL, "get_news", Reply({"error": {"code": "not_in_source"}}))
            await Journal((), no_record).calls([model, tool])
        tracing.ended("operation plan", operation, datetime.now(UTC), {})
        tracing.ended("cycle decision", cycle, datetime.now(UTC), {}, "cycle_failed")
    root, planned = named(exported, "cycle decision"), named(exported, "operation plan")
    handled = named(exported, "handle plan")
    chat, executed = named(exported, "chat claude-x"), named(exported, "execute_tool get_news")
    assert {span.context.trace_id for span in exported} == {CYCLE.int}
    assert root.parent is None
    assert not root.status.is_ok
    assert planned.parent.span_id == root.context.span_id == cycle.span_id
    assert handled.parent.span_id == planned.context.span_id == operation.span_id
    assert chat.parent.span_id == executed.parent.span_id == handled.context.span_id
    assert dict(chat.attributes) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "anthropic",
        "gen_ai.request.model": "claude-x",
        "gen_ai.usage.input_tokens": 5,
        "gen_ai.usage.output_tokens": 5,
        "gen_ai.usage.cache_read.input_tokens": 2,
        "gen_ai.usage.cache_creation.input_tokens": 0,
        "deskbus.cost_usd": "1",
    }
    assert executed.attributes["error.type"] == "not_in_source"
    assert root.resource.attributes["service.name"] == "deskbus-research"
    assert "SECRET" not in "".join(span.to_json() for span in exported)


async def test_the_words_of_an_error_do_not_leave(exported: list[Any]) -> None:
    async def failing() -> Reply:
        raise ValueError("SECRET WORDS")

    async with tracing.traced("deskbus"):
        with tracing.below(tracing.Node.of_cycle(CYCLE)), pytest.raises(ValueError, match="SECRET"):
            await Journal((), no_record).call(Call(CallKind.TOOL, "t", None, failing))
    assert len(exported) == 1
    assert "SECRET" not in exported[0].to_json()


def test_the_attributes_have_the_names_that_are_agreed_on() -> None:
    assert call_spans.OPERATION == agreed.GEN_AI_OPERATION_NAME
    assert call_spans.PROVIDER == agreed.GEN_AI_PROVIDER_NAME
    assert call_spans.MODEL == agreed.GEN_AI_REQUEST_MODEL
    assert call_spans.INPUT_TOKENS == agreed.GEN_AI_USAGE_INPUT_TOKENS
    assert call_spans.OUTPUT_TOKENS == agreed.GEN_AI_USAGE_OUTPUT_TOKENS
    assert call_spans.CACHE_READ_TOKENS == agreed.GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS
    assert call_spans.CACHE_WRITE_TOKENS == agreed.GEN_AI_USAGE_CACHE_CREATION_INPUT_TOKENS
    assert call_spans.TOOL == agreed.GEN_AI_TOOL_NAME
    assert agreed.GenAiOperationNameValues.CHAT.value == call_spans.CHAT
    assert agreed.GenAiOperationNameValues.EXECUTE_TOOL.value == call_spans.EXECUTE_TOOL


def test_nothing_of_opentelemetry_is_imported_where_traces_are_off() -> None:
    program = (
        "import asyncio, sys; from libs.telemetry import tracing\n"
        "async def main():\n"
        "    async with tracing.traced('x'):\n"
        "        with tracing.span('a', {}) as told, tracing.below(None):\n"
        "            told.failed('b')\n"
        "        tracing.ended('c', None, None, {})\n"
        "asyncio.run(main())\n"
        "sys.exit(any(name.startswith('opentelemetry') for name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], env=_without_endpoints(), check=False)
    assert done.returncode == 0


def _without_endpoints() -> Mapping[str, str]:
    kept = {name: each for name, each in os.environ.items() if not name.startswith("OTEL_")}
    return {**kept, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


async def test_where_the_extra_is_missing_the_desk_says_so_and_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log = CapturingLogger()
    monkeypatch.setattr(tracing, "log", log)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", ENDPOINT)
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    async with tracing.traced("deskbus"):
        with tracing.span("a", {}) as told:
            told.tell({"x": 1})
    assert [each.args for each in log.calls] == [("traces.not_installed",)]


@pytest.mark.parametrize(("direct", "taken"), [(True, 1), (False, 0)])
async def test_a_collector_on_this_machine_is_reached_past_a_proxy(
    monkeypatch: pytest.MonkeyPatch, direct: bool, taken: int
) -> None:
    # In a process that has sent a message, libs.channels.heard has put an adapter of its own there.
    monkeypatch.setattr(requests.sessions, "HTTPAdapter", requests.adapters.HTTPAdapter)
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    async with proxy_server() as collector:
        monkeypatch.setenv(tracing.ENDPOINTS[0], f"http://{collector.address}")
        async with tracing.traced("x", direct=direct):
            with tracing.span("a span", {}):
                pass
    assert len(collector.heard) == taken
