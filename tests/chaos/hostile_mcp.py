"""A client with the token that attacks `deskbus mcp --http`, while the desk trades.

    python -m tests.chaos.hostile_mcp [--keep]

Each attack runs against a real server beside a real desk. Prints a row an attack: how the requests
ended, the largest memory of the server above rest, how long an honest call takes meanwhile, and how
long the kill switch takes. Exits 1 where a promise is broken: an answer that is a fault, memory
above MEMORY_MB_MAX, an honest call or a halt without an answer, a traceback in the log.
"""

import argparse
import asyncio
import json
import os
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import httpx2
import psutil

from contracts.halt import HaltTrading, ResumeTrading
from contracts.subjects.halts import HALT, RESUME
from libs.runtime.ports import LOOPBACK
from libs.runtime.settings import Settings
from tests.chaos.load import User, user_of
from tests.chaos.outages import REPOSITORY, desk_on, own_servers
from tests.open_folder import open_folder

CONNECTIONS = 400
"""Fewer than the server takes at all: one client cannot be told from another by its token."""
CALLERS = 100
FLOOD_S = 8.0
SAMPLE_S = 0.1
MEMORY_MB_MAX = 300.0
HONEST_S_MAX = 30.0
BATCH = 400
PIPELINED = 300
FAULTS = frozenset({500, 502, 504})
VERSION = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": VERSION,
    "io.modelcontextprotocol/clientInfo": {"name": "hostile", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
FLOODING: Sequence[tuple[str, dict[str, object]]] = (
    ("list_cycles", {"limit": 50}),
    ("list_operations", {"limit": 50, "calls": True}),
    ("list_decisions", {"limit": 50}),
    ("get_portfolio", {}),
    ("check_exit_signals", {"ticker": "AAPL", "output": "file"}),
    ("get_stock_history", {"ticker": "AAPL", "days": 400}),
)


@dataclass
class Target:
    """The server under attack."""

    port: int
    token: str
    process: psutil.Process
    log: Path
    user: User

    @property
    def url(self) -> str:
        """Where it takes requests."""
        return f"http://{LOOPBACK}:{self.port}/mcp"

    @property
    def headers(self) -> dict[str, str]:
        """What an honest client sends with a request."""
        return {
            "Authorization": f"Bearer {self.token}",
            "Accept": "application/json, text/event-stream",
            "Content-Type": "application/json",
        }

    def head(self, method: str, more: str = "") -> bytes:
        """The head of a request, as bytes on a connection."""
        return (
            f"{method} /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {self.token}\r\n"
            f"Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
            f"{more}\r\n"
        ).encode()

    @property
    def memory_mb(self) -> float:
        """What it holds now."""
        return self.process.memory_info().rss / 1e6


Attack = Callable[[Target], Awaitable[Counter[str]]]


@dataclass
class Outcome:
    """What came of one attack."""

    name: str
    answers: Counter[str] = field(default_factory=Counter)
    memory_mb: float = 0.0
    honest_s: list[float] = field(default_factory=list)
    halt_s: list[float] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)

    def row(self) -> str:
        """It as a row of the table."""
        ends = ", ".join(f"{count} x {what}" for what, count in self.answers.most_common(4))
        slowest = (max(self.honest_s, default=0.0), max(self.halt_s, default=0.0))
        return f"| {self.name} | {ends} | {self.memory_mb:.0f} | " + " | ".join(
            f"{each:.2f}" for each in slowest
        )


