"""A provider that says what it was told to say: for tests, and for trying the loop by hand."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import orjson
from pydantic import BaseModel, JsonValue

from contracts.operation import Reserve
from libs.llm.errors import RequestRefused
from libs.llm.provider import ModelReply, ModelRequest, ModelSize, StopReason, ToolCall

Script = Callable[[ModelRequest], ModelReply]


@dataclass
class ScriptedProvider:
    """Answers the n-th call with the n-th reply, or with what a function makes of the request.

    `faults` raises an exception at the calls numbered in it (from 0) instead; such a call counts
    and uses up its reply. `requests` keeps what was asked. `reserved` makes calls count as paid.
    """

    replies: Sequence[ModelReply] | Script
    faults: Mapping[int, Exception] = field(default_factory=dict)
    reserved: Reserve | None = None
    name: str = "scripted"
    requests: list[ModelRequest] = field(default_factory=list)

    @property
    def calls(self) -> int:
        """The number of its calls."""
        return len(self.requests)

    def model_for(self, stage: str, size: ModelSize) -> str:
        """The size itself."""
        del stage
        return size.value

    def reserve(self, request: ModelRequest) -> Reserve | None:
        """The same for every call."""
        del request
        return self.reserved

    async def complete(self, request: ModelRequest) -> ModelReply:
        """The next reply; RequestRefused where the script has ended."""
        place = self.calls
        self.requests.append(request)
        if place in self.faults:
            raise self.faults[place]
        if callable(self.replies):
            return self.replies(request)
        if place >= len(self.replies):
            raise RequestRefused(f"the script has no reply {place}")
        return self.replies[place]


def says(answer: BaseModel | JsonValue, text: str = "") -> ModelReply:
    """A reply whose text is `answer` as JSON (or, where it is a string, that string)."""
    if isinstance(answer, str):
        return ModelReply(text=answer)
    body = answer.model_dump(mode="json") if isinstance(answer, BaseModel) else answer
    return ModelReply(text=f"{orjson.dumps(body).decode()}{text}")


def asks(*calls: tuple[str, dict[str, JsonValue]]) -> ModelReply:
    """A reply that asks for tools, called c0, c1, ... in the order given."""
    return ModelReply(
        tool_calls=tuple(
            ToolCall(id=f"c{place}", name=name, arguments=arguments)
            for place, (name, arguments) in enumerate(calls)
        ),
        stop_reason=StopReason.TOOL_CALLS,
    )
