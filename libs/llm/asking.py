"""Requests to a model, and the part of them that is worth storing beside its reply."""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, JsonValue

from contracts.reasons import ReasonDraft
from libs.facts.fact import FactIndex
from libs.llm.agent import Agent
from libs.llm.answer import schema_of
from libs.llm.errors import TaskTooLarge
from libs.llm.json_values import canonical
from libs.llm.masking.reader import Reader
from libs.llm.prompt import Task, render_evidence, render_facts, render_task
from libs.llm.provider import (
    AssistantMessage,
    ModelMessage,
    ModelReply,
    ModelRequest,
    ToolEvidence,
    ToolMessage,
    UserMessage,
)
from libs.llm.toolbox import Toolbox

SECTION = re.compile(r"\n(?=<(?:facts|evidence)>\n)")
"""Where a user turn is cut into texts: what is the same in two calls is stored once."""
NO_FACT = ""
"""What a reason without a second fact has in its place."""


def first_message(
    agent: Agent,
    task: Task,
    evidence: Sequence[ToolEvidence],
    reader: Reader,
    facts: FactIndex | None = None,
) -> UserMessage:
    """The task and the evidence; TaskTooLarge where the task is over the agent's limit.

    Where the answer gives reasons, the `facts` that they may name stand in the evidence's place;
    elsewhere headlines alone are shown as facts, as the task's data leaves them to those.
    """
    text = render_task(reader.task(task))
    if len(text.encode()) > agent.limits.task_bytes_max:
        raise TaskTooLarge(
            f"the task of {agent.name} has {len(text.encode())} bytes, the limit is "
            f"{agent.limits.task_bytes_max}; ask for fewer tickers"
        )
    most = agent.limits.facts_max
    shown = reader.evidence(evidence)
    if facts is not None:
        named = render_facts(reader.facts(facts, evidence, most), shown)
        return UserMessage(text=f"{text}\n{named}")
    published = FactIndex.of((fact for fact in task.facts if fact.is_published), task.about)
    headlines = reader.facts(published, (), most)
    parts = [
        text,
        *([render_facts(headlines)] if headlines else []),
        *([render_evidence(shown)] if shown else []),
    ]
    return UserMessage(text="\n".join(parts))


def request_of(
    agent: Agent,
    task: Task,
    messages: Sequence[ModelMessage],
    evidence: tuple[ToolEvidence, ...],
    reader: Reader,
    *,
    tools: Toolbox | None = None,
    output: type[BaseModel] | None = None,
    facts: FactIndex | None = None,
) -> ModelRequest:
    """One call: with tools, or with the contract of the answer, whose reasons name `facts`."""
    offered = () if facts is None else reader.facts(facts, evidence, agent.limits.facts_max)
    return ModelRequest(
        agent=agent.name,
        model=agent.model,
        system=agent.prompt.text,
        system_sha256=agent.prompt.sha256,
        messages=tuple(messages),
        tools=reader.tools(tools.definitions) if tools else (),
        output_schema=offered_schema(output, [fact.name for fact in offered]) if output else None,
        seed=agent.seed,
        task=dict(task.data),
        evidence=evidence,
        facts=facts.values if facts is not None else {},
        publishers=facts.publishers if facts is not None else {},
    )


def gives_reasons(output: type[BaseModel]) -> bool:
    """True where an answer of this contract names facts."""
    return ReasonDraft.__name__ in schema_of(output).get("$defs", {})


def offered_schema(output: type[BaseModel], names: Sequence[str]) -> dict[str, Any]:
    """The contract's schema; the names that reasons may give are one enumeration in it.

    Parts of it are shared: nobody changes it.
    """
    schema = schema_of(output)
    if not names:
        return schema
    parts = schema["$defs"]
    reason = parts[ReasonDraft.__name__]
    fact = {"$ref": "#/$defs/FactName"}
    named = {**reason, "properties": {**reason["properties"], "fact": fact, "beside": fact}}
    fact_name = {"type": "string", "enum": [NO_FACT, *names]}
    return {**schema, "$defs": {**parts, ReasonDraft.__name__: named, "FactName": fact_name}}


@dataclass(frozen=True)
class RequestRecord:
    """The record of a request: `brief`, and the `texts` that it names by their hash."""

    brief: JsonValue
    texts: Sequence[str] = ()


def on_record(request: ModelRequest, first: int) -> RequestRecord:
    """The new part of a request: its messages from `first` on, as they are sent.

    The system prompt, and the tools or the answer's schema, are the same for the whole transcript:
    their texts travel with its first call. Replies are entries of their own, and so are results of
    tools, except those that the model is shown in another form (masked).
    """
    bound = _schema(request)
    new = request.messages[first:]
    texts = [] if first else [request.system, bound]
    texts += [
        text for message in new if isinstance(message, UserMessage) for text in _texts(message)
    ]
    results = [
        item for message in new if isinstance(message, ToolMessage) for item in message.results
    ]
    own = {canonical(item.result) for item in request.evidence} if results else set()
    texts += [item.content for item in results if item.is_error or item.content not in own]
    brief: JsonValue = {
        "agent": request.agent,
        "model": request.model,
        "system_sha256": request.system_sha256,
        "schema_sha256": _sha256(bound),
        "tools": [tool.name for tool in request.tools],
        "output": request.output_schema is not None,
        "messages": [_brief(message) for message in new],
        "evidence": [item.id for item in request.evidence],
    }
    return RequestRecord(brief, tuple(dict.fromkeys(texts)))


def _schema(request: ModelRequest) -> str:
    """The text that binds the reply: the tools' definitions, or the schema of the answer."""
    return canonical(request.output_schema or [tool.model_dump() for tool in request.tools])


def _texts(message: ModelMessage) -> Sequence[str]:
    """The texts of a message that the desk sends; a user turn is cut before facts and evidence."""
    match message:
        case UserMessage(text=text):
            return SECTION.split(text)
        case ToolMessage(results=results):
            return [item.content for item in results]
        case AssistantMessage():
            return ()


def _brief(message: ModelMessage) -> JsonValue:
    if isinstance(message, AssistantMessage):
        return {"role": message.role, "said": "as in the reply before"}
    texts = _texts(message)
    hashes: list[JsonValue] = [_sha256(text) for text in texts]
    return {"role": message.role, "sha256": hashes, "bytes": sum(len(t.encode()) for t in texts)}


def assistant_turn(reply: ModelReply) -> AssistantMessage:
    """The model's reply as a turn of the transcript."""
    return AssistantMessage(text=reply.text, tool_calls=reply.tool_calls, raw=reply.raw)


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
