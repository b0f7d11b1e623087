"""What a flush promises: the server has had all that was published before it."""

import asyncio
from pathlib import Path

from libs.bus.connection import connect, flush

UP_TIMEOUT_S = 10.0


async def test_a_flush_does_not_overtake_what_was_published(tmp_path: Path) -> None:
    """By itself nats-py asks first and sends afterwards."""
    heard: list[bytes] = []

    async def server(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b'INFO {"server_id":"x","version":"2.15.0","max_payload":1048576}\r\n')
        while line := await reader.readline():
            heard.extend(line.split()[:1])
            if line == b"PING\r\n":
                writer.write(b"PONG\r\n")
        writer.close()

    listening = await asyncio.start_server(server, "127.0.0.1", 0)
    async with listening:
        port = listening.sockets[0].getsockname()[1]
        client = await connect(f"nats://127.0.0.1:{port}", "user", tmp_path)
        heard.clear()
        for _ in range(3):
            await client.publish("a", b"")
        await flush(client, UP_TIMEOUT_S)
        assert heard == [b"PUB", b"PUB", b"PUB", b"PING"]
        await client.close()
