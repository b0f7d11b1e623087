"""What a model is asked in one call, and what of that is worth storing beside its reply."""

import hashlib
from collections.abc import Sequence
from functools import lru_cache

from pydantic import BaseModel, JsonValue

from libs.llm.agent import Agent
from libs.llm.errors import TaskTooLarge
from libs.llm.prompt import Task, render_evidence, render_task
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


def first_message(agent: Agent, task: Task, evidence: Sequence[Evidence]) -> UserMessage:
    """The task and the evidence; TaskTooLarge where that is over the agent's limit."""
    text = render_task(task)
    if len(text.encode()) > agent.limits.task_bytes_max:
        raise TaskTooLarge(
            f"the task of {agent.name} has {len(text.encode())} bytes, the limit is "
            f"{agent.limits.task_bytes_max}; ask for fewer tickers"
        )
    return UserMessage(text=f"{text}\n{render_evidence(evidence)}" if evidence else text)


def request_of(
    agent: Agent,
    task: Task,
    messages: Sequence[ModelMessage],
    evidence: tuple[Evidence, ...],
    *,
    tools: Toolbox | None = None,
    output: type[BaseModel] | None = None,
) -> ModelRequest:
    """One call: with tools, or with the contract of the answer."""
    return ModelRequest(
        agent=agent.name,
        model=agent.model,
        system=agent.prompt.text,
        system_sha256=agent.prompt.sha256,
        messages=tuple(messages),
        tools=tools.definitions if tools else (),
        output_schema=_schema_of(output) if output else None,
        seed=agent.seed,
        task=dict(task.data),
        evidence=evidence,
    )


@lru_cache(maxsize=64)
def _schema_of(output: type[BaseModel]) -> dict[str, JsonValue]:
    return output.model_json_schema()


def worth_storing(request: ModelRequest, first: int) -> JsonValue:
    """What is new in a request: the prompt and each tool result stand elsewhere, by hash."""
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
            # The evidence lines are tool results, which are entries of their own.
            task = text.split("\n<evidence>\n", 1)[0]
            if len(task) > TASK_CHARS_STORED_MAX:
                # The operation's command is on record too, and has the same data.
                return {"role": "user", "sha256": _sha256(task), "chars": len(task)}
            return {"role": "user", "text": task}
        case AssistantMessage():
            return {"role": "assistant", "said": "as in the reply before"}
        case ToolMessage(results=results):
            return {"role": "tool", "results": [_sha256(item.content) for item in results]}


def assistant_turn(reply: ModelReply) -> AssistantMessage:
    """What the model said, as a turn of the transcript."""
    return AssistantMessage(text=reply.text, tool_calls=reply.tool_calls, raw=reply.raw)


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
