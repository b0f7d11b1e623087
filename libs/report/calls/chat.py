"""A model's call as a chat: who said what, in the order in which the model read it. Pure.

An entry of the journal has only what is new in its request, and that by its hashes. The turns are
put together from the texts that models were sent, the replies of the model in the entries before,
and the results of its tools.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import takewhile
from typing import Any

import orjson
from pydantic import JsonValue

from contracts.operation import CallKind, JournalEntry
from libs.report.calls import sentence
from libs.runtime import recorded_call
from libs.runtime.model_settings import BUILT_IN
from libs.runtime.recorded_call import items, mapping

NOT_RECORDED = "not recorded"
"""In the place of a text that no table has: of a call before the desk kept them."""
TOO_LONG = "not recorded: too long to be kept with its call"
SHA256 = re.compile(r"[0-9a-f]{64}")
TURNS_MAX = 60
"""Turns of one chat; of a longer one the newest."""


class ChatRole(StrEnum):
    """Who speaks in a chat; `tools` and `schema` are what the desk binds a reply to."""

    SYSTEM = "system"
    TOOLS = "tools"
    SCHEMA = "schema"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


@dataclass(frozen=True)
class Spoken:
    """One tool call of the model, or the result of one: a sentence, and the `text` that was sent.

    `index` is the entry that has it whole; None where the model only asked for it.
    """

    sentence: str
    text: str = ""
    index: int | None = None
    failed: bool = False


@dataclass(frozen=True)
class Turn:
    """One turn: a text, the tools that were asked for, or their results. `note` is the desk's."""

    role: ChatRole
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


def hashes_in(journal: Iterable[JournalEntry]) -> Sequence[str]:
    """The hashes of all texts that these calls of models name."""
    named: dict[object, None] = {}
    for request in (mapping(e.request) for e in journal if e.kind is CallKind.MODEL):
        named |= dict.fromkeys((request.get("system_sha256"), request.get("schema_sha256")))
        for message in map(mapping, items(request.get("messages"))):
            named |= dict.fromkeys(map(str, items(message.get("sha256"))))
    return [digest for digest in named if isinstance(digest, str) and SHA256.fullmatch(digest)]


def whole_call(journal: Sequence[JournalEntry], index: int) -> JournalEntry:
    """The model's call at `index`; of a second try the first, which alone has the request."""
    models = [e for e in journal if e.kind is CallKind.MODEL and e.index <= index]
    return next((e for e in reversed(models) if is_whole(e)), models[-1])


def chat_of(journal: Sequence[JournalEntry], index: int, texts: Mapping[str, str]) -> Chat:
    """The model's call at `index`, from the entries up to there and the tool results after it, and
    the texts on record by their hash.

    Entries that are missing (a journal is long) leave out turns, never invent any.
    """
    models = [e for e in journal if e.kind is CallKind.MODEL and e.index <= index]
    tools = {_digest(e.reply): e for e in journal if e.kind is CallKind.TOOL and e.index < index}
    entry, first = models[-1], whole_call(journal, index)
    known = _Known(texts, tools)
    request = mapping(first.request)
    before = [e for e in models if e.index < first.index and is_whole(e)]
    # Each transcript begins with a request that has a user's turn and no reply before it.
    start = max((e.index for e in [*before, first] if _begins(e)), default=first.index)
    earlier = [e for e in models if start <= e.index < first.index]
    tries = [e for e in models if first.index <= e.index < index]
    again = mapping(entry.request).get("again")
    return Chat(
        before=[turn for e in earlier for turn in (*known.asked(e), *_replied(e))][-TURNS_MAX:],
        asked=[
            *known.bound(request, entry.provider),
            *known.asked(first),
            *(turn for e in tries for turn in _replied(e)),
        ],
        reply=_replied(entry, _answers(journal, index)),
        tries=again + 1 if isinstance(again, int) else 1,
        stop_reason=str(mapping(entry.reply).get("stop_reason") or ""),
        tools=[str(name) for name in items(request.get("tools"))],
    )


def is_whole(entry: JournalEntry) -> bool:
    """Whether it is a model's call that has its request on record: no second try of one."""
    return entry.kind is CallKind.MODEL and "messages" in mapping(entry.request)


def _begins(entry: JournalEntry) -> bool:
    """Whether a transcript begins with it: the answer has one of its own, without the tools."""
    messages = [mapping(message) for message in items(mapping(entry.request).get("messages"))]
    return not any(message.get("role") == "assistant" for message in messages)


