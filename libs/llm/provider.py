"""The interface behind which every model stands, and the neutral form of what is said to it.

All of it is JSON, so that a call can be hashed, journalled and answered again from the record.
"""

import operator
from enum import StrEnum
from typing import Annotated, Literal, Protocol

from pydantic import Field, JsonValue

from contracts.operation import Reserve
from contracts.types import ToolDef, Usage, Value
from libs.llm.json_values import Json, JsonObject
from libs.runtime.model_settings import BUILT_IN

OUTPUT_TOKENS_MAX = 16_000
"""What one reply may hold, unless the endpoint's settings say otherwise: a report on ten tickers is
about 3,000 tokens, and models that think spend more on that."""
ROOM_MAX = 2
"""Times that limit for the one second try of a reply that ended at it."""

FREE = "rules"
"""The provider of stated rules: it costs nothing, and is always there."""
COMPUTING = frozenset(BUILT_IN)
"""Providers that compute from a request's data: they read no message, so nothing is masked."""


class ModelSize(StrEnum):
    """The class of model a stage wants; each provider names its own model for it."""

    SMALL = "small"
    MEDIUM = "medium"
    LARGE = "large"


class StopReason(StrEnum):
    """The reason why a reply ended."""

    END = "end"
    TOOL_CALLS = "tool_calls"
    OUTPUT_LIMIT = "output_limit"
    CONTEXT_LIMIT = "context_limit"
    REFUSAL = "refusal"


class ToolCall(Value):
    """A tool that the model asks for. `error` says why its arguments could not be read, if so."""

    id: str
    name: str
    arguments: dict[str, JsonValue] = Field(default_factory=dict)
    error: str = ""


class UserMessage(Value):
    """The desk's turn."""

    role: Literal["user"] = "user"
    text: str


class AssistantMessage(Value):
    """The model's turn. `raw` is the provider's own form, to be sent back verbatim."""

    role: Literal["assistant"] = "assistant"
    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    raw: JsonValue = None


class ToolResult(Value):
    """The answer to one tool call; `content` is a JSON object as text."""

    call_id: str
    name: str
    content: str
    is_error: bool = False


class ToolMessage(Value):
    """The answers to all tool calls of one assistant turn, in their order."""

    role: Literal["tool"] = "tool"
    results: tuple[ToolResult, ...]


ModelMessage = Annotated[UserMessage | AssistantMessage | ToolMessage, Field(discriminator="role")]


class ToolEvidence(Value):
    """One result that an answer may stand on, called E0, E1, ...: never a model's own words.

    `about` is the ticker that was asked about, also where the result is an error; empty for none.
    """

    id: str
    tool: str
    result: Json
    about: str = Field(default="", exclude=True)


def is_error(result: JsonValue) -> bool:
    """Whether a tool result says that the tool could not answer."""
    return isinstance(result, dict) and "error" in result


class ModelRequest(Value):
    """One call of a model. A request has tools or an output schema, never both.

    `task` and `evidence` are the same as in `messages`, as data, for providers that compute instead
    of reading, and `facts` those that the answer's reasons may name (numbers, or words), with the
    `publishers` of headlines; a language model gets `system` and `messages` only. The reply may
    hold `room` times the endpoint's output limit.
    """

    agent: str
    model: str
    system: str
    system_sha256: str
    messages: tuple[ModelMessage, ...]
    tools: tuple[ToolDef, ...] = ()
    output_schema: JsonObject | None = None
    room: int = Field(default=1, ge=1, le=ROOM_MAX)
    seed: int = 0
    task: JsonObject = Field(default_factory=dict)
    evidence: tuple[ToolEvidence, ...] = ()
    facts: dict[str, float | str] = Field(default_factory=dict)
    publishers: dict[str, str] = Field(default_factory=dict)


class ModelReply(Value):
    """A model's answer and its cost. `why` is the endpoint's reason for a refusal;
    `usage_estimated` says why `usage` is an estimate, where it is one."""

    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    stop_reason: StopReason = StopReason.END
    why: str = ""
    usage: Usage = Usage()
    usage_estimated: str = Field(default="", exclude_if=operator.not_)
    raw: JsonValue = None


class Provider(Protocol):
    """A source of model replies."""

    @property
    def name(self) -> str:
        """The name that pipelines call it by."""
        ...

    def model_for(self, stage: str, size: ModelSize) -> str:
        """The model it uses for a stage where the pipeline names none."""
        ...

    def reserve(self, request: ModelRequest) -> Reserve | None:
        """The most that the call may cost; None where nothing is counted.

        Raises ProviderNotUsable, so that no such call is begun.
        """
        ...

    async def complete(self, request: ModelRequest) -> ModelReply:
        """One reply to one call: nothing is tried again here, so that every call is on record.

        Raises ProviderFault for a reply that is none, ProviderUnavailable where a later call may
        succeed, and other ModelErrors as they are named.
        """
        ...
