"""A crowd before the console: does its owner still reach the kill switch and the pages?

200 viewers with the desk's token load pages one after the other; 1,000 sockets show the token once
and stay open; 100 strangers send requests for the login page, one behind the other on the same
connection, and read nothing. The crowd is a process of its own. Meanwhile the owner halts, asks for
the halts, and loads pages. Each question about halts must be answered within a second, and the
95th percentile of the pages must be no more than 0.3 s above what it is without the crowd.
"""

import argparse
import asyncio
import itertools
import statistics
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import httpx2

from libs.runtime.ports import choose_port
from tests.chaos.started_desk import deskbus, started_desk

TOKEN = "a-token-of-some-length"
PAGES = ("/", "/cycles", "/portfolio", "/bus", "/settings", "/schedule")
HALTS = "/api/v1/halts"
ROUNDS = 60
VIEWERS, SOCKETS, STRANGERS = 200, 1_000, 100
HALTS_S_MAX = 1.0
PAGES_S_MORE_MAX = 0.3
AGAIN_S = 5.0
"""A socket that was closed comes back so much later."""
GATHERED_S = 5.0
LOGIN = b"GET /login HTTP/1.1\r\nHost: localhost\r\n\r\n" * 100
Took = Mapping[str, Sequence[float]]


def _get(path: str) -> bytes:
    head = (f"GET {path} HTTP/1.1", "Host: localhost", f"Authorization: Bearer {TOKEN}", "", "")
    return "\r\n".join(head).encode()


async def _viewer(url: str, number: int, seen: Counter[str]) -> None:
    reader, writer = await _opened(url)
    for turn in itertools.count(number):
        writer.write(_get(PAGES[turn % len(PAGES)]))
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        _, _, rest = head.partition(b"content-length: ")
        await reader.readexactly(int(rest.partition(b"\r\n")[0]))
        seen[head.split(b" ", 2)[1].decode()] += 1


async def _socket(url: str) -> None:
    reader, writer = await _opened(url)
    writer.write(_get("/api/v1/budget"))
    while await reader.read(65_536):
        pass


async def _stranger(url: str) -> None:
    _, writer = await _opened(url)
    writer.transport.pause_reading()  # type: ignore[attr-defined]
    while True:
        writer.write(LOGIN)
        await writer.drain()


async def _opened(url: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    address = urlsplit(url)
    return await asyncio.open_connection(address.hostname, address.port)


async def crowd(url: str) -> None:
    """All of it, until the process is ended."""
    seen: Counter[str] = Counter()

    async def again(kind: str, number: int) -> None:
        while True:
            with suppress(OSError, asyncio.IncompleteReadError):
                if kind == "viewer":
                    await _viewer(url, number, seen)
                await (_socket(url) if kind == "socket" else _stranger(url))
            await asyncio.sleep(0 if kind == "viewer" else AGAIN_S)

    numbers = {"viewer": VIEWERS, "socket": SOCKETS, "stranger": STRANGERS}
    await asyncio.gather(*(again(kind, n) for kind, most in numbers.items() for n in range(most)))


async def owner(url: str) -> Took:
    """What the owner's requests took, in seconds. Raises httpx2.HTTPStatusError on any refusal."""
    took: dict[str, list[float]] = defaultdict(list)
    login = {"Authorization": f"Bearer {TOKEN}"}
    async with httpx2.AsyncClient(base_url=url, timeout=60, headers=login) as http:
        for turn in range(ROUNDS):
            page = PAGES[turn % len(PAGES)]
            for what, request in (
                ("GET halts", http.build_request("GET", HALTS)),
                ("POST halts", http.build_request("POST", HALTS, json={"reason": "a crowd"})),
                ("page", http.build_request("GET", page)),
            ):
                began = time.monotonic()
                (await http.send(request)).raise_for_status()
                took[what].append(time.monotonic() - began)
    return took


async def measure(url: str) -> bool:
    """The owner alone, then in the crowd; True where the limits were kept."""
    alone = await owner(url)
    command = [sys.executable, "-m", "tests.chaos.crowd", "--before", url]
    child = await asyncio.create_subprocess_exec(*command)
    try:
        await asyncio.sleep(GATHERED_S)
        crowded = await owner(url)
    finally:
        child.kill()
        await child.wait()
    for name, took in (("alone", alone), ("in the crowd", crowded)):
        for what, seconds in took.items():
            print(  # noqa: T201
                f"{name:<13} {what:<10}  median {statistics.median(seconds):.3f}  "
                f"p95 {_p95(seconds):.3f}  max {max(seconds):.3f} s"
            )
    halts = max(*crowded["GET halts"], *crowded["POST halts"])
    more = _p95(crowded["page"]) - _p95(alone["page"])
    return halts <= HALTS_S_MAX and more <= PAGES_S_MORE_MAX


def _p95(seconds: Sequence[float]) -> float:
    return statistics.quantiles(seconds, n=20)[-1]


async def attack(folder: Path) -> bool:
    """A desk with one cycle, and the crowd before it."""
    port = choose_port(None, set())
    given = {"DESKBUS_HTTP_TOKEN": TOKEN, "DESKBUS_HTTP_PORT": str(port)}
    async with started_desk(folder, environment=given):
        await deskbus("cycle", "request", "--as-of", "2012-06-29", "--wait")
        return await measure(f"http://127.0.0.1:{port}")


def main() -> None:
    """Exit 1 where a limit was not kept."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", metavar="URL", help="be the crowd")
    given = parser.parse_args()
    if given.before:
        asyncio.run(crowd(given.before))
    with tempfile.TemporaryDirectory() as folder:
        sys.exit(not asyncio.run(attack(Path(folder))))


if __name__ == "__main__":
    main()
