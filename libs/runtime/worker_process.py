"""CPU work in a process of its own: told of while it runs, and ended at once.

The parent writes one request to the child's stdin and closes it. The child answers in lines, each a
letter and JSON: `P` progress, then one `R` result, or `E` why there is none. It dies with its
parent (`exec_child.py`).
"""

import asyncio
import contextlib
import os
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, BinaryIO, TypeVar

import orjson

from libs.runtime.errors import DeskError
from libs.runtime.guarded import guarded_argv

ANSWER_BYTES_MAX = 64_000_000
WORDS_CHARS_MAX = 1_000
"""Of what a child that broke down said last."""
NICENESS = 10
"""How much computing gives way to other processes, on systems that know it."""

Pipe = TypeVar("Pipe")
OnProgress = Callable[[float, str], Awaitable[None]]
"""Called with the percentage that is done, 0 to 100, and what is being done."""


class CannotCompute(DeskError):
    """The computation is impossible as requested; `field` names what to change."""

    code = "cannot_compute"

    def __init__(self, message: str, field: str = "") -> None:
        super().__init__(message)
        self.field = field


class ComputingBroke(Exception):
    """The process ended without an answer: a fault of the program or of the machine."""


async def computed(module: str, request: bytes, on_progress: OnProgress) -> Any:
    """Run `python -m module` and return its answer to the request, as JSON.

    Raises CannotCompute with the child's reason, and ComputingBroke where it gave none. However
    the call ends, the process has ended before.
    """
    process = await asyncio.create_subprocess_exec(
        *guarded_argv([sys.executable, "-m", module]),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        limit=ANSWER_BYTES_MAX,
    )
    try:
        asking = asyncio.ensure_future(_ask(process.stdin, request))
        words = asyncio.ensure_future(_last_words(process.stderr))
        try:
            return await _answer(process, on_progress, module, words)
        finally:
            asking.cancel()
            words.cancel()
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def _ask(stdin: asyncio.StreamWriter | None, request: bytes) -> None:
    # A child that has ended already says why by other means.
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        pipe = _opened(stdin)
        pipe.write(request)
        await pipe.drain()
        pipe.close()


async def _last_words(stderr: asyncio.StreamReader | None) -> str:
    tail = b""
    while more := await _opened(stderr).read(65_536):
        tail = (tail + more)[-WORDS_CHARS_MAX:]
    return tail.decode(errors="replace")


async def _answer(
    process: asyncio.subprocess.Process,
    on_progress: OnProgress,
    module: str,
    words: "asyncio.Future[str]",
) -> Any:
    async for line in _opened(process.stdout):
        message = orjson.loads(line[1:])
        match line[:1]:
            case b"P":
                await on_progress(message["percentage"], message["step"])
            case b"E":
                raise CannotCompute(message["message"], message["field"])
            case _:
                return message
    raise ComputingBroke(f"{module} ended with {await process.wait()}: {await words}")


def _opened(pipe: Pipe | None) -> Pipe:
    if pipe is None:
        raise RuntimeError("the process was started without this pipe")
    return pipe


# --- the child's side -----------------------------------------------------------------------------


def tell(out: BinaryIO, kind: str, content: object) -> None:
    """One line to the parent: `P`, `R` or `E` and JSON."""
    out.write(kind.encode() + orjson.dumps(content) + b"\n")
    out.flush()


class ProgressLines:
    """Progress from the child: as often as people can use it, not as often as it is known."""

    def __init__(self, out: BinaryIO, clock: Callable[[], float], every_s: float = 0.25) -> None:
        self._out = out
        self._clock = clock
        self._every_s = every_s
        self._last = (clock() - every_s, "")

    def __call__(self, part: float, step: str) -> None:
        """`part` of the work, 0 to 1, is done; `step` is what goes on."""
        now = self._clock()
        if step != self._last[1] or now - self._last[0] >= self._every_s:
            self._last = (now, step)
            tell(self._out, "P", {"percentage": round(100 * part, 1), "step": step})


def request_of(request: Mapping[str, Any], body: bytes) -> bytes:
    """A request: what is asked, as JSON, and a body of any bytes."""
    return orjson.dumps(request) + b"\n" + body


def request_in(stdin: BinaryIO) -> tuple[dict[str, Any], bytes]:
    """The request as the child reads it, to its end. From here on the child gives way to services:
    it would take a core for minutes, while they have to hear of a cancel or send an order.
    """
    if hasattr(os, "nice"):
        os.nice(NICENESS)
    request: dict[str, Any] = orjson.loads(stdin.readline())
    return request, stdin.read()
