"""Answers that fit into one message: what is too large is cut, and says so. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar
from uuid import UUID

import orjson
from pydantic import BaseModel, JsonValue

from contracts.message import MESSAGE_BYTES_MAX

ANSWER_BYTES_MAX = MESSAGE_BYTES_MAX - 32_000
"""What the parts of an answer may take in all; the rest is for what holds them together."""
PREVIEW_CHARS = 2_000

M = TypeVar("M", bound=BaseModel)


def size_of(value: JsonValue) -> int:
    """Bytes of a value as JSON."""
    return len(orjson.dumps(value))


def cut(value: JsonValue, bytes_max: int) -> JsonValue:
    """The value, or where it is larger: its size and how it begins."""
    body = orjson.dumps(value)
    if len(body) <= bytes_max:
        return value
    preview = body[: min(PREVIEW_CHARS, bytes_max)].decode(errors="ignore")
    return {"cut": True, "size_bytes": len(body), "preview": preview}


def fitting(items: Iterable[M], bytes_max: int = ANSWER_BYTES_MAX) -> Sequence[M]:
    """The first items that fit together."""
    kept: list[M] = []
    for item in items:
        bytes_max -= len(item.model_dump_json().encode()) + 1
        if bytes_max < 0:
            break
        kept.append(item)
    return kept


@dataclass(frozen=True)
class OperationSizes:
    """One operation's record by its sizes: command with result, then each journal entry."""

    op_id: UUID
    head_bytes: int
    entry_bytes: Sequence[int]


@dataclass(frozen=True)
class RecordPart:
    """The part of an operation's record in one answer: `count` journal entries from `first` on."""

    op_id: UUID
    first: int
    count: int


def parts(
    records: Iterable[OperationSizes], bytes_max: int = ANSWER_BYTES_MAX
) -> Sequence[RecordPart]:
    """Every operation in as few parts as fit; a part never holds more than one operation.

    Command and result stand in each operation's first part; a record with one piece over the limit
    gets a part of its own, which the sender refuses by its size.
    """
    return [part for record in records for part in _parts_of(record, bytes_max)]


def _parts_of(record: OperationSizes, bytes_max: int) -> Iterable[RecordPart]:
    first, used = 0, record.head_bytes
    for index, size in enumerate(record.entry_bytes):
        if used + size > bytes_max and used > 0:
            yield RecordPart(record.op_id, first, index - first)
            first, used = index, 0
        used += size
    yield RecordPart(record.op_id, first, len(record.entry_bytes) - first)
