"""The work of the loop benchmark: 5 rounds of 3 tools, then an answer; and how a contender counts.

A contender is a process of its own that ends with `measured(run_once, options)`: it runs the task
some times to warm up, then counts its own CPU time, user and system, over the rest.
"""

import argparse
import json
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from pydantic import BaseModel

ROUNDS: Final = 5
TICKERS: Final = tuple(f"T{number}" for number in range(ROUNDS))
TOOLS: Final[Mapping[str, str]] = {
    "get_price": "The last closes of a ticker, newest last.",
    "get_news": "Headlines about a ticker, newest first.",
    "get_fundamentals": "A ticker's figures as last reported.",
}
SYSTEM: Final = "You look into shares. Use the tools for every ticker, then answer. " * 30
ASKED: Final = {"as_of": "2012-06-29", "tickers": list(TICKERS)}
MODELS: Final = {"claude": "claude-sonnet-5-5", "openai": "local-model"}
KEY: Final = "bench-key-0123456789"
TIMEOUT_S: Final = 60.0


class Answer(BaseModel):
    """What the model must say at the end."""

    best: str
    reason: str
    confidence: float


ANSWER: Final = Answer(best="T0", reason="its trend is up and its news are good", confidence=0.5)


def result_of(tool: str, ticker: str) -> dict[str, Any]:
    """About 1 kB, as a tool of the desk gives it."""
    rows = [{"session": f"2012-06-{day:02}", "value": 100.25 + day} for day in range(1, 23)]
    return {"tool": tool, "ticker": ticker, "as_of": "2012-06-29", "rows": rows}


@dataclass(frozen=True)
class Options:
    """Where the model is, and how often it is asked. `journal`: where the desk is, as JSON."""

    sdk: Literal["claude", "openai"]
    url: str
    runs: int
    warmup: int
    once_more: bool
    journal: str


def options() -> Options:
    """What the command line says."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sdk", choices=list(MODELS), required=True)
    parser.add_argument("--url", required=True)
    parser.add_argument("--runs", type=int, required=True)
    parser.add_argument("--warmup", type=int, required=True)
    parser.add_argument("--once-more", action="store_true")
    parser.add_argument("--journal", default="")
    return Options(**vars(parser.parse_args()))


async def measured(run_once: Callable[[], Awaitable[Answer]], given: Options) -> None:
    """Print the CPU-ms and the milliseconds of one run, of the runs after the warm-up."""
    for _ in range(given.warmup):
        await run_once()
    began_s, began_cpu_s = time.perf_counter(), time.process_time()
    for _ in range(given.runs):
        if await run_once() != ANSWER:
            raise ValueError("the answer got lost on the way")
    cpu_s, took_s = time.process_time() - began_cpu_s, time.perf_counter() - began_s
    print(json.dumps({"cpu_ms": cpu_s / given.runs * 1e3, "ms": took_s / given.runs * 1e3}))
