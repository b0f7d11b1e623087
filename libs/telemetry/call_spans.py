"""Spans of model and tool calls, by OpenTelemetry's conventions for generative AI.

The names are those of opentelemetry-semantic-conventions; tests compare them. Neither what was
asked nor what was answered is told.
"""

from collections.abc import Mapping

from pydantic import JsonValue

from contracts.operation import CallKind, fault_in
from contracts.types import Usage
from libs.telemetry.tracing import Attributes, OpenSpan

OPERATION = "gen_ai.operation.name"
PROVIDER = "gen_ai.provider.name"
MODEL = "gen_ai.request.model"
INPUT_TOKENS = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS = "gen_ai.usage.output_tokens"
CACHE_READ_TOKENS = "gen_ai.usage.cache_read.input_tokens"
CACHE_WRITE_TOKENS = "gen_ai.usage.cache_creation.input_tokens"
TOOL = "gen_ai.tool.name"
CHAT, EXECUTE_TOOL = "chat", "execute_tool"
COST = "deskbus.cost_usd"
PROVIDERS: Mapping[str, str] = {"claude": "anthropic"}
"""Where the conventions have another name for a provider than pipelines do."""


def described(kind: CallKind, name: str) -> tuple[str, Attributes]:
    """The span's name and what is known before the call."""
    if kind is CallKind.MODEL:
        provider, _, model = name.partition(":")
        known = {OPERATION: CHAT, PROVIDER: PROVIDERS.get(provider, provider), MODEL: model}
        return f"{CHAT} {model}", known
    if kind is CallKind.TOOL:
        return f"{EXECUTE_TOOL} {name}", {OPERATION: EXECUTE_TOOL, TOOL: name}
    return f"read {name}", {}


def tell(span: OpenSpan, kind: CallKind, reply: JsonValue, usage: Usage) -> None:
    """Set the attributes that are known once the call has ended."""
    if kind is CallKind.MODEL:
        # The conventions count cached tokens as input too.
        cached = usage.cache_read_tokens + usage.cache_write_tokens
        span.tell(
            {
                INPUT_TOKENS: usage.input_tokens + cached,
                OUTPUT_TOKENS: usage.output_tokens,
                CACHE_READ_TOKENS: usage.cache_read_tokens,
                CACHE_WRITE_TOKENS: usage.cache_write_tokens,
                # An attribute that is missing says that the price is unknown.
                **({} if usage.cost_usd is None else {COST: str(usage.cost_usd)}),
            }
        )
    fault = fault_in(kind, reply)
    if fault:
        span.failed(str(fault.get("code", "")))
