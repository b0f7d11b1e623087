"""The dead letters: messages that nobody could read, and commands that nobody answered.

A service that cannot read a command publishes its body to `dlq` with the reason in two headers. A
command that was delivered too often leaves only an advisory of the server; its body is then fetched
from the command stream, where that still has it.
"""

import base64
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import orjson
from nats.aio.client import Client
from nats.js import JetStreamManager
from nats.js.api import RawStreamMsg
from nats.js.errors import NotFoundError

from contracts.message import MESSAGE_BYTES_MAX
from contracts.types import Failure, shortened
from contracts.upkeep import DeadLetter
from libs.bus.connection import ATTEMPT_TIMEOUT_S, connect
from libs.bus.headers import CODE_HEADER, CUT_HEADER, ERROR_HEADER, SENDER_HEADER, reason
from libs.bus.streams import COMMAND_STREAM, DEAD_LETTER_STREAM

API_TIMEOUT_S = 5.0
BODY_CHARS_MAX = 100_000
SEQUENCE_MAX = 2**64 - 1
"""As far as NATS counts."""
NEIGHBOURS_MAX = 100
"""How far behind a service's letter the server's word on the same message is looked for."""
HOLES_MAX = 1_000
"""Sequences without a message that are stepped over before the search ends."""
REASON_CHARS_MAX = 2_000
CUT_DIGITS_MAX = 12
"""Of what a letter says of itself: whoever may write letters may write anything into one."""

_ADVISORY = "$JS.EVENT.ADVISORY."
_TERMINATED = "MSG_TERMINATED"
_NUL_SHOWN = "\N{SYMBOL FOR NULL}"


@dataclass(frozen=True)
class _Entry:
    """A stored letter with the message that it is about."""

    letter: DeadLetter
    body: bytes | None
    terminated: bool


class DeadLetters:
    """The dead-letter stream. Reading takes the console's rights, `discard` the orchestrator's."""

    def __init__(self, client: Client) -> None:
        self._manager: JetStreamManager = client.jsm(timeout=API_TIMEOUT_S)

    async def count(self) -> int:
        """Count the messages in the stream, the server's advisories among them."""
        return int((await self._manager.stream_info(DEAD_LETTER_STREAM)).state.messages)

    async def newest(self, limit: int) -> Sequence[DeadLetter]:
        """At most `limit` letters, newest first, without bodies."""
        entries: list[_Entry] = []
        holes = 0
        state = (await self._manager.stream_info(DEAD_LETTER_STREAM)).state
        sequence = state.last_seq
        while sequence >= max(state.first_seq, 1) and len(entries) < limit and holes < HOLES_MAX:
            entry = await self._find(sequence)
            sequence -= 1
            if entry is None:
                holes += 1
            else:
                entries.append(entry)
        return [entry.letter for entry in _without_duplicates(entries)]

    async def last(self) -> int:
        """The number of the newest letter that there ever was since the stream was made."""
        return int((await self._manager.stream_info(DEAD_LETTER_STREAM)).state.last_seq)

    async def between(self, first: int, last: int) -> Sequence[DeadLetter]:
        """The letters numbered so, oldest first, without bodies."""
        numbers = range(first, last + 1)
        entries = [entry for n in numbers if (entry := await self._find(n)) is not None]
        return [entry.letter for entry in _without_duplicates(entries)]

    async def one(self, sequence: int) -> DeadLetter | None:
        """The letter with its body as text; None where there is none of that number."""
        entry = await self._find(sequence)
        if entry is None:
            return None
        text = None if entry.body is None else readable(entry.body)
        return entry.letter.model_copy(update={"body": text})

    async def stored(self, sequence: int) -> tuple[DeadLetter, bytes | None] | None:
        """The letter and the whole body as it was kept; None where there is no such letter."""
        entry = await self._find(sequence)
        return None if entry is None else (entry.letter, entry.body)

    async def discard(self, sequence: int) -> None:
        """Delete the letter, with the server's word on the same message, which would show in its
        place. A letter that is gone already is no error."""
        entry = await self._find(sequence)
        if entry is None:
            return
        last = (await self._manager.stream_info(DEAD_LETTER_STREAM)).state.last_seq
        for other in range(sequence + 1, min(last, sequence + NEIGHBOURS_MAX) + 1):
            word = await self._find(other)
            if word is not None and word.terminated and word.body == entry.body:
                await self._manager.delete_msg(DEAD_LETTER_STREAM, other)
        await self._manager.delete_msg(DEAD_LETTER_STREAM, sequence)

    async def _find(self, sequence: int) -> _Entry | None:
        message = await self._get(DEAD_LETTER_STREAM, sequence)
        if message is None:
            return None
        subject = message.subject or ""
        if not subject.startswith(_ADVISORY):
            headers = _headers(message)
            entry = _entry(sequence, message, message.data or b"", _failure_in_headers(headers))
            return _with_size(entry, _bytes_cut(headers.get(CUT_HEADER, "")))
        advisory = orjson.loads(message.data or b"{}")
        original = await self._get(COMMAND_STREAM, int(advisory["stream_seq"]))
        body = original.data if original is not None else None
        entry = _entry(sequence, message, body, _failure_in_advisory(advisory))
        return replace(entry, terminated=_TERMINATED in subject)

    async def _get(self, stream: str, sequence: int) -> RawStreamMsg | None:
        if sequence > SEQUENCE_MAX:
            return None  # NATS would say that the question is no JSON
        try:
            return await self._manager.get_msg(stream, sequence)
        except NotFoundError:
            return None


