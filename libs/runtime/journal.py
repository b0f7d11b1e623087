"""The journal of one operation: every call that is paid for or reads the world happens once.

A handler asks for its calls through the journal. A call that an earlier run of the same operation
has finished is answered from the record; any other is made, and recorded before its reply is used
for the next paid call. The transport is a function, so that the same journal serves a live desk
(records travel to the orchestrator), a replay (a new call is an error) and tests (a list).
"""

import asyncio
import hashlib
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson
from pydantic import BaseModel, JsonValue, ValidationError
from pydantic_core import PydanticSerializationError

from contracts.operation import (
    FAULTS,
    JOURNAL_BATCH_BYTES_MAX,
    JOURNAL_BATCH_MAX,
    CallKind,
    JournalEntry,
    Progress,
    Reserve,
)
from contracts.types import Usage, total_cost
from libs.runtime.errors import DeskError, Unavailable
from libs.runtime.wording import describe
from libs.telemetry import call_spans, tracing

NAME_CHARS_MAX = 100
Known = Mapping[str, JsonValue]
"""Answers that are on record already, by the addresses of their calls."""
RecordFunction = Callable[
    [Sequence[JournalEntry], Reserve | None, Progress | None], Awaitable[Known | None]
]


class JournalMismatch(DeskError):
    """The handler makes another call than the recorded one: its code or inputs differ."""

    code = "journal_mismatch"


class CallNotRecorded(JournalMismatch):
    """A replay asks for a call that the record does not have."""


class NotStorable(DeskError):
    """A call or a result cannot be recorded; the message says why."""

    code = "not_storable"


class OperationStopped(Exception):
    """The operation was cancelled, fenced or has ended; the handler must stop without a result."""


@dataclass(frozen=True)
class Reply:
    """A call's reply: JSON, its cost, for the check of an answer whether it passed, and whether it
    was on record already."""

    value: JsonValue
    usage: Usage = Usage()
    passed: bool | None = None
    reused: bool = False


@dataclass(frozen=True)
class Call:
    """One call to be made once. `request` is hashed whole, as JSON, which a model's fields are
    too; `new` is the part worth storing, and `texts` those that it names by hash.

    `reserve` is what a paid call may cost at most; None for a free one. `failed` gives what is put
    on record in the place of an answer, or raises the error that ends the operation.
    """

    kind: CallKind
    name: str
    request: JsonValue | BaseModel
    run: Callable[[], Awaitable[Reply]]
    new: JsonValue = None
    reserve: Reserve | None = None
    failed: Callable[[DeskError], Reply] | None = None
    texts: Sequence[str] = ()

    @property
    def address(self) -> str | None:
        """The hash of what is sent for a paid call, where that may be answered from the record."""
        return self.reserve.addresses[0] if self.reserve and self.reserve.addresses else None

    def digest(self) -> str:
        """SHA-256 of kind, name and request in canonical JSON."""
        parts = [self.kind.value, self.name, self.request]
        body = orjson.dumps(parts, default=_fields, option=orjson.OPT_SORT_KEYS)
        return hashlib.sha256(body).hexdigest()

    @property
    def stored(self) -> JsonValue:
        """The part of the request that is put on record."""
        if self.new is not None:
            return self.new
        whole = self.request
        return whole.model_dump(mode="json") if isinstance(whole, BaseModel) else whole


def _fields(model: object) -> object:
    """A model's fields by name: whoever hashes them needs no copy of all that they hold."""
    if isinstance(model, BaseModel):
        return dict(model)
    raise TypeError(f"{type(model).__name__} cannot be written as JSON")


