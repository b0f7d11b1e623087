"""Prompts: Markdown files known by their hash, and the text that carries a task to a model.

Everything that comes from outside travels as JSON between delimiters, with `<` and every line break
escaped, so that no headline can close a delimiter and speak as the desk.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import orjson
from pydantic import BaseModel, JsonValue

from contracts.memory import AgentMemory
from contracts.message import Command
from contracts.sentiment import SentimentReport, SignalDigest
from contracts.types import plainly
from libs.facts.fact import TEXT, Fact
from libs.llm.provider import ToolEvidence

IDS_LEFT_OUT = frozenset(
    {
        "cycle_id",
        "op_id",
        "order_id",
        "version",
        "account",
        "now",
        "figures",
        "loose",
        "substitutes",
    }
)
"""Fields of contracts that say nothing to a model: the same question is put in the same words."""

# What could close a delimiter, and the line breaks that JSON leaves as they are.
_ESCAPED = {ord(char): f"\\u{ord(char):04x}" for char in "<\x85\u2028\u2029"}


@dataclass(frozen=True)
class Prompt:
    """A system prompt and the SHA-256 of its text, by which the audit knows its version."""

    text: str
    sha256: str

    @classmethod
    def of(cls, text: str) -> "Prompt":
        """The prompt with this text."""
        return cls(text=text, sha256=hashlib.sha256(text.encode()).hexdigest())

    @classmethod
    def load(cls, path: Path) -> "Prompt":
        """The prompt in a Markdown file."""
        return cls.of(path.read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Task:
    """The task of one agent: data as JSON, results read beforehand, errors made before.

    `facts` are those of the data, and `about` the entities that the task is about, the most
    important first: where an answer gives reasons, it names them.
    """

    data: Mapping[str, JsonValue]
    evidence: tuple[ToolEvidence, ...] = ()
    errors: tuple[str, ...] = ()
    facts: tuple[Fact, ...] = ()
    about: tuple[str, ...] = ()


def task_for(
    command: Command,
    *,
    evidence: tuple[ToolEvidence, ...] = (),
    facts: Iterable[Fact] = (),
    about: Iterable[str] = (),
    **parts: BaseModel | JsonValue,
) -> Task:
    """The task of a command: as_of, the named parts as JSON, and the errors of the last attempt."""
    data: dict[str, JsonValue] = {"as_of": command.as_of.isoformat()}
    data |= {
        name: part.model_dump(mode="json") if isinstance(part, BaseModel) else part
        for name, part in parts.items()
    }
    return Task(data, evidence, command.errors, tuple(facts), tuple(about))


NOT_TOLD = {"decision", "outcomes", "stated"}
"""Fields of a memory that are for code and people."""


def memory_for_prompt(memory: AgentMemory | None) -> JsonValue:
    """The last cycle's memory as agents get it: its `track_record` says the outcomes in words."""
    if memory is None:
        return None
    data: JsonValue = memory.model_dump(mode="json", exclude=NOT_TOLD)
    return data


def digest_for_prompt(digest: SignalDigest) -> JsonValue:
    """The digest as agents get it whose facts hold the headlines: none is told twice."""
    data: JsonValue = digest.model_dump(
        mode="json", exclude={"candidates": {"__all__": {"headlines"}}}
    )
    return data


def sentiment_for_prompt(report: SentimentReport) -> JsonValue:
    """The sentiment report likewise: its reasons name the headlines that its texts would quote."""
    data: JsonValue = report.model_dump(
        mode="json", exclude={"tickers": {"__all__": {"key_quotes", "rationale"}}}
    )
    return data


def render_task(task: Task) -> str:
    """The task as the first part of a user turn."""
    lines = ["<task>", _line(_without_ids(dict(task.data))), "</task>"]
    if task.errors:
        lines += [
            "Your previous answer was not accepted. Correct these points:",
            "<errors>",
            *(_line(error) for error in task.errors),
            "</errors>",
        ]
    return "\n".join(lines)


def render_evidence(evidence: Sequence[ToolEvidence]) -> str:
    """The evidence as JSON lines, each with the id that an answer may cite."""
    lines = [_line(item.model_dump(mode="json")) for item in evidence]
    return "\n".join(["<evidence>", *lines, "</evidence>"])


def render_facts(facts: Sequence[Fact], evidence: Sequence[ToolEvidence] = ()) -> str:
    """The facts that an answer may name, one a line, and which tools could not answer."""
    lines = [f"{_line(fact.name)[1:-1]} = {_value(fact)}" for fact in facts]
    failed = [
        _line({"tool": item.tool, "error": item.result["error"]})
        for item in evidence
        if isinstance(item.result, dict) and "error" in item.result
    ]
    absent = ["<absent>", *failed, "</absent>"] if failed else []
    return "\n".join(["<facts>", *lines, "</facts>", *absent])


def _value(fact: Fact) -> str:
    if fact.unit == TEXT:
        text = _line(f"{fact.value}: {fact.note}" if fact.note else str(fact.value))
        return f"{text} by {_line(fact.source)}" if fact.is_published else text
    if fact.number is None:
        return str(fact.value)
    # As exact as the tool had it: who computes with it must not fall behind who read the result.
    return f"{plainly(Decimal(str(fact.value)))} {fact.unit}".rstrip()


def render_errors(errors: Sequence[str]) -> str:
    """A repair turn: only what was wrong."""
    return "\n".join(
        [
            "That answer is not valid. Send the whole corrected JSON object again, nothing else.",
            "<errors>",
            *(_line(error) for error in errors),
            "</errors>",
        ]
    )


NO_CALL = (
    "You have called no tool yet. Call the tools that you need now, as tool calls. An answer "
    "without data counts for nothing."
)
"""The turn that follows a tool round without a call."""


def render_unread(corrections: Sequence[str]) -> str:
    """A repair turn in a tooling pass: the last tool call could not be read."""
    return "\n".join(
        [
            "Your last reply could not be read. Call a tool again, with one JSON object as its",
            "arguments, or write one sentence without a tool call to end.",
            "<errors>",
            *(_line(correction) for correction in corrections),
            "</errors>",
        ]
    )


def _line(value: JsonValue) -> str:
    # Sorted, because a database may hand a stored object back in another order.
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode().translate(_ESCAPED)


def _without_ids(value: JsonValue) -> JsonValue:
    match value:
        case dict():
            return {
                key: _without_ids(item) for key, item in value.items() if key not in IDS_LEFT_OUT
            }
        case list():
            return [_without_ids(item) for item in value]
        case _:
            return value