def call(name: str, arguments: object, number: int = 1) -> dict[str, object]:
    """A tool call as JSON-RPC."""
    parameters = {"name": name, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": parameters}


def nested(opens: str, closes: str, depth: int) -> bytes:
    """A tool call with so deep an argument, in the protocol's newest form."""
    head = json.dumps(call("list_cycles", {}) | {"params": {"name": "list_cycles", "_meta": META}})
    return (head[:-2] + ', "arguments": ' + opens * depth + "1" + closes * depth + "}}").encode()


def client() -> httpx2.AsyncClient:
    """A client that keeps none waiting; without TLS, whose set-up would take most of the time."""
    limits = httpx2.Limits(max_connections=CALLERS)
    return httpx2.AsyncClient(timeout=HONEST_S_MAX * 3, limits=limits, verify=False)


# --- attacks --------------------------------------------------------------------------------------


async def strangers(target: Target) -> Counter[str]:
    """No token, wrong ones, foreign Host and Origin, other paths and methods."""
    said: Counter[str] = Counter()
    body = json.dumps(call("list_cycles", {}))
    own = target.headers
    async with client() as web:
        for headers in (
            {name: value for name, value in own.items() if name != "Authorization"},
            own | {"Authorization": "Bearer wrong"},
            own | {"Authorization": f"Basic {target.token}"},
            own | {"Host": "evil.example"},
            own | {"Host": f"evil.example:{target.port}"},
            own | {"Origin": "http://evil.example"},
            own | {"Origin": "null"},
            own | {"Content-Type": "text/plain"},
        ):
            answer = await web.post(target.url, content=body, headers=headers)
            said[f"{answer.status_code}"] += 1
        for method in ("GET", "DELETE", "PUT", "OPTIONS", "TRACE"):
            session = {"Mcp-Session-Id": "0" * 32, "Last-Event-ID": "1"}
            answer = await web.request(method, target.url, headers=own | session)
            said[f"{answer.status_code}"] += 1
    return said


def malformed() -> Sequence[bytes]:
    """Bodies that are no call, or one with arguments that no tool takes."""
    texts = ("\0", "../../etc/passwd", "A" * 50_000, "\u202e<script>", "';--", "9" * 4000)
    tools = (("get_stock_price", "ticker"), ("get_portfolio", "account"), ("get_cycle", "cycle_id"))
    wrong: Sequence[object] = (None, [], {}, 1e308, -1, True, ["x"] * 5000)
    calls = [
        call(name, {argument: value}) for name, argument in tools for value in (*texts, *wrong)
    ]
    many = call("list_cycles", {f"k{number}": 1 for number in range(3000)})
    unpaired = json.dumps(call("get_stock_price", {"ticker": "SURROGATE"})).replace(
        "SURROGATE", "\\ud800"
    )
    return [
        *(json.dumps(each).encode() for each in (*calls, many, call("\0", {}), call("x", []))),
        unpaired.encode(),
        json.dumps([call("list_cycles", {}, number) for number in range(BATCH)]).encode(),
        *(nested(*of, depth) for of in (('{"a":', "}"), ("[", "]")) for depth in (190, 900, 5000)),
        b"",
        b"null",
        b"1",
        b"{}",
        b"\xff\xfe",
        b"{" * 10_000,
        b"[" * 60_000,
        b'"' * 60_000,
        b'{"jsonrpc":"1.0","id":1,"method":"ping"}',
        b'{"jsonrpc":"2.0","id":null,"method":"ping"}',
        b'{"jsonrpc":"2.0","id":1,"method":5}',
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call"}',
        b'{"jsonrpc":"2.0","id":1,"result":{}}',
        b"x" * 5_000_000,
    ]


async def junk(target: Target) -> Counter[str]:
    """Wrong JSON, wrong JSON-RPC, batches, depth, wrong types; in the old and the new protocol."""
    said: Counter[str] = Counter()
    newest = {"MCP-Protocol-Version": VERSION, "Mcp-Method": "tools/call", "Mcp-Name": "x"}
    async with client() as web:
        for body in malformed():
            for more in ({}, newest):
                answer = await web.post(target.url, content=body, headers=target.headers | more)
                said[f"{answer.status_code}"] += 1
    return said


async def streams(target: Target) -> Counter[str]:
    """Streams that are opened and held, and sessions that are never closed."""
    return await _held(target, target.head("GET"), 3.0)


async def half_bodies(target: Target) -> Counter[str]:
    """Bodies of the largest size that never end."""
    head = target.head("POST", "Content-Length: 500000\r\n")
    allowed = target.head("POST", "Content-Length: 65000\r\n") + b" " * 64_000
    said = await _held(target, head + b" " * 400_000, 3.0)
    return said + await _held(target, allowed, 12.0)


async def slow_heads(target: Target) -> Counter[str]:
    """Heads that never end, from somebody without the token."""
    return await _held(target, b"POST /mcp HTTP/1.1\r\nHost: local", 12.0)


async def pipelined(target: Target) -> Counter[str]:
    """Many calls on one connection, none of whose answers is read."""
    body = json.dumps(call("list_cycles", {})).encode()
    one = target.head("POST", f"Content-Length: {len(body)}\r\n") + body
    return await _held(target, one * PIPELINED, 5.0, connections=CONNECTIONS // 8)


async def _held(
    target: Target, data: bytes, lasts_s: float, connections: int = CONNECTIONS
) -> Counter[str]:
    """Open connections, send the same over each, hold them; how each stands then."""
    said: Counter[str] = Counter()
    opened = []
    try:
        for _ in range(connections):
            reader, writer = await asyncio.open_connection(LOOPBACK, target.port)
            writer.write(data)
            opened.append((reader, writer))
        await asyncio.sleep(lasts_s)
        for reader, _ in opened:
            try:
                async with asyncio.timeout(SAMPLE_S):
                    line = await reader.read(12)
                said[line.decode("latin-1")[9:] or "closed"] += 1
            except TimeoutError:
                said["held"] += 1
            except OSError:
                said["closed"] += 1
    finally:
        for _, writer in opened:
            writer.transport.abort()
    return said


async def small_things(target: Target) -> Counter[str]:
    """Bodies whose JSON takes up the most memory, as many at once as are taken."""
    body = json.dumps(call("list_cycles", {"a": [[] for _ in range(16_000)]})).encode()
    return await _at_once(target, [body] * CALLERS)


async def _at_once(target: Target, bodies: Sequence[bytes]) -> Counter[str]:
    async with client() as web:

        async def sent(body: bytes) -> str:
            return str(
                (await web.post(target.url, content=body, headers=target.headers)).status_code
            )

        return Counter(await asyncio.gather(*map(sent, bodies)))


async def flood(target: Target) -> Counter[str]:
    """Valid calls from many at once, as fast as they are answered."""
    until = time.monotonic() + FLOOD_S
    bodies = [json.dumps(call(*each)).encode() for each in FLOODING]
    said: Counter[str] = Counter()

    async def caller(web: httpx2.AsyncClient, number: int) -> None:
        while time.monotonic() < until:
            number += 1
            body = bodies[number % len(bodies)]
            answer = await web.post(target.url, content=body, headers=target.headers)
            said[f"{answer.status_code}"] += 1
            if answer.status_code == 503:
                await asyncio.sleep(SAMPLE_S)

    async with client() as web:
        await asyncio.gather(*(caller(web, number) for number in range(CALLERS)))
    return said


ATTACKS: Sequence[Attack] = (
    strangers,
    junk,
    streams,
    half_bodies,
    slow_heads,
    pipelined,
    small_things,
    flood,
)
NAMES = {attack.__name__: attack for attack in ATTACKS}


# --- what it comes to -----------------------------------------------------------------------------


async def struck(target: Target, attack: Attack) -> Outcome:
    """One attack, with an honest caller and a person at the kill switch beside it."""
    outcome = Outcome(attack.__name__.replace("_", " "))
    rest_mb = target.memory_mb
    attacking = asyncio.ensure_future(attack(target))

    async def beside(ask: Callable[[], Awaitable[None]], into: list[float]) -> None:
        while True:
            began = time.monotonic()
            await ask()
            into.append(time.monotonic() - began)
            if attacking.done():
                return
            await asyncio.sleep(SAMPLE_S)

    async def watched() -> None:
        while not attacking.done():
            outcome.memory_mb = max(outcome.memory_mb, target.memory_mb - rest_mb)
            await asyncio.sleep(SAMPLE_S)

    try:
        async with asyncio.timeout(HONEST_S_MAX * 4):
            await asyncio.gather(
                beside(lambda: honest(target), outcome.honest_s),
                beside(lambda: halted(target.user), outcome.halt_s),
                watched(),
            )
    except TimeoutError:
        outcome.broken.append("an honest call or a halt got no answer")
    outcome.answers = await attacking
    if faults := sum(outcome.answers[str(code)] for code in FAULTS):
        outcome.broken.append(f"{faults} answers are faults: {outcome.answers}")
    if outcome.memory_mb > MEMORY_MB_MAX:
        outcome.broken.append(f"{outcome.memory_mb:.0f} MB above rest")
    if "Traceback" in target.log.read_text():
        outcome.broken.append(f"a traceback: {target.log.read_text()[-600:]}")
    return outcome


async def honest(target: Target) -> None:
    """One call until it is answered, tried again where the server is busy."""
    while True:
        with suppress(httpx2.HTTPError):
            async with client() as web:
                body = call("list_cycles", {"limit": 1})
                answer = await web.post(target.url, json=body, headers=target.headers)
                if answer.status_code == 200 and not answer.json()["result"]["isError"]:
                    return
        await asyncio.sleep(SAMPLE_S)


async def halted(user: User) -> None:
    """Buys are halted, and resumed."""
    assert (await user.ask(HALT, HaltTrading(reason="attack"))).halts
    assert not (await user.ask(RESUME, ResumeTrading())).halts


@asynccontextmanager
async def target_of(settings: Settings, folder: Path) -> AsyncIterator[Target]:
    """`deskbus mcp --http` beside the desk of these settings."""
    log = folder / "mcp.log"
    kept = {name: value for name, value in os.environ.items() if "DESKBUS" not in name}
    with log.open("wb") as written:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "services.cli",
            "mcp",
            "--http",
            "--port",
            "0",
            cwd=folder,
            env={**kept, **settings.environment, "PYTHONPATH": str(REPOSITORY)},
            stderr=written,
        )
    try:
        async with asyncio.timeout(HONEST_S_MAX):
            while "token" not in log.read_text():  # noqa: ASYNC110
                await asyncio.sleep(SAMPLE_S)
        first, second = log.read_text().splitlines()[:2]
        port = int(first.rpartition(":")[2].removesuffix("/mcp"))
        token_file = Path(second.split(maxsplit=1)[1].strip())
        token = (await asyncio.to_thread(token_file.read_text)).strip()
        async with user_of(settings) as user:
            target = Target(port, token, psutil.Process(process.pid), log, user)
            await honest(target)
            yield target
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


async def survive(folder: Path, attacks: Sequence[Attack]) -> AsyncIterator[Outcome]:
    """Each attack in turn."""
    async with (
        own_servers(folder) as servers,
        desk_on(servers, folder, {}, processes=False) as desk,
        target_of(desk.settings, folder) as target,
    ):
        for attack in attacks:
            yield await struck(target, attack)


async def run(folder: Path, attacks: Sequence[Attack]) -> bool:
    """Print the table; whether all promises held."""
    sys.stdout.write(
        "| attack | ends | memory above rest, MB | slowest honest call, s | slowest halt, s |\n"
        "| --- | --- | --- | --- | --- |\n"
    )
    held = True
    async for outcome in survive(folder, attacks):
        sys.stdout.write(f"{outcome.row()} |\n")
        sys.stdout.flush()
        for problem in outcome.broken:
            held = False
            sys.stderr.write(f"BROKEN: {outcome.name}: {problem}\n")
    return held


def main(arguments: Sequence[str] | None = None) -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.hostile_mcp", description=__doc__)
    parser.add_argument("--attacks", nargs="+", choices=NAMES, default=[*NAMES])
    parser.add_argument("--keep", action="store_true")
    given = parser.parse_args(arguments)
    with open_folder("deskbus-mcp-", keep=given.keep) as folder:
        held = asyncio.run(run(folder, [NAMES[name] for name in given.attacks]))
    sys.exit(0 if held else 1)


if __name__ == "__main__":
    main()
