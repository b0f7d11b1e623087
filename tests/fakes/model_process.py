"""The local model as a process of its own: it counts what it is asked, and outlives whoever asks.

    python -m tests.fakes.model_process LOG_FILE MANNER KEY...

It answers as the rules do. Every request is a line in the log when it begins and another when its
reply has been made; a fault, where it is to give some, comes at the first of about every third
request's tries.
"""

import asyncio
import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.fakes.model_server import (
    HOST,
    Answer,
    Asked,
    Body,
    Drop,
    Error,
    ModelServer,
    model_server,
)
from tests.fakes.rules_model import Appetite, agent_of, as_the_rules
from tests.fakes.wire_formats import Says

ROOT = Path(__file__).parents[2]
FAULTS: Sequence[Answer] = (
    Error(429, "rate_limit_error", "slow down", {"retry-after-ms": "20"}),
    Error(529, "overloaded_error", "Overloaded", {"retry-after": "0.05"}),
    Drop(),
    Body(b"<html>login</html>", content_type="text/html"),
    Body(b'{"choices": null}'),
)


@dataclass(frozen=True)
class Manner:
    """How it answers: after a while, with faults, and with what appetite for tools, by agent.

    The first request of an agent in `closed` is answered with 429 and this Retry-After in seconds.
    An agent in `thirsty` is told that its every reply took so many tokens to write, and gets no
    fault: what a fault costs would come on top. An agent in
    `wordy` answers in words, without an answer in them, on the wire that is named for it.
    """

    delay_s: float = 0.0
    faulty: bool = False
    closed: dict[str, float] = field(default_factory=dict)
    thirsty: dict[str, int] = field(default_factory=dict)
    wordy: dict[str, str] = field(default_factory=dict)
    appetites: dict[str, Appetite] = field(default_factory=dict)

    @classmethod
    def read(cls, text: str) -> "Manner":
        """What `asdict` and JSON made of one."""
        said = json.loads(text)
        appetites = {agent: Appetite(**each) for agent, each in said.pop("appetites").items()}
        return cls(**said, appetites=appetites)


@dataclass(frozen=True)
class ModelProcess:
    """The running process as a test sees it."""

    url: str
    log: Path

    def lines(self) -> list[dict[str, Any]]:
        """All that it has put down so far."""
        if not self.log.exists():
            return []
        return [json.loads(line) for line in self.log.read_text().splitlines() if line[-1] == "}"]

    def asked(self) -> list[dict[str, Any]]:
        """The requests that it has begun to answer."""
        return [line for line in self.lines() if line["what"] == "begin"]


@contextmanager
def running(log: Path, keys: Sequence[str], manner: Manner) -> Iterator[ModelProcess]:
    """The process, listening when the block is entered; killed at its end."""
    with subprocess.Popen(
        [
            sys.executable,
            "-m",
            "tests.fakes.model_process",
            str(log),
            json.dumps(asdict(manner)),
            *keys,
        ],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            port = process.stdout.readline().strip()
            assert port, "the model did not start"
            yield ModelProcess(f"http://{HOST}:{port}", log)
        finally:
            process.kill()


@dataclass
class Answering(ModelServer):
    """Waits before each answer, and writes down both ends of it."""

    descriptor: int = -1
    manner: Manner = Manner()
    tries: dict[str, int] = field(default_factory=dict)
    closed: set[str] = field(default_factory=set)

    async def _answer(self, asked: Asked, *connection: Any) -> bool:
        digest = _digest(asked)
        self.tries[digest] = self.tries.get(digest, 0) + 1
        self._note("begin", asked)
        await asyncio.sleep(self.manner.delay_s)
        done = await super()._answer(asked, *connection)
        self._note("end", asked)
        return done

    def _note(self, what: str, asked: Asked) -> None:
        line = {
            "at": time.time(),
            "what": what,
            "wire": asked.wire,
            "agent": agent_of(asked),
            "tools": bool(asked.tools),
            "request": _digest(asked),
            "system": asked.system,
            "sent": [hashlib.sha256(text.encode()).hexdigest() for text in asked.sent],
        }
        os.write(self.descriptor, json.dumps(line).encode() + b"\n")

    def scripted(self, asked: Asked) -> Answer:
        """The faults that it is to give, else the rules' answer."""
        agent = agent_of(asked)
        if agent in self.manner.closed and agent not in self.closed:
            self.closed.add(agent)
            headers = {"retry-after": str(self.manner.closed[agent])}
            return Error(429, "rate_limit_error", "slow down", headers)
        digest = _digest(asked)
        chance = int(digest[:8], 16)
        may_fail = self.manner.faulty and agent not in self.manner.thirsty
        if may_fail and self.tries[digest] == 1 and chance % 3 == 0:
            return FAULTS[chance // 3 % len(FAULTS)]
        if not asked.tools and self.manner.wordy.get(agent) == asked.wire:
            return Says(f"I would rather not say, {digest[:8]}.")
        answer = as_the_rules(asked, self.manner.appetites)
        if isinstance(answer, Says) and agent in self.manner.thirsty:
            return replace(answer, usage={"output_tokens": self.manner.thirsty[agent]})
        return answer


def _digest(asked: Asked) -> str:
    return hashlib.sha256(json.dumps(asked.body, sort_keys=True).encode()).hexdigest()


async def serve(log: Path, manner: Manner, keys: Sequence[str]) -> None:
    """Answer until killed."""
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    server = Answering((), keys, descriptor=descriptor, manner=manner)
    server.answers = server.scripted
    async with model_server(server):
        sys.stdout.write(f"{server.port}\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


if __name__ == "__main__":
    _, file, given, *taken = sys.argv
    asyncio.run(serve(Path(file), Manner.read(given), taken))
