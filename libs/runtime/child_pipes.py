"""The pipes of a child process: what it is sent, and the end of what it says."""

import asyncio
import contextlib

PIECE_BYTES = 65_536


async def write_all(pipe: asyncio.StreamWriter, body: bytes) -> None:
    """Write the body and close the pipe. A child need not read what it is sent."""
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        pipe.write(body)
        await pipe.drain()
    pipe.close()


async def last_bytes(pipe: asyncio.StreamReader, count_max: int) -> bytes:
    """The last bytes of all that comes, once the pipe is at its end."""
    kept = b""
    while piece := await pipe.read(PIECE_BYTES):
        kept = (kept + piece)[-count_max:]
    return kept
