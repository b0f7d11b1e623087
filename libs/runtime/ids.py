"""Deterministic ids: the same work has the same id after every crash."""

from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache
from typing import TypeVar
from uuid import UUID, uuid5

from libs.runtime.errors import DeskError

T = TypeVar("T")

NAMESPACE = UUID("6f0f9d8e-6d0b-5c52-9a55-6c1f6b0a2f11")
"""The namespace of all Deskbus ids; never to be changed."""
CACHED_MAX = 10_000
"""Ids of work that are kept: an operation's is asked for when it starts, ends and is looked for."""
ID_CHARS = 32
ID_CHARS_MIN = 4
"""Of an id that people may shorten."""
ID_CHARS_SHOWN = 8
"""Of a shortened id as it is shown; fewer may as well be a word."""


def id_range(text: str) -> tuple[UUID, UUID] | None:
    """The first and last id that begin with `text`; None where it is no beginning of an id."""
    digits = text.replace("-", "").strip().lower()
    known = set("0123456789abcdef")
    if not ID_CHARS_MIN <= len(digits) <= ID_CHARS or not set(digits) <= known:
        return None
    return UUID(digits.ljust(ID_CHARS, "0")), UUID(digits.ljust(ID_CHARS, "f"))


class NotFound(DeskError):
    """Nothing has this id, or several ids begin with it."""

    code = "not_found"


def range_of(what: str, digits: str) -> tuple[UUID, UUID]:
    """The first and last id that begin with these digits. Raises NotFound for what is none."""
    between = id_range(digits)
    if between is None:
        raise NotFound(no_id(what, digits))
    return between


def no_id(what: str, digits: str) -> str:
    """The sentence on digits that can be no id's beginning."""
    a = "an" if what[0] in "aeiou" else "a"
    return (
        f"{digits!r} is not {a} {what} id: give at least its first {ID_CHARS_MIN} characters, "
        "0-9 and a-f"
    )


def only_one(what: str, digits: str, matches: Sequence[T]) -> T:
    """The one thing whose id begins with these digits. Raises NotFound for none and several."""
    if not matches:
        raise NotFound(f"no {what} has the id {digits}")
    if len(matches) > 1:
        raise NotFound(f"more than one {what} id begins with {digits}: give more characters")
    return matches[0]


def cycle_id(requester: str, idempotency_key: str) -> UUID:
    """The id of the cycle that `requester` asked for under `idempotency_key`."""
    return uuid5(NAMESPACE, f"{requester}/{idempotency_key}")


def study_id(name: str) -> UUID:
    """The id of the study of that name, the parent of its cells."""
    return uuid5(NAMESPACE, f"study/{name}")


@lru_cache(CACHED_MAX)
def operation_id(
    cycle: UUID, pipeline: str, state: str, step: str, attempt: int, sample: int = 1
) -> UUID:
    """The id of one operation. `attempt` rises only after a wrong answer, never after a crash."""
    return uuid5(cycle, f"{pipeline}/{state}/{step}/{sample}/{attempt}")


@lru_cache(CACHED_MAX)
def pipeline_id(cycle: UUID, pipeline: str) -> UUID:
    """The id of a pipeline as a node of the operation tree."""
    return uuid5(cycle, pipeline)


def order_id(cycle: UUID, pipeline: str, leg: str) -> UUID:
    """The id of an order, also the broker's client order id. It has no attempt."""
    return uuid5(cycle, f"{pipeline}/{leg}")


def position_id(op_id: UUID, ticker: str) -> UUID:
    """The id of a position in an event that the operation has caused."""
    return uuid5(op_id, f"position/{ticker}")


def halt_id(change: UUID) -> UUID:
    """The cycle id in the event of a halt or its end, which no cycle has caused."""
    return uuid5(change, "halt")


def look_id(account: str, number: int) -> UUID:
    """The cycle id in the event of a look at a broker's books, which no cycle has caused."""
    return uuid5(NAMESPACE, f"look/{account}/{number}")


def alarm_id(order: UUID, kind: str, what: str) -> UUID:
    """The node of an alarm about an order at a broker; the same alarm has the same."""
    return uuid5(order, f"{kind}/{what}")


def capital_id(account: str, key: str) -> UUID:
    """The cycle id in the event of what an owner has brought in or taken out, posted as `key`."""
    return uuid5(NAMESPACE, f"capital/{account}/{key}")


@lru_cache(CACHED_MAX)
def event_id(op_id: UUID, seq: int) -> UUID:
    """The id of the event number `seq` of an operation."""
    return uuid5(op_id, f"event/{seq}")


def letter_id(sequence: int, at: datetime) -> UUID:
    """The id of a dead letter. Numbers begin anew after a stream was wiped, so its time counts."""
    return uuid5(NAMESPACE, f"dead_letter/{sequence}/{at.isoformat()}")


def outage_id(since: datetime) -> UUID:
    """The id of an outage of the desk, by its begin."""
    return uuid5(NAMESPACE, f"outage/{since.isoformat()}")


def call_id(op_id: UUID, index: int) -> UUID:
    """The id of a journalled call as a node of the operation tree."""
    return uuid5(op_id, f"call/{index}")