@dataclass(frozen=True)
class _Known:
    """The record: texts by their hash, and results of tools by the hash of their text."""

    texts: Mapping[str, str]
    tools: Mapping[str, JournalEntry]

    def bound(self, request: Mapping[str, Any], provider: str) -> Sequence[Turn]:
        """The system prompt, and the tools or the answer's schema."""
        system = self._turn(ChatRole.SYSTEM, [str(request.get("system_sha256"))], request)
        if provider in BUILT_IN and not system.note:
            system = replace(
                system, note=f"{provider} computes from the data below and reads no prompt"
            )
        role = ChatRole.SCHEMA if request.get("output") else ChatRole.TOOLS
        return [system, self._turn(role, [str(request.get("schema_sha256"))], request)]

    def asked(self, entry: JournalEntry) -> Sequence[Turn]:
        """The new turns of a request; the model's own words stand with the reply before."""
        request = mapping(entry.request)
        turns: list[Turn] = []
        for message in map(mapping, items(request.get("messages"))):
            hashes = [str(digest) for digest in items(message.get("sha256"))]
            match message.get("role"):
                case "user":
                    turns.append(self._turn(ChatRole.USER, hashes, request))
                case "tool":
                    results = [self._result(digest, request) for digest in hashes]
                    turns.append(Turn(ChatRole.TOOL, calls=results))
        return turns

    def _turn(self, role: ChatRole, hashes: Sequence[str], request: Mapping[str, Any]) -> Turn:
        texts = [self.texts[digest] for digest in hashes if digest in self.texts]
        missing = not hashes or len(texts) < len(hashes)
        return Turn(role, "\n".join(texts), note=_missing(request) if missing else "")

    def _result(self, digest: str, request: Mapping[str, Any]) -> Spoken:
        entry, sent = self.tools.get(digest), self.texts.get(digest)
        if entry is None:
            return Spoken("result of a tool", sent or _missing(request))
        text = sent or _canonical(entry.reply)
        return Spoken(sentence.of_entry(entry), text, entry.index, failed=bool(entry.fault))


def _missing(request: Mapping[str, Any]) -> str:
    # Whoever names the schema by its hash has sent all texts that fit along.
    return TOO_LONG if "schema_sha256" in request else NOT_RECORDED


def _answers(journal: Sequence[JournalEntry], index: int) -> Mapping[bytes, JournalEntry]:
    """The tool results between the model's call and its next one, by what was asked."""
    after = takewhile(
        lambda entry: entry.kind is CallKind.TOOL, (e for e in journal if e.index > index)
    )
    return {_key(entry.name, mapping(entry.request).get("arguments")): entry for entry in after}


def _key(name: object, arguments: object) -> bytes:
    return orjson.dumps([name, arguments], option=orjson.OPT_SORT_KEYS)


def _replied(
    entry: JournalEntry, answers: Mapping[bytes, JournalEntry] | None = None
) -> Sequence[Turn]:
    if entry.fault:
        note = f"no reply: {entry.fault.get('code')}: {entry.fault.get('message')}"
        return [Turn(ChatRole.ASSISTANT, note=note)]
    reply = mapping(entry.reply)
    calls = [
        _wanted(wanted, answers or {}) for wanted in map(mapping, items(reply.get("tool_calls")))
    ]
    text = str(reply.get("text") or "")
    why = str(reply.get("usage_estimated") or "")
    notes = [] if text or calls else ["an empty reply"]
    notes += [f"tokens: {why}"] if why else []
    turn = Turn(ChatRole.ASSISTANT, text, calls, "; ".join(notes))
    return [turn] if entry.reply is not None else []


def _wanted(call: Mapping[str, Any], answers: Mapping[bytes, JournalEntry]) -> Spoken:
    """A tool that the model asks for, with what it gave where that is known already."""
    name, arguments = call.get("name"), call.get("arguments")
    if answer := answers.get(_key(name, arguments)):
        fault = bool(answer.fault)
        return Spoken(sentence.of_entry(answer), index=answer.index, failed=fault)
    label = recorded_call.label(str(name), recorded_call.about(arguments))
    return Spoken(sentence.of(label, ""), failed=bool(call.get("error")))


def _digest(reply: JsonValue) -> str:
    return hashlib.sha256(_canonical(reply).encode()).hexdigest()


def _canonical(reply: JsonValue) -> str:
    """A result as the loop sends it: with its keys in order."""
    return orjson.dumps(reply, option=orjson.OPT_SORT_KEYS).decode()
