"""A fake model that is paid by the call: a process of its own, so that its count survives kills.

One request a line, one reply a line, both JSON. Every beginning, end and hang-up is appended to a
file, which tests count; `asked_at` is when the caller began to ask, which a frozen caller may have
done long before the model hears of it.

    python tests/fakes/paid_model.py HOST:PORT LOG_FILE
"""

import asyncio
import json
import os
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID


class ModelSays(Exception):
    """The model refuses: the call was made, and has no reply."""


async def ask_model(
    address: str, op_id: UUID, index: int, *, delay_s: float, fails: bool = False
) -> str:
    """One paid call to the model at `address`; raises `ModelSays` where it is to fail."""
    asked_at = time.time()
    reader, writer = await asyncio.open_connection(*address.split(":"))
    try:
        asked = {
            "op": str(op_id),
            "index": index,
            "pid": os.getpid(),
            "asked_at": asked_at,
            "delay_s": delay_s,
            "fails": fails,
        }
        writer.write(json.dumps(asked).encode() + b"\n")
        reply = json.loads(await reader.readline())
    finally:
        writer.close()
    if "error" in reply:
        raise ModelSays(reply["error"])
    return str(reply["text"])


@dataclass(frozen=True)
class Seen:
    """One line of the model's log; `what` is begin, end or left (the caller hung up)."""

    at: float
    what: str
    op_id: UUID
    index: int
    pid: int
    asked_at: float


class Log:
    """The model's log, read again at each question."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def lines(self) -> list[Seen]:
        """All that happened so far."""
        if not self._path.exists():
            return []
        whole = [line for line in self._path.read_text().splitlines() if line.endswith("}")]
        return [_seen(json.loads(line)) for line in whole]

    async def saw(self, what: str, op_id: UUID, index: int) -> Seen:
        """Wait until the model saw this; the caller bounds the wait."""
        while True:
            for seen in self.lines():
                if (seen.what, seen.op_id, seen.index) == (what, op_id, index):
                    return seen
            await asyncio.sleep(0.02)


def _seen(line: Mapping[str, Any]) -> Seen:
    return Seen(
        line["at"], line["what"], UUID(line["op"]), line["index"], line["pid"], line["asked_at"]
    )


async def serve(address: str, path: Path) -> None:
    """Answer until killed."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def note(what: str, asked: Mapping[str, Any]) -> None:
        line = {key: asked[key] for key in ("op", "index", "pid", "asked_at")}
        # One write a line: lines of several connections never mix.
        os.write(descriptor, json.dumps({"at": time.time(), "what": what, **line}).encode() + b"\n")

    async def on_connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line = await reader.readline()
        if line.endswith(b"\n"):
            asked = json.loads(line)
            note("begin", asked)
            gone = asyncio.ensure_future(reader.read())
            await asyncio.wait({gone}, timeout=asked["delay_s"])
            note("left" if gone.done() else "end", asked)
            gone.cancel()
            key = f"{asked['op']}/{asked['index']}"
            reply = {"error": "no"} if asked["fails"] else {"text": f"reply to {key}"}
            writer.write(json.dumps(reply).encode() + b"\n")
        writer.close()

    server = await asyncio.start_server(on_connection, *address.split(":"), backlog=1024)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], Path(sys.argv[2])))