class Journal:
    """The calls of one operation, in the order of asking. Not for use by two tasks at once.

    `check` is asked right before a paid call and raises `OperationStopped` where the lease is gone.
    `command_sha256` is of the command's bytes as they came, whatever this release reads in them.
    """

    def __init__(
        self,
        recorded: Sequence[JournalEntry],
        record: RecordFunction,
        check: Callable[[], None] = lambda: None,
        command_sha256: str = "",
    ) -> None:
        self._recorded = {entry.index: entry for entry in recorded}
        self._record = record
        self._check = check
        self.command_sha256 = command_sha256
        self._pending: list[JournalEntry] = []
        self._next = 0

    def again(self) -> None:
        """The handler begins again: it is answered from the record up to where it came."""
        self._next = 0

    async def call(self, call: Call) -> JsonValue:
        """The reply of one call."""
        return (await self.calls([call]))[0]

    async def calls(self, calls: Sequence[Call]) -> list[JsonValue]:
        """The replies of calls made in parallel, in the order given.

        Raises what a call raises (after the others have ended): of one with `failed` only
        `Unavailable`, where none of the calls was answered. `JournalMismatch` where the record
        holds another call at that place, `OperationStopped` where the work is no longer ours.
        """
        first = self._next
        self._next += len(calls)
        fresh = [
            (index, call)
            for index, call in enumerate(calls, start=first)
            if not self._on_record(index, call)
        ]
        await self._make(fresh)
        return [self._recorded[index].reply for index in range(first, first + len(calls))]

    async def pause(self, wait_s: float) -> None:
        """Wait before the next call; not where that call is on record already."""
        if self._next not in self._recorded:
            await asyncio.sleep(wait_s)

    async def progress(self, percentage: float, step: str) -> None:
        """Tell people how far the operation is; finished calls are recorded with it."""
        await self._flush(None, Progress(percentage=percentage, step=step))

    async def flush(self) -> None:
        """Record what is finished."""
        if self._pending:
            await self._flush(None, None)

    async def rest(self) -> Sequence[JournalEntry]:
        """Take the finished calls that are not on record: the last batch of them. It costs nothing
        and travels with what follows from it; earlier batches are recorded."""
        entries, self._pending = self._pending, []
        *first, last = batches(entries) or [[]]
        for batch in first:
            await self._record(batch, None, None)
        return last

    def _on_record(self, index: int, call: Call) -> bool:
        entry = self._recorded.get(index)
        if entry is None:
            return False
        if entry.request_sha256 != call.digest():
            raise JournalMismatch(
                f"call {index} on record is {entry.kind} {entry.name}; the handler now asks for "
                f"{call.kind} {call.name} with another request"
            )
        return True

    async def _make(self, fresh: Sequence[tuple[int, Call]]) -> None:
        paid = [(index, call) for index, call in fresh if call.reserve is not None]
        known: Known = {}
        if paid:
            known = await self._flush(_reserve(paid), None) or {}
        outcomes = await asyncio.gather(
            *(_timed(index, self._checked(_answered(call, known))) for index, call in fresh),
            return_exceptions=True,
        )
        entries, errors = _entries_and_errors(outcomes)
        self._recorded.update((entry.index, entry) for entry in entries)
        self._pending.extend(entries)
        if paid:
            # A paid call is on record before anything else happens: a crash must not repeat it.
            await self._flush(None, None)
        for error in errors:
            raise error

    def _checked(self, call: Call) -> Call:
        """The call; a paid one begins only while the lease holds. A process that was frozen has
        lost it without knowing, so nothing may be between this look and the call."""
        if call.reserve is None:
            return call

        async def run() -> Reply:
            self._check()
            return await call.run()

        return replace(call, run=run)

    async def _flush(self, reserve: Reserve | None, progress: Progress | None) -> Known | None:
        return await self._record(await self.rest(), reserve, progress)


class RecordedJournal(Journal):
    """A journal of the past: it answers what is on record and makes no call."""

    def __init__(self, recorded: Sequence[JournalEntry]) -> None:
        super().__init__(recorded, _record_nothing)

    async def _make(self, fresh: Sequence[tuple[int, Call]]) -> None:
        for index, call in fresh:
            raise CallNotRecorded(f"call {index} ({call.kind} {call.name}) is not on record")


async def _record_nothing(*_: object) -> None:
    """Progress of a replay is told to nobody."""


def batches(entries: Sequence[JournalEntry]) -> list[list[JournalEntry]]:
    """The entries, in order, in lists that fit into one message each."""
    lists: list[list[JournalEntry]] = []
    size_bytes = 0
    for entry in entries:
        entry_bytes = _size_bytes(entry)
        size_bytes += entry_bytes
        full = (
            size_bytes > JOURNAL_BATCH_BYTES_MAX or len(lists[-1]) >= JOURNAL_BATCH_MAX
            if lists
            else True
        )
        if full:
            lists.append([])
            size_bytes = entry_bytes
        lists[-1].append(entry)
    return lists


def _size_bytes(entry: JournalEntry) -> int:
    try:
        return len(entry.model_dump_json())
    except PydanticSerializationError:
        return JOURNAL_BATCH_BYTES_MAX  # a batch of its own, which is refused when it is sent


