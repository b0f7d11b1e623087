"""Requests to a model, and the part of them that is worth storing beside its reply."""

import hashlib
from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, JsonValue

from contracts.reasons import ReasonDraft
from libs.facts.fact import Facts
from libs.llm.agent import Agent
from libs.llm.answer import schema_of
from libs.llm.errors import TaskTooLarge
from libs.llm.masking.reader import Reader
from libs.llm.prompt import Task, render_evidence, render_facts, render_task
from libs.llm.provider import (
    AssistantMessage,
    Evidence,
    ModelMessage,
    ModelReply,
    ModelRequest,
    ToolMessage,
    UserMessage,
)
from libs.llm.toolbox import Toolbox

TASK_CHARS_STORED_MAX = 50_000
NO_FACT = ""
"""What a reason without a second fact has in its place."""


def first_message(
    agent: Agent,
    task: Task,
    evidence: Sequence[Evidence],
    reader: Reader,
    facts: Facts | None = None,
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
    published = Facts.of((fact for fact in task.facts if fact.is_published), task.about)
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
    evidence: tuple[Evidence, ...],
    reader: Reader,
    *,
    tools: Toolbox | None = None,
    output: type[BaseModel] | None = None,
    facts: Facts | None = None,
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


def worth_storing(request: ModelRequest, first: int) -> JsonValue:
    """The new part of a request: the prompt and each tool result are stored elsewhere, by hash."""
    return {
        "agent": request.agent,
        "model": request.model,
        "system_sha256": request.system_sha256,
        "tools": [tool.name for tool in request.tools],
        "output": request.output_schema is not None,
        "messages": [_brief(message) for message in request.messages[first:]],
        "evidence": [item.id for item in request.evidence],
    }


def _brief(message: ModelMessage) -> JsonValue:
    match message:
        case UserMessage(text=text):
            # The evidence lines are tool results, which are entries of their own; facts are made
            # of those and of the operation's command, which is on record too.
            task = text.split("\n<evidence>\n", 1)[0].split("\n<facts>\n", 1)[0]
            if len(task) > TASK_CHARS_STORED_MAX:
                # The operation's command is on record too, and has the same data.
                return {"role": "user", "sha256": _sha256(task), "chars": len(task)}
            return {"role": "user", "text": task}
        case AssistantMessage():
            return {"role": "assistant", "said": "as in the reply before"}
        case ToolMessage(results=results):
            return {"role": "tool", "results": [_sha256(item.content) for item in results]}


def assistant_turn(reply: ModelReply) -> AssistantMessage:
    """The model's reply as a turn of the transcript."""
    return AssistantMessage(text=reply.text, tool_calls=reply.tool_calls, raw=reply.raw)


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
