"""Connections of one key that do nothing: what a stolen key can hold of a NATS server."""

import asyncio
import base64
import json
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import nkeys

AT_ONCE = 64
PONG = b"PONG\r\n"


@asynccontextmanager
async def held_connections(url: str, seed: Path, tries: int) -> AsyncIterator[Counter[str]]:
    """Try `tries` connections with the key in `seed` and hold those that NATS accepts while the
    block runs. Yields the server's answers: `PONG` for a connection that is held."""
    key = nkeys.from_seed(bytearray(seed.read_text().strip().encode()))  # noqa: ASYNC240
    held: list[asyncio.StreamWriter] = []
    answering: list[asyncio.Task[None]] = []

    async def one() -> str:
        address = urlsplit(url)
        reader, writer = await asyncio.open_connection(address.hostname, address.port)
        nonce = json.loads((await reader.readline()).removeprefix(b"INFO "))["nonce"]
        signature = base64.urlsafe_b64encode(key.sign(nonce.encode())).rstrip(b"=").decode()
        login = {"nkey": key.public_key.decode(), "sig": signature, "verbose": False}
        writer.write(b"CONNECT " + json.dumps({**login, "protocol": 1}).encode() + b"\r\nPING\r\n")
        line = await reader.readline()
        if line != PONG:
            writer.close()
            return line.decode().strip()
        held.append(writer)
        answering.append(asyncio.create_task(_pongs(reader, writer)))
        return "PONG"

    answers: Counter[str] = Counter()
    try:
        for first in range(0, tries, AT_ONCE):
            some = range(min(AT_ONCE, tries - first))
            answers.update(await asyncio.gather(*(one() for _ in some)))
        yield answers
    finally:
        for task in answering:
            task.cancel()
        for writer in held:
            writer.close()


async def _pongs(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while line := await reader.readline():
        if line.startswith(b"PING"):
            writer.write(PONG)