def _with_room(entry: JournalEntry) -> JournalEntry:
    """The entry without its longest texts, where they do not fit into one message with it."""
    if not entry.texts:
        return entry
    sizes = {text: len(orjson.dumps(text)) for text in entry.texts}
    over = _size_bytes(entry) - JOURNAL_BATCH_BYTES_MAX
    for text in sorted(sizes, key=lambda text: -sizes[text]):
        if over <= 0:
            break
        over -= sizes.pop(text)
    return entry.model_copy(update={"texts": tuple(sizes)})


def _answered(call: Call, known: Known) -> Call:
    """The call; where its answer is on record, one that gives that and costs nothing."""
    address = call.address
    if address is None or address not in known:
        return call

    async def again() -> Reply:
        return Reply(known[address], reused=True)

    return replace(call, run=again)


@dataclass(frozen=True)
class _Failed:
    """A call without an answer, and what is put on record in its place."""

    error: DeskError
    entry: JournalEntry


def _entries_and_errors(
    outcomes: Sequence[JournalEntry | _Failed | BaseException],
) -> tuple[list[JournalEntry], list[BaseException]]:
    """The entries and the errors of calls made together. Where nothing was answered
    and something cannot be reached, it is asked again: nothing is put in the place of answers."""
    entries = [outcome for outcome in outcomes if isinstance(outcome, JournalEntry)]
    errors = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
    failed = [outcome for outcome in outcomes if isinstance(outcome, _Failed)]
    errors += [failure.error for failure in failed if isinstance(failure.error, NotStorable)]
    away = [failure.error for failure in failed if isinstance(failure.error, Unavailable)]
    if away and not entries:
        return entries, [*errors, *away]
    return entries + [failure.entry for failure in failed], errors


def without_contents(entry: JournalEntry, held: Reserve | None, why: str) -> JournalEntry:
    """A call that cannot be put on record as it is: when, which and how much, and why not what.

    It counts for what it used, and for no more than was held back for it.
    """
    used, held = entry.usage, held or Reserve()
    costs_more = held.cost_usd is not None and (used.cost_usd or 0) > held.cost_usd
    if used.tokens > held.tokens or costs_more:
        used = Usage(unsorted_tokens=held.tokens, cost_usd=held.cost_usd)
    return JournalEntry(
        index=entry.index,
        kind=entry.kind,
        name=entry.name[:NAME_CHARS_MAX],
        request_sha256=entry.request_sha256,
        request={},
        reply={FAULTS.get(entry.kind, "error"): {"code": NotStorable.code, "message": why}},
        usage=used,
        duration_ms=entry.duration_ms,
        passed=entry.passed,
    )


async def _timed(index: int, call: Call) -> JournalEntry | _Failed:
    started = time.perf_counter()
    error: DeskError | None = None
    with tracing.span(*call_spans.described(call.kind, call.name)) as span:
        try:
            reply = await call.run()
        except DeskError as failure:
            if call.failed is None:
                raise
            reply, error = call.failed(failure), failure
        call_spans.tell(span, call.kind, reply.value, reply.usage)
    fields: dict[str, Any] = {
        "index": index,
        "kind": call.kind,
        "name": call.name,
        "request_sha256": call.digest(),
        "request": call.stored,
        "reply": reply.value,
        "usage": reply.usage,
        "passed": reply.passed,
        "address": call.address,
        "reused": reply.reused,
        "duration_ms": round((time.perf_counter() - started) * 1000, 3),
        "texts": tuple(call.texts),
    }
    try:
        entry = _with_room(JournalEntry(**fields))
    except ValidationError as invalid:
        error = NotStorable(f"{call.kind} {call.name}: {describe(invalid, JournalEntry)}")
        entry = without_contents(JournalEntry.model_construct(**fields), call.reserve, str(error))
    return entry if error is None else _Failed(error, entry)


def _reserve(paid: Sequence[tuple[int, Call]]) -> Reserve:
    """The reserve of these calls together; the first of them gives it its name."""
    reserves = [call.reserve for _, call in paid if call.reserve is not None]
    index, first = paid[0]
    return Reserve(
        tokens=sum(reserve.tokens for reserve in reserves),
        cost_usd=total_cost(reserve.cost_usd for reserve in reserves),
        name=first.name,
        index=index,
        provider=reserves[0].provider,
        calls=len(reserves),
        addresses=tuple(address for reserve in reserves for address in reserve.addresses),
    )