def written(
    body: bytes, failure: Failure, sender: str = "", size_bytes: int | None = None
) -> tuple[bytes, dict[str, str]]:
    """A message that could not be used as it is kept: body and headers. `size_bytes` is what the
    message had where `body` is its beginning only.

    The server closes the connection of whoever publishes body and headers of more than its limit,
    and a stranger's message may have that size without headers: so the body is cut.
    """
    why = reason(failure.code, failure.message)
    if sender:
        why[SENDER_HEADER] = sender
    stored = body[:MESSAGE_BYTES_MAX]
    cut = (len(body) if size_bytes is None else size_bytes) - len(stored)
    return stored, why if cut <= 0 else {**why, CUT_HEADER: str(cut)}


def readable(body: bytes) -> str:
    """A body as text that may be shown and sent on: cut, without NUL, whatever bytes it has."""
    text = body[:BODY_CHARS_MAX].decode(errors="replace").replace("\x00", _NUL_SHOWN)
    cut = len(body) - BODY_CHARS_MAX
    return text if cut <= 0 else f"{text} … {cut:,} more bytes"


def _entry(sequence: int, message: RawStreamMsg, body: bytes | None, failure: Failure) -> _Entry:
    letter = DeadLetter(
        sequence=sequence,
        subject=(message.subject or "")[:400],
        at=message.time or datetime.fromtimestamp(0, UTC),
        failure=failure,
        size_bytes=len(body or b""),
    )
    return _Entry(letter, body, terminated=False)


def _with_size(entry: _Entry, cut_bytes: int) -> _Entry:
    """The letter with the size that the message had before it was cut."""
    size = entry.letter.size_bytes + cut_bytes
    return replace(entry, letter=entry.letter.model_copy(update={"size_bytes": size}))


def _headers(message: RawStreamMsg) -> Mapping[str, str]:
    """The headers as they were sent: the library's own reading of them knows ASCII only."""
    block = base64.b64decode(message.hdrs or b"").decode(errors="replace")
    pairs = (line.partition(":") for line in block.split("\r\n")[1:] if line)
    return {name.strip(): readable(value.strip().encode()) for name, _, value in pairs}


def _bytes_cut(header: str) -> int:
    """How many bytes of a letter's body were left out; 0 where its sender says no such number."""
    is_number = header.isascii() and header.isdigit() and len(header) <= CUT_DIGITS_MAX
    return int(header) if is_number else 0


def _failure_in_headers(headers: Mapping[str, str]) -> Failure:
    sender = headers.get(SENDER_HEADER)
    message = headers.get(ERROR_HEADER, "no reason given")
    return Failure(
        code=headers.get(CODE_HEADER, "unknown")[:400],
        message=shortened(f"from {sender}: {message}" if sender else message, REASON_CHARS_MAX),
    )


def _failure_in_advisory(advisory: Mapping[str, object]) -> Failure:
    consumer, deliveries = advisory.get("consumer"), advisory.get("deliveries")
    why = advisory.get("reason") or "delivered too often without an answer"
    return Failure(
        code="undeliverable",
        message=f"{consumer}: given up after {deliveries} deliveries: {why}",
    )


def _without_duplicates(entries: Sequence[_Entry]) -> Sequence[_Entry]:
    """Without the server's word on a message that its service has written a letter about."""
    reported = {entry.body for entry in entries if entry.letter.subject.startswith("desk.")}
    return [entry for entry in entries if not (entry.terminated and entry.body in reported)]


@asynccontextmanager
async def open_dead_letters(
    url: str, identity: str, secrets_dir: Path
) -> AsyncIterator[DeadLetters]:
    """The dead letters while the block runs, read as `identity`. Raises `BusNotReachable`."""
    client = await connect(url, identity, secrets_dir, timeout_s=ATTEMPT_TIMEOUT_S)
    try:
        yield DeadLetters(client)
    finally:
        await client.close()
