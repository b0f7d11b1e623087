"""Whoever only reads waits for no library that computes, serves or asks a model."""

import subprocess
import sys
from pathlib import Path

from services.cli.main import ENTRIES

ROOT = Path(__file__).parents[2]

READING = (
    "accounts",
    "approvals",
    "budget",
    "config",
    "cycle",
    "dlq",
    "exit-signals",
    "leaderboard",
    "logs",
    "operations",
    "performance",
    "portfolio",
    "report",
    "schedule",
    "status",
    "strategies",
    "tail",
    "trades",
)
HEAVY = (
    "anthropic",
    "apprise",
    "asyncpg",
    "curl_cffi",
    "exchange_calendars",
    "faststream",
    "httpx",
    "mcp",
    "numpy",
    "openai",
    "opentelemetry",
    "pandas",
    "polars",
    "scipy",
    "services.launcher",
    "sklearn",
    "starlette",
    "talib",
    "uvicorn",
    "uvloop",
    "yfinance",
)

LOADED = """
import sys
from importlib import import_module

for module in sys.argv[1].split(","):
    import_module(f"services.cli.{module}")
print(*sorted(set(sys.argv[2].split(",")) & set(sys.modules)))
print(import_module("contracts.performance").PerformanceView.__pydantic_complete__)
"""


def _loaded() -> tuple[str, str]:
    modules = ",".join(ENTRIES[name].module for name in READING)
    done = subprocess.run(
        [sys.executable, "-c", LOADED, modules, ",".join(HEAVY)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    heavy, complete = done.stdout.splitlines()
    return heavy, complete


def test_a_reading_command_loads_nothing_heavy_and_builds_no_validator_before_it_needs_one() -> (
    None
):
    heavy, complete = _loaded()

    assert heavy == ""
    assert complete == "False"
