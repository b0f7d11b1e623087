"""A model's call as a chat: who said what, in the order in which the model read it. Pure.

An entry of the journal has only what is new in its request. The turns before it are put together
from the entries before: the replies of the model, and the tool results by their hashes.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import takewhile
from typing import Any

import orjson
from pydantic import JsonValue

from contracts.operation import CallKind, JournalEntry
from libs.report.calls import sentence
from libs.runtime import recorded_call

TURNS_MAX = 60
"""Turns of one chat; of a longer one the newest."""


class Role(StrEnum):
    """Who speaks in a chat."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


@dataclass(frozen=True)
class Spoken:
    """One tool call of the model, or the result of one: a sentence, and what it holds.

    `index` is the entry that has it whole; None where the model only asked for it.
    """

    sentence: str
    value: JsonValue
    index: int | None = None
    failed: bool = False


@dataclass(frozen=True)
class Turn:
    """One turn: a text, the tools that were asked for, or their results. `note` is the desk's."""

    role: Role
    text: str = ""
    calls: Sequence[Spoken] = ()
    note: str = ""


@dataclass(frozen=True)
class Chat:
    """A model's call: what it had read before, what was new to it, and what it replied."""

    before: Sequence[Turn]
    asked: Sequence[Turn]
    reply: Sequence[Turn]
    tries: int = 1
    stop_reason: str = ""
    tools: Sequence[str] = ()


def chat_of(journal: Sequence[JournalEntry], index: int) -> Chat:
    """The model's call at `index`, from the entries up to there and the tool results after it.

    Entries that are missing (a journal is long) leave out turns, never invent any.
    """
    models = [e for e in journal if e.kind is CallKind.MODEL and e.index <= index]
    tools = {_digest(e.reply): e for e in journal if e.kind is CallKind.TOOL and e.index < index}
    entry = models[-1]
    # A second try has the same request as the first, which alone has it on record.
    first = next((e for e in reversed(models) if _is_whole(e)), entry)
    request = _mapping(first.request)
    earlier = [e for e in models if e.index < first.index and _belongs(e, request)]
    tries = [e for e in models if first.index <= e.index < index]
    again = _mapping(entry.request).get("again")
    return Chat(
        before=[turn for e in earlier for turn in (*_asked(e, tools), *_replied(e))][-TURNS_MAX:],
        asked=[_system(request), *_asked(first, tools), *(t for e in tries for t in _replied(e))],
        reply=_replied(entry, _answers(journal, index)),
        tries=again + 1 if isinstance(again, int) else 1,
        stop_reason=str(_mapping(entry.reply).get("stop_reason") or ""),
        tools=[str(name) for name in _list(request.get("tools"))],
    )


def _is_whole(entry: JournalEntry) -> bool:
    return "messages" in _mapping(entry.request)


def _belongs(entry: JournalEntry, request: Mapping[str, Any]) -> bool:
    """Whether it is of the same transcript: the answer has one of its own, without the tools."""
    return bool(_mapping(entry.request).get("output", False) == request.get("output", False))


def _system(request: Mapping[str, Any]) -> Turn:
    agent, digest = request.get("agent"), str(request.get("system_sha256") or "")
    note = f"the system prompt of {agent}, by its hash {digest[:12]}" if agent else ""
    return Turn(Role.SYSTEM, note=note or "not on record")


def _asked(entry: JournalEntry, tools: Mapping[str, JournalEntry]) -> Sequence[Turn]:
    request = _mapping(entry.request)
    turns: list[Turn] = []
    for message in map(_mapping, _list(request.get("messages"))):
        match message.get("role"):
            case "user":
                turns.append(_user(message))
            case "tool":
                results = [str(digest) for digest in _list(message.get("results"))]
                turns.append(Turn(Role.TOOL, calls=list(_results(results, tools))))
            case _:
                # The model's own words: they stand with the reply before.
                continue
    if request.get("output") and not turns:
        evidence = ", ".join(map(str, _list(request.get("evidence"))))
        note = "the task as the tools had it"
        return [Turn(Role.USER, note=f"{note}, with {evidence}" if evidence else note)]
    return turns


def _user(message: Mapping[str, Any]) -> Turn:
    text = message.get("text")
    if isinstance(text, str):
        return Turn(Role.USER, text)
    return Turn(Role.USER, note=f"a task of {message.get('chars')} characters: the command has it")


def _results(digests: Iterable[str], tools: Mapping[str, JournalEntry]) -> Iterable[Spoken]:
    for digest in digests:
        entry = tools.get(digest)
        if entry is None:
            yield Spoken(f"a result by its hash {digest[:12]}", None)
        else:
            fault = bool(entry.fault)
            yield Spoken(sentence.of_entry(entry), entry.reply, entry.index, failed=fault)


def _answers(journal: Sequence[JournalEntry], index: int) -> Mapping[bytes, JournalEntry]:
    """The tool results between the model's call and its next one, by what was asked."""
    after = takewhile(
        lambda entry: entry.kind is CallKind.TOOL, (e for e in journal if e.index > index)
    )
    return {_key(entry.name, _mapping(entry.request).get("arguments")): entry for entry in after}


def _key(name: object, arguments: object) -> bytes:
    return orjson.dumps([name, arguments], option=orjson.OPT_SORT_KEYS)


def _replied(
    entry: JournalEntry, answers: Mapping[bytes, JournalEntry] | None = None
) -> Sequence[Turn]:
    if entry.fault:
        note = f"no reply: {entry.fault.get('code')}: {entry.fault.get('message')}"
        return [Turn(Role.ASSISTANT, note=note)]
    reply = _mapping(entry.reply)
    calls = [
        _wanted(wanted, answers or {}) for wanted in map(_mapping, _list(reply.get("tool_calls")))
    ]
    text = str(reply.get("text") or "")
    why = str(reply.get("usage_estimated") or "")
    notes = [] if text or calls else ["an empty reply"]
    notes += [f"tokens: {why}"] if why else []
    turn = Turn(Role.ASSISTANT, text, calls, "; ".join(notes))
    return [turn] if entry.reply is not None else []


def _wanted(call: Mapping[str, Any], answers: Mapping[bytes, JournalEntry]) -> Spoken:
    """A tool that the model asks for, with what it gave where that is known already."""
    name, arguments = call.get("name"), call.get("arguments")
    if answer := answers.get(_key(name, arguments)):
        fault = bool(answer.fault)
        return Spoken(sentence.of_entry(answer), answer.reply, answer.index, failed=fault)
    label = recorded_call.label(str(name), recorded_call.about(arguments))
    return Spoken(sentence.of(label, ""), arguments, failed=bool(call.get("error")))


def _digest(reply: JsonValue) -> str:
    # As the loop tells a model of a result: with its keys in order.
    content = orjson.dumps(reply, option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(content).hexdigest()


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> Sequence[Any]:
    return value if isinstance(value, list) else ()
