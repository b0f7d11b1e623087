"""Texts that a model was sent with a call, beside those of the call before: read and compared."""

from collections.abc import Sequence
from dataclasses import dataclass

from contracts.operation import (
    CallKind,
    ChangedLine,
    Difference,
    JournalEntry,
    Sent,
    SentQuery,
    SentText,
)
from libs.postgres.pool import Record
from libs.report.calls.chat import Chat, chat_of, hashes_in, is_whole, whole_call
from libs.report.calls.sent import difference, sent_texts
from libs.runtime import ids
from libs.runtime.ids import NotFound
from services.console.sizes import ANSWER_BYTES_MAX, fitting
from services.console.store import DECISIONS_BEFORE_MAX, Store, sql

ENTRIES_MAX = 200
"""So many entries before a model's call are read for what it had read."""
ANSWERS_MAX = 80
"""So many entries after it are read for what its tools gave."""
HEAD_BYTES_MAX = 20_000
"""What a page of texts may have beside texts and lines: the names of the parts."""


@dataclass(frozen=True)
class ModelCall:
    """A model's call: its chat, and the difference to the one before, None for the first."""

    chat: Chat
    difference: Difference | None


async def call_of(store: Store, row: Record, index: int) -> ModelCall | None:
    """The model's call at `index` of an operation; None where there is none.

    The call before it is the operation's own; of its first call, the first one of the same step in
    the account's decision before.
    """
    place = row["started_on"], row["op_id"]
    first = max(index - ENTRIES_MAX, 0)
    entries = _entries(await store.rows(sql.calls_between, *place, first, index + ANSWERS_MAX))
    if not any(e.index == index and e.kind is CallKind.MODEL for e in entries):
        return None
    chat = await _chat(store, row, entries, index)
    at = whole_call(entries, index).index
    earlier = [e.index for e in entries if is_whole(e) and e.index < at]
    if earlier:
        before = await _chat(store, row, entries, earlier[-1])
        return ModelCall(chat, difference(before, chat, row["op_id"], earlier[-1]))
    other = await store.row(sql.same_step_before, row["op_id"], DECISIONS_BEFORE_MAX)
    if other is None:
        return ModelCall(chat, None)
    place = other["started_on"], other["op_id"]
    read = _entries(await store.rows(sql.calls_between, *place, 0, ENTRIES_MAX))
    start = next((e.index for e in read if is_whole(e)), None)
    if start is None:
        return ModelCall(chat, None)
    before = await _chat(store, other, read, start)
    return ModelCall(chat, difference(before, chat, other["op_id"], start))


def _entries(rows: Sequence[Record]) -> Sequence[JournalEntry]:
    return [JournalEntry.model_validate_json(row["entry"]) for row in rows]


async def _chat(store: Store, row: Record, entries: Sequence[JournalEntry], index: int) -> Chat:
    named = hashes_in(entry for entry in entries if entry.index <= index)
    return chat_of(entries, index, await store.prompt_texts(row["started_on"], named))


async def page(query: SentQuery, *, store: Store) -> Sent:
    """One call's texts, whole and never cut, in as many pages as they need."""
    try:
        between = ids.range_of("operation", query.op_id)
        matches = await store.operations_between(*between)
        row = await store.operation(ids.only_one("operation", query.op_id, matches))
    except NotFound as error:
        return Sent(found=False, message=error.message)
    call = await call_of(store, row, query.index) if row is not None else None
    if call is None:
        message = f"call {query.index} of operation {query.op_id} asked no model"
        return Sent(found=False, message=message)
    texts = sent_texts(call.chat)
    lines = call.difference.lines if call.difference is not None else ()
    both: list[SentText | ChangedLine] = [*texts]
    both += lines
    wanted = both[query.first :]
    # One text is always sent: it came in a message, with its call.
    kept = fitting(wanted, ANSWER_BYTES_MAX - HEAD_BYTES_MAX) or wanted[:1]
    here = tuple(item for item in kept if isinstance(item, ChangedLine))
    return Sent(
        texts=tuple(item for item in kept if isinstance(item, SentText)),
        more=len(kept) < len(wanted),
        difference=call.difference and call.difference.model_copy(update={"lines": here}),
    )
