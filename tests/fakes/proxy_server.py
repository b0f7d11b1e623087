"""A proxy over loopback that speaks HTTP and SOCKS5, and answers in the place of every server."""

import asyncio
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

BODY = b'{"through": "the proxy"}'
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(
    BODY
)
WANTS_LOGIN = b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n"
SOCKS5, NO_LOGIN, HOST_NAME, TAKEN = 5, 0, 3, 0


@dataclass
class ProxyServer:
    """Where it listens, and the requests and tunnels that it was asked for, oldest first."""

    port: int = 0
    login: bool = False
    heard: list[str] = field(default_factory=list)

    @property
    def address(self) -> str:
        """The host and port."""
        return f"127.0.0.1:{self.port}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one connection."""
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            first = await reader.readexactly(1)
            if first == bytes([SOCKS5]):
                await self._socks(reader, writer)
                first = b""
            head = (first + await reader.readuntil(b"\r\n\r\n")).decode()
            self.heard.append(head.split("\r\n", 1)[0])
            refused = self.login and "proxy-authorization" not in head.lower()
            writer.write(WANTS_LOGIN if refused else ANSWER + BODY)
            await writer.drain()
        writer.close()

    async def _socks(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly((await reader.readexactly(1))[0])
        writer.write(bytes([SOCKS5, NO_LOGIN]))
        kind = (await reader.readexactly(4))[3]
        length = (await reader.readexactly(1))[0] if kind == HOST_NAME else 4
        host = await reader.readexactly(length)
        (port,) = struct.unpack("!H", await reader.readexactly(2))
        name = host.decode() if kind == HOST_NAME else ".".join(map(str, host))
        self.heard.append(f"SOCKS {name}:{port}")
        writer.write(bytes([SOCKS5, TAKEN, 0, 1, 0, 0, 0, 0, 0, 0]))


@asynccontextmanager
async def proxy_server(*, login: bool = False) -> AsyncIterator[ProxyServer]:
    """A proxy while the block runs; with `login` it refuses whoever shows none."""
    proxy = ProxyServer(login=login)
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        server.close()
